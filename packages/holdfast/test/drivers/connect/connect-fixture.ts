import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";
import { createLocks, type Locks } from "holdfast";
import { connect, type ConnectOptions } from "holdfast/connect";
import { waitUntil, type RedisServer } from "@holdfast/test-kit";

import { parseUrl } from "../../../src/drivers/connect/url.ts";
import { loadClientLibrary } from "../../../src/drivers/connect/load-client.ts";
import { resolve } from "../../../src/drivers/connect/options.ts";
import { loadTls } from "../../../src/drivers/connect/tls.ts";
import { systemRandom } from "../../../src/runtime/random.ts";

export const libraries = ["ioredis", "node-redis"] as const;
export const secret = "hunter2/Geheim@";
export const escaped = encodeURIComponent(secret);
/** The cleanups of the running test, in the order of their registration. */
const cleanups: (() => Promise<void>)[] = [];

export function atEnd(cleanup: () => Promise<void>): void {
  cleanups.push(cleanup);
}

/** For `afterEach`: runs the cleanups, the latest first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) {
    await cleanup();
  }
}

export async function open(url: string, options?: ConnectOptions): Promise<Locks> {
  const locks = createLocks(await connect(url, options), { closeTimeoutMs: 500 });
  atEnd(() => locks.close());
  return locks;
}

export async function worksBy(url: string, options: ConnectOptions): Promise<boolean> {
  const locks = await open(url, options);
  const lease = await locks.acquire(`key of ${url}`);
  await awaitNotifications(locks);
  return lease.release();
}

/** Waits until the subscription is verified, on a connection of its own. */
export async function awaitNotifications(locks: Locks): Promise<void> {
  await waitUntil(
    async () => (await locks.admin.nodes())[0]?.notifications === "verified",
    "notifications are verified",
  );
}

export async function connectionsOf(probe: ReturnType<RedisServer["client"]>): Promise<number> {
  return String(await probe.client("LIST"))
    .trim()
    .split("\n").length;
}

/** Collects the diagnostics of nodes as text. Failed connections appear there. */
export function failures(): string[] {
  const details: string[] = [];
  const listen = (message: unknown): void => {
    details.push(inspect(message, { depth: Infinity, showHidden: true }));
  };
  subscribe("holdfast:node", listen);
  atEnd(async () => void unsubscribe("holdfast:node", listen));
  return details;
}

/** A client as `connect` opens it. */
export async function clientOf(
  library: (typeof libraries)[number],
  url: string,
  failed: (error: unknown) => void = () => undefined,
): Promise<{ set(key: string, value: string): Promise<unknown> }> {
  const address = parseUrl(url);
  const { access } = resolve(address, {});
  const openClients = await loadClientLibrary(library);
  const plan = {
    url: address,
    credentials: access,
    tls: await loadTls(access.tls),
    commandTimeoutMs: 2_000,
    random: systemRandom,
  };
  const [opened] = openClients({ ...plan, failed });
  if (opened === undefined) {
    throw new Error("expected one client");
  }
  atEnd(async () => {
    opened.close();
  });
  return opened.client as object as { set(key: string, value: string): Promise<unknown> };
}

export function shown(value: unknown): string {
  return `${String(value)}\n${inspect(value, { depth: Infinity, showHidden: true })}\n${JSON.stringify(value)}`;
}
