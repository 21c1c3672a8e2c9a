import { createLocks, isLockError } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { createClient } from "redis";
import { Redis } from "ioredis";
import { expect, test, vi } from "vitest";
import { rejection } from "@holdfast/test-kit";

const ioredisMembers = [
  "call", "duplicate", "defineCommand", "sendCommand", "subscribe", "ssubscribe", "unsubscribe", "disconnect", "on", "off",
] as const; // prettier-ignore

/** An object with the members of ioredis that return `value`, as automocks have them. */
function mock(value: (self: object) => unknown, without?: string): RedisClient {
  const self: Record<string, unknown> = { options: {}, status: "ready" };
  for (const name of ioredisMembers.filter((member) => member !== without)) {
    self[name] = () => value(self);
  }
  self["duplicate"] = () => self;
  return self as unknown as RedisClient;
}

test.each(["call", "subscribe", "on"])(
  "a client without `%s`, as ioredis-mock has none, is refused at once",
  (name) => {
    expect(() => redis(mock(() => undefined, name))).toThrow(
      new TypeError(
        `Expected \`client\` to be a client of ioredis, got an object without \`${name}\`, such as a mock; for tests without a server use memory() of holdfast/memory`,
      ),
    );
  },
);

test("a node-redis client without `duplicate` is refused at once", () => {
  const client = {
    sSubscribe: () => undefined,
    sendCommand: () => undefined,
    on: () => undefined,
    off: () => undefined,
  };
  expect(() => redis(client as never)).toThrow("got an object without `duplicate`");
});

test.each([
  ["undefined", () => undefined],
  ["undefined", () => Promise.resolve()],
  ["string", () => Promise.resolve("OK")],
])(
  "a mock that replies %s to a script is named at once, and the call is not repeated",
  async (type, reply) => {
    const calls = vi.fn(reply);
    const locks = createLocks(redis(mock(calls)));
    for (const call of [
      () => locks.tryAcquire("key"),
      () => locks.acquire("key"),
      () => locks.inspect("key"),
    ]) {
      const before = performance.now();
      const { error } = await rejection(call());
      expect(isLockError(error, "engine-unavailable") && !error.retryable, (error as Error).message).toBe(
        true,
      );
      expect((error as Error).message).toContain(
        `the reply to a script is of the type ${type}: is the client a mock`,
      );
      expect(performance.now() - before).toBeLessThan(2_000);
    }
    await locks.close();
  },
);

test("a client whose functions throw a TypeError is not asked again", async () => {
  const call = vi.fn(() => Promise.reject(new TypeError("x is not a function")));
  const locks = createLocks(
    redis(
      Object.assign(
        mock(() => undefined),
        { call },
      ),
    ),
  );
  const { error } = await rejection(locks.acquire("key"));
  expect(error).toMatchObject({ code: "engine-unavailable", retryable: false });
  expect((error as Error).message).toContain("x is not a function");
  await locks.close();
});

test("a node-redis client that was never connected is named with what to do", async () => {
  const client = createClient();
  const locks = createLocks(redis(client, { commandTimeoutMs: 200 }));
  const { error } = await rejection(locks.acquire("key", { waitMs: 300 }));
  expect((error as Error).message).toBe(
    "Redis at localhost:6379/0 is unreachable: the client is not open; call its connect(), or it was closed",
  );
  await locks.close();
});

test("a client of ioredis that is not connected yet is accepted", () => {
  const client = new Redis({ lazyConnect: true });
  expect(redis(client).capabilities.guarantee).toBe("server");
  client.disconnect();
});
