import { inspect } from "node:util";

import { createLocks, isLockError, LockError, WaitTimeoutError, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { createRing } from "holdfast/routing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { lockState } from "../src/lock-state.ts";

let locks: Locks;

beforeEach(() => {
  locks = createLocks(memory(), { owner: "plain" });
});

afterEach(() => locks.close());

describe("JSON", () => {
  test("of a holder, a state and a lease has the fencing token as a decimal string", async () => {
    const lease = await locks.acquire("key");
    const fencingToken = lease.fencingToken.toString();
    const state = await locks.inspect("key");
    expect(json(lease)).toMatchObject({ key: "key", owner: "plain", fencingToken });
    expect(json(state)).toMatchObject({
      key: "key",
      fencingToken,
      holders: [{ owner: "plain", fencingToken }],
    });
    expect(json(state.holders)).toMatchObject([{ fencingToken }]);
    const nodes = [{ node: "one", held: true, fencingToken: lease.fencingToken }];
    expect(json(lockState({ ...state, nodes }).nodes)).toMatchObject([{ node: "one", fencingToken }]);
    expect(json(await locks.election("key").leader())).toMatchObject({ owner: "plain", fencingToken });
    const [first] = await takeOne(locks.admin.watch("key"));
    expect(json(first)).toMatchObject({ type: "snapshot", state: { holders: [{ fencingToken }] } });
  });

  test("of the holder in an error can be sent as it is", async () => {
    const lease = await locks.acquire("key");
    const error = await locks.acquire("key", { waitMs: 0 }).catch((caught: unknown) => caught);
    expect(isLockError(error, "wait-timeout") && json(error.holder)).toMatchObject({
      owner: "plain",
      fencingToken: lease.fencingToken.toString(),
    });
  });

  test("of the other objects names them", async () => {
    expect(json(locks)).toEqual({ owner: "plain", guarantee: "process", isClosed: false });
    const election = locks.election("key");
    expect(json(election)).toEqual({ key: "key", leads: false });
    await election.campaign();
    expect(json(election)).toEqual({ key: "key", leads: true });
    expect(json(createRing(["a"], { replicas: 8, shards: 16 }))).toEqual({
      members: ["a"],
      shards: 16,
      replicas: 8,
    });
  });
});

test("a state can be copied by `structuredClone`, and its copy has all fields", async () => {
  await locks.acquire("key");
  const state = await locks.inspect("key");
  const copy = structuredClone(state);
  expect(copy).toEqual(state);
  expect(typeof copy.holders[0]?.fencingToken).toBe("bigint");
  expect(Object.keys(state)).not.toContain("toJSON");
});

describe("`console.log`", () => {
  test("shows leases of every kind by their keys, and no secret", async () => {
    const lease = await locks.acquire("key");
    const { token } = (await locks.acquire("other")).transfer();
    const leases = [
      lease,
      await locks.reentrant("reentrant").acquire(),
      await locks.all(["a", "b"]).acquire(),
      await locks.readWrite("rw").read.acquire(),
      await locks.adopt({ ...(await locks.acquire("adopted")).transfer() }),
    ];
    for (const { key, ...shown } of leases.map((one) => ({ key: one.key, text: inspect(one) }))) {
      expect(shown.text).toMatch(new RegExp(`^Lease \\{\\s+key: '${key}'`));
      expect(shown.text).not.toContain(token);
    }
    expect(inspect({ lease: [{ lease }] }, { depth: 2 })).toBe("{ lease: [ { lease: [Lease] } ] }");
  });

  test("shows `Locks`, elections and rings", () => {
    expect(inspect(locks)).toBe("Locks { owner: 'plain', guarantee: 'process', isClosed: false }");
    expect(inspect(locks.election("key"))).toBe("Election { key: 'key', leads: false }");
    expect(inspect(createRing([], { shards: 16 }))).toMatch(/^Ring \{ members: \[\], shards: 16/);
  });
});

test("a code narrows an error to its class", () => {
  const error: unknown = new WaitTimeoutError("key", 10, { owner: "other", fencingToken: 3n }, 2);
  if (!isLockError(error, "wait-timeout")) {
    throw new Error("unreachable");
  }
  expect([error.holder?.fencingToken, error.position]).toEqual([3n, 2]);
  const code = undefined;
  expect(isLockError(error, code) && error.code).toBe("wait-timeout");
  expect(isLockError(new LockError("m", { code: "closed" }), "wait-timeout")).toBe(false);
});

function json(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

async function takeOne<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  for await (const value of iterable) {
    return [value];
  }
  return [];
}
