import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";

import type { WireLease, WireLock, WireProblem } from "holdfast/http";

/** Asks as any client may: JSON there and back. */
export async function sendRequest(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; body: unknown }> {
  const response = await fetch(new URL(path, url), {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** The status of a request with exactly these headers, of which `fetch` sets some itself. */
export async function statusOf(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<number> {
  const outgoing = request(new URL(path, url), {
    method,
    agent: false,
    headers: { ...(body && { "content-type": "application/json" }), ...headers },
  });
  outgoing.end(body && JSON.stringify(body));
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

export async function acquire(url: string, body: object): Promise<WireLease> {
  const reply = await sendRequest(url, "POST", "/v1/leases", body);
  if (reply.status !== 201) {
    throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`);
  }
  return reply.body as WireLease;
}

/** The problem of a request. A refused acquire is a try, unless its body has `waitMs`. */
export async function refusal(
  url: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<WireProblem> {
  const isAcquire = method === "POST" && path === "/v1/leases" && typeof body === "object";
  const reply = await sendRequest(url, method, path, isAcquire ? { waitMs: 0, ...body } : body);
  if (reply.status < 400) {
    throw new Error(`expected a refusal, got ${reply.status} ${JSON.stringify(reply.body)}`);
  }
  return reply.body as WireProblem;
}

export async function inspect(url: string, key: string): Promise<WireLock> {
  return (await sendRequest(url, "GET", `/v1/lock?key=${encodeURIComponent(key)}`)).body as WireLock;
}

/** A stream of events, of which the client can go away at any time. */
export interface Stream {
  readonly status: number;
  next(): Promise<{ event: string; data: Record<string, unknown> } | undefined>;
  disconnect(): void;
}

export async function openStream(url: string, method: string, path: string, body?: object): Promise<Stream> {
  const outgoing = request(new URL(path, url), {
    method,
    agent: false,
    headers: { accept: "text/event-stream", "content-type": "application/json" },
  });
  outgoing.on("error", () => undefined);
  outgoing.end(body && JSON.stringify(body));
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const events = eventsOf(response);
  return {
    status: response.statusCode ?? 0,
    next: async () => (await events.next().catch(() => undefined))?.value ?? undefined,
    disconnect: () => {
      outgoing.destroy();
    },
  };
}

async function* eventsOf(
  response: IncomingMessage,
): AsyncGenerator<{ event: string; data: Record<string, unknown> }, undefined> {
  let rest = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>) {
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const [, event] = /^event: (.+)$/m.exec(block) ?? [];
      const [, data] = /^data: (.+)$/m.exec(block) ?? [];
      if (event !== undefined && data !== undefined) {
        yield { event, data: JSON.parse(data) as Record<string, unknown> };
      }
    }
  }
}

/** A service in a process of its own, which can be killed. */
export interface ServiceInstance {
  readonly url: string;
  readonly child: ChildProcess;
  readonly startupMessages: () => string;
  readonly logged: () => string;
  kill(signal: NodeJS.Signals): Promise<number | null>;
}

/** None of them outlives the tests, however they end. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) {
    child.kill("SIGKILL");
  }
});

const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

/** From the build: `npm test` makes it. */
export async function startInstance(env: Record<string, string> = {}): Promise<ServiceInstance> {
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env["PATH"] ?? "", HOLDFAST_PORT: "0", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let said = "";
  let logged = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (logged += text));
  const ended = once(child, "exit");
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", () => {
      const [found] = /http:\/\/\S+/.exec(said) ?? [];
      if (found !== undefined) {
        resolve(found);
      }
    });
    void ended.then(() => {
      reject(new Error(`the service ended: ${said}${logged}`));
    });
  });
  return {
    url,
    child,
    startupMessages: () => said,
    logged: () => logged,
    kill: async (signal) => {
      child.kill(signal);
      await ended;
      return child.exitCode;
    },
  };
}
