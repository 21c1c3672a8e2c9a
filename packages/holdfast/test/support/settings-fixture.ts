import type { Locks } from "holdfast";
import { waitUntil, type RedisServer } from "@holdfast/test-kit";
import { expect } from "vitest";

export type Settings = Readonly<Record<string, unknown>>;

/** Rows for `test.each`: the library, the name of the settings, and the settings. */
export function rowsOf(
  settingRows: Readonly<Record<string, Readonly<Record<string, Settings>>>>,
): (readonly [library: string, what: string, settings: Settings])[] {
  return Object.entries(settingRows).flatMap(([library, settings]) =>
    Object.entries(settings).map(([what, own]) => [library, what, own] as const),
  );
}

interface SettingsCase {
  readonly holder: Locks;
  readonly waiter: Locks;
  readonly key: string;
  /** The servers to which the clients connect. */
  readonly servers: readonly RedisServer[];
  /** The user of both clients, and of no other client. */
  readonly user: string;
  /** Whether the key is on the expected server. */
  isStored(): Promise<boolean>;
}

/** With any settings a client must lock, wait, receive its grant by notification, and survive the loss of all connections. */
export async function expectLocking(settingsCase: SettingsCase): Promise<void> {
  const { holder, waiter, key, servers, user, isStored } = settingsCase;
  const waitOptions = { ttlMs: 60_000, waitMs: 60_000 };
  const lease = await holder.acquire(key, waitOptions);
  expect(await isStored()).toBe(true);
  await waiter.withLock(`${key}, before`, waitOptions, () => undefined);
  expect(await waiter.tryAcquire(key)).toBeNull();
  const waiting = waiter.acquire(key, waitOptions);
  await waitUntil(async () => (await waitersOf(holder, key)) === 1, "the caller waits with a subscription");
  expect(await lease.release()).toBe(true);
  const next = await waiting;
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  for (const server of servers) {
    await server.client().client("KILL", "USER", user);
  }
  const renewed = (): Promise<boolean> =>
    next.extend().then(
      () => true,
      () => false,
    );
  await waitUntil(renewed, "the lease is renewed over another connection");
  const again = holder.acquire(key, waitOptions);
  await waitUntil(async () => (await waitersOf(waiter, key)) === 1, "the second caller waits");
  expect(await next.release()).toBe(true);
  expect(await (await again).release()).toBe(true);
}

/** Creates a separate user, which identifies the connections of a test. */
export async function addUser(servers: readonly RedisServer[], user: string): Promise<void> {
  for (const server of servers) {
    await server.client().call("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all");
  }
}

async function waitersOf(locks: Locks, key: string): Promise<number | undefined> {
  return locks.inspect(key).then(
    ({ waiterCount }) => waiterCount,
    () => undefined,
  );
}
