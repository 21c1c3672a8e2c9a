import { LockError } from "holdfast";
import fc from "fast-check";
import { expect, test } from "vitest";

import {
  channelOf,
  clientKey,
  counterKey,
  isReserved,
  KeySpace,
} from "../../../../src/drivers/redis/protocol/keys.ts";

const space = new KeySpace("", "lock:");

/** The part of a key that Redis hashes: between the first `{` and the first `}` after it, unless empty. */
function hashed(key: string): string {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

test("a lock's own key is the client's prefix, ours, and the key", () => {
  expect(new KeySpace("app:", "lock:").keysOf("order:1")[0]).toBe("app:lock:order:1");
});

test("derived keys have a name space of their own, and a hash tag of the whole lock", () => {
  expect(space.keysOf("order:1")).toEqual([
    "lock:order:1",
    "holdfast:queue:{lock:order:1}",
    "holdfast:info:{lock:order:1}",
  ]);
});

test("on a node of a quorum each lock has a counter of its own after these keys", () => {
  const keys = new KeySpace("", "lock:", true).keysOf("order:1");
  expect(keys).toEqual([...space.keysOf("order:1"), "holdfast:fence:{lock:order:1}"]);
});

test("a server has one counter, and each slot of a cluster its own, in that slot", () => {
  expect(counterKey()).toBe("holdfast:fence");
  expect(hashed(counterKey("a1"))).toBe("a1");
  for (const counter of [counterKey(), counterKey("a1")]) {
    expect(isReserved(counter)).toBe(true);
    expect(() => new KeySpace("", "").keysOf(counter)).toThrow(LockError);
  }
});

test("without a prefix, the keys of this library are no locks in a list", () => {
  const all = new KeySpace("", "");
  expect(all.keyOf("order:1")).toBe("order:1");
  expect([counterKey(), "holdfast:layout:records:{order:1}"].map((key) => all.keyOf(key))).toEqual([
    undefined,
    undefined,
  ]);
});

test("a lock with a hash tag of its own keeps it", () => {
  expect(space.keysOf("{user:7}:mail")[1]).toBe("holdfast:queue:lock:{user:7}:mail:");
});

const braces = fc.string({ unit: fc.constantFrom("{", "}", "a", ":"), maxLength: 8 });

test("all keys of a lock share its slot, unless stray braces forbid it", () => {
  fc.assert(
    fc.property(braces, (key) => {
      const [lock, ...derived] = space.keysOf(key);
      const hasStrayBraces = hashed(lock) === lock && /[{}]/.test(lock);
      fc.pre(!hasStrayBraces);
      for (const other of derived) {
        expect(hashed(other)).toBe(hashed(lock));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("no two locks share a derived key, and none is a derived key", () => {
  const bare = new KeySpace("", "");
  fc.assert(
    fc.property(braces, braces, (one, other) => {
      fc.pre(one !== other);
      const [all, others] = [bare.keysOf(one), bare.keysOf(other)];
      expect(all.filter((key) => (others as readonly string[]).includes(key))).toEqual([]);
    }),
    { numRuns: 5_000 },
  );
  for (const derived of [...space.keysOf("k").slice(1), clientKey("c"), channelOf("c")]) {
    expect(derived.startsWith("holdfast:")).toBe(true);
    expect(() => bare.keysOf(derived)).toThrow(LockError);
  }
});

test("no prefix reaches the library's own name space, however it is built", () => {
  for (const [client, prefix] of [
    ["", "holdfast:"],
    ["holdfast:", "lock:"],
    ["hold", "fast:lock:"],
  ] as const) {
    expect(() => new KeySpace(client, prefix)).toThrow(
      'Expected `prefix` to be not to begin with "holdfast:"',
    );
  }
  expect(() => new KeySpace("", "hold").keysOf("fast:x")).toThrow(LockError);
  expect(new KeySpace("", "holdfast").keysOf("x")[0]).toBe("holdfastx");
});

test("a lock's key yields the caller's key, and foreign keys yield none", () => {
  const own = new KeySpace("app:", "lock:");
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (key) => {
      expect(own.keyOf(own.keysOf(key)[0])).toBe(key);
    }),
  );
  expect(own.keyOf("lock:order")).toBeUndefined();
});

test("a pattern finds the keys that begin with a prefix, character by character", () => {
  expect(space.patternOf("order:")).toBe("lock:order:*");
  expect(space.patternOf("a*b?c[d]e\\f")).toBe("lock:a\\*b\\?c\\[d\\]e\\\\f*");
});
