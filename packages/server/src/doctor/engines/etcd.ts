import type { EngineDoctor } from "../engines.ts";
import { errorMessage, UnreachableError } from "../errors.ts";
import type { Finding } from "../finding.ts";
import { checkEtcd, type Facts, type Member } from "./etcd-checks.ts";

const timeoutMs = 3_000;
const writes = 3;

/** The address in a URL, which the library has accepted. */
interface Address {
  readonly isEncrypted: boolean;
  readonly endpoints: readonly string[];
  readonly credentials: { readonly name: string; readonly password: string } | undefined;
}

/** Sends one request to one endpoint. Rejects with the message of etcd. */
type Call = <T>(endpoint: string, path: string, body?: object) => Promise<T>;

/** Checks the members, the alarms, the access and the writes of an etcd cluster. */
export const examineEtcd: EngineDoctor = async (url, { ttlMs, probe }) => {
  const address = parse(url);
  const { endpoints } = address;
  const replies = await Promise.allSettled(endpoints.map((endpoint) => memberAt(address, endpoint)));
  const members = replies.flatMap((reply) => (reply.status === "fulfilled" ? [reply.value] : []));
  const failures = replies.flatMap((reply, index) =>
    reply.status === "rejected" ? [unreachable(endpoints[index] as string, reply.reason)] : [],
  );
  const first = members.find((member) => member.leader !== undefined) ?? members[0];
  if (first === undefined) {
    const messages = failures.map(({ node, observed }) => `${node}: ${observed}`);
    throw new UnreachableError(messages.join("; "));
  }
  const unread: Finding[] = [];
  const read = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      unread.push(unreadable(first.node, error));
      return undefined;
    }
  };
  const call = await read(() => authenticated(address, first.node));
  const facts: Facts = {
    members,
    endpoints,
    ttlMs,
    size: call && (await read(() => sizeOf(call, first.node))),
    alarms: (call && (await read(() => alarmsOf(call, first.node)))) ?? [],
    isOpen: address.credentials === undefined && (await isOpen(address, first.node)),
    writeMs: probe && call ? await read(() => timeOfWrite(call, first.node)) : undefined,
  };
  return { nodes: endpoints, findings: [...failures, ...checkEtcd(facts), ...unread] };
};

function parse(url: string): Address {
  const [, scheme = "", user = "", hosts = ""] = /^(etcds?):\/\/(?:([^/?#]*)@)?([^/?#@]*)/is.exec(url) ?? [];
  const [name = "", ...password] = user.split(":");
  return {
    isEncrypted: scheme.toLowerCase() === "etcds",
    endpoints: hosts.split(",").map((host) => (/:\d+$/.test(host) ? host : `${host}:2379`)),
    credentials:
      name === ""
        ? undefined
        : { name: decodeURIComponent(name), password: decodeURIComponent(password.join(":")) },
  };
}

async function memberAt(address: Address, endpoint: string): Promise<Member> {
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(`${originOf(address, endpoint)}/version`, { signal });
  const { etcdserver } = (await response.json()) as { etcdserver?: string };
  if (etcdserver === undefined) {
    throw new Error("the server is not etcd");
  }
  const status = await callWith(address, {})<{ leader?: string }>(endpoint, "maintenance/status").catch(
    () => ({ leader: "unknown" }), // an old version has another path
  );
  return { node: endpoint, version: etcdserver, leader: status.leader };
}

async function authenticated(address: Address, endpoint: string): Promise<Call> {
  const { credentials } = address;
  const call = callWith(address, {});
  if (credentials === undefined) {
    return call;
  }
  const { token } = await call<{ token: string }>(endpoint, "auth/authenticate", credentials);
  return callWith(address, { authorization: token });
}

function callWith(address: Address, headers: Readonly<Record<string, string>>): Call {
  return async <T>(endpoint: string, path: string, body: object = {}): Promise<T> => {
    const response = await fetch(`${originOf(address, endpoint)}/v3/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (!response.ok) {
      const { message } = JSON.parse(text.startsWith("{") ? text : "{}") as { message?: string };
      throw new Error(message ?? `HTTP status ${response.status}`);
    }
    return JSON.parse(text) as T;
  };
}

function originOf({ isEncrypted }: Address, endpoint: string): string {
  return `${isEncrypted ? "https" : "http"}://${endpoint}`;
}

async function sizeOf(call: Call, endpoint: string): Promise<number> {
  const { members } = await call<{ members: { isLearner?: boolean }[] }>(endpoint, "cluster/member/list");
  return members.filter(({ isLearner = false }) => !isLearner).length;
}

async function alarmsOf(call: Call, endpoint: string): Promise<string[]> {
  const { alarms = [] } = await call<{ alarms?: { alarm: string }[] }>(endpoint, "maintenance/alarm");
  return [...new Set(alarms.map(({ alarm }) => alarm))];
}

/** Whether the cluster serves a read without a user. A refused read names the missing user. */
async function isOpen(address: Address, endpoint: string): Promise<boolean> {
  const request = { key: Buffer.from("holdfast-doctor").toString("base64"), serializable: true };
  return callWith(address, {})(endpoint, "kv/range", request).then(
    () => true,
    () => false,
  );
}

/** The median duration of the grant of an etcd lease, which a majority stores, ms. */
async function timeOfWrite(call: Call, endpoint: string): Promise<number> {
  const durations: number[] = [];
  for (let count = 0; count < writes; count += 1) {
    const begun = performance.now();
    const { ID } = await call<{ ID: string }>(endpoint, "lease/grant", { TTL: "5" });
    durations.push(performance.now() - begun);
    await call(endpoint, "lease/revoke", { ID });
  }
  return durations.toSorted((a, b) => a - b)[Math.floor(writes / 2)] as number;
}

function unreachable(node: string, error: unknown): Finding {
  return {
    node,
    level: "risk",
    id: "unreachable",
    observed: errorMessage((error as Error).cause ?? error),
    impact: "the cluster survives fewer outages, and requests to this endpoint are delayed",
    fix: "start the member, or correct the URL",
  };
}

function unreadable(node: string, error: unknown): Finding {
  return {
    node,
    level: "info",
    id: "unreadable",
    observed: errorMessage(error),
    impact: "doctor could not check everything",
    fix: "check the user and the password of the URL, and the rights of the user",
  };
}
