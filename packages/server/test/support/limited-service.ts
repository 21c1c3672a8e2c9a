import type { WireLease, WireProblem } from "holdfast/http";
import { afterEach, expect } from "vitest";

import {
  createService,
  newToken,
  type AuthOptions,
  type LogEntry,
  type ServiceOptions,
} from "../../src/index.ts";
import { sendRequest } from "./service.ts";

export const ci: { token: string; sha256: string } = newToken();
export const other: { token: string; sha256: string } = newToken();
export const auth: AuthOptions = { tokens: [entry("ci", ci, "job:"), entry("other", other, "job:")] };

export function entry(
  name: string,
  { sha256 }: { sha256: string },
  prefix: string,
): NonNullable<AuthOptions["tokens"]>[number] {
  return {
    name,
    sha256,
    grants: [
      { scope: "lock:acquire", prefix },
      { scope: "lock:read", prefix },
    ],
  };
}

export const as = ({ token }: { token: string }): Record<string, string> => ({
  authorization: `Bearer ${token}`,
});

export const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) {
    await end();
  }
});

export interface Opened {
  readonly url: string;
  readonly log: readonly LogEntry[];
  readonly service: Awaited<ReturnType<typeof createService>>;
}

export async function open(options: ServiceOptions = {}): Promise<Opened> {
  const log: LogEntry[] = [];
  const service = await createService({ auth, drainMs: 0, log: (line) => log.push(line), ...options });
  ends.push(() => service.close());
  return { url: await service.listen({ port: 0 }), log, service };
}

export async function acquired(url: string, who: { token: string }, body: object): Promise<WireLease> {
  const { status, body: lease } = await sendRequest(url, "POST", "/v1/leases", body, as(who));
  expect(status, JSON.stringify(lease)).toBe(201);
  return lease as WireLease;
}

export async function problemOf(url: string, who: { token: string }, body: object): Promise<WireProblem> {
  return (await sendRequest(url, "POST", "/v1/leases", body, as(who))).body as WireProblem;
}

/** A stream or a wait of a token, as text that grows. */
export async function opened(
  url: string,
  who: { token: string },
  path: string,
  body?: object,
): Promise<{ text: () => string; ended: Promise<unknown> }> {
  const response = await fetch(new URL(path, url), {
    method: body ? "POST" : "GET",
    headers: { accept: "text/event-stream", "content-type": "application/json", ...as(who) },
    ...(body && { body: JSON.stringify(body) }),
  });
  let text = "";
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString();
    }
  };
  return { text: () => text, ended: read().catch(() => undefined) };
}
