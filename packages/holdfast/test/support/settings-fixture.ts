import type { Locks } from "holdfast";
import { waitUntil, type RedisServer } from "@holdfast/test-kit";
import { expect } from "vitest";

export type Settings = Readonly<Record<string, unknown>>;

/** Rows for `test.each`: the library, what is set, and the settings. */
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
  /** Where connections are made to. */
  readonly servers: readonly RedisServer[];
  /** As whom both connect, and nobody else. */
  readonly user: string;
  /** Whether the key is on the server where it has to be. */
  isStored(): Promise<boolean>;
}

/** What has to go well with whatever settings: to lock, to wait, to be told of one's turn, and to go on when all connections were cut. */
export async function expectLocking(settingsCase: SettingsCase): Promise<void> {
  const { holder, waiter, key, servers, user, isStored } = settingsCase;
  const waitOptions = { ttlMs: 60_000, waitMs: 60_000 };
  const lease = await holder.acquire(key, waitOptions);
  expect(await isStored()).toBe(true);
  await waiter.withLock(`${key}, before`, waitOptions, () => undefined);
  expect(await waiter.tryAcquire(key)).toBeNull();
  const waiting = waiter.acquire(key, waitOptions);
  await waitUntil(async () => (await waitersOf(holder, key)) === 1, "it waits, and hears messages");
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
  await waitUntil(renewed, "it is renewed over another connection");
  const again = holder.acquire(key, waitOptions);
  await waitUntil(async () => (await waitersOf(waiter, key)) === 1, "somebody waits again");
  expect(await next.release()).toBe(true);
  expect(await (await again).release()).toBe(true);
}

/** Users of their own, by which a test's connections are known. */
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
