import { createRing, type Ring } from "holdfast/routing";
import { describe, expect, test } from "vitest";

const members = ["berlin-1", "berlin-2", "paris-1"];
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `node-${index}`);
const ownersOf = (ring: Ring): string[] =>
  Array.from({ length: ring.shards }, (_, shard) => ring.ownerOfShard(shard));

describe("a ring", () => {
  test("assigns the same owners whatever the order and the history of its members", () => {
    const direct = createRing(members, { shards: 512 });
    const changed = createRing([...members].reverse(), { shards: 512 });
    changed.add("paris-2");
    changed.ownerOf("key");
    changed.remove("paris-2");
    expect(changed.members).toEqual(members);
    expect(ownersOf(changed)).toEqual(ownersOf(direct));
  });

  test("assigns all keys of a shard to the owner of the shard", () => {
    const ring = createRing(members, { shards: 16 });
    for (let order = 0; order < 500; order += 1) {
      expect(ring.ownerOf(`order:${order}`)).toBe(ring.ownerOfShard(ring.shardOf(`order:${order}`)));
    }
    const owned = members.flatMap((member) => ring.shardsOf(member));
    expect(owned.toSorted((one, other) => one - other)).toEqual(
      Array.from({ length: 16 }, (_, shard) => shard),
    );
  });

  test("keeps the shard of a key while members change", () => {
    const ring = createRing(members);
    const before = ring.shardOf("order:555");
    ring.add("paris-2");
    ring.remove("berlin-1");
    expect(ring.shardOf("order:555")).toBe(before);
  });

  test("reports whether a member was added or removed", () => {
    const ring = createRing(["a", "a"], { shards: 8 });
    expect(ring.members).toEqual(["a"]);
    expect([ring.add("b"), ring.add("b"), ring.remove("a"), ring.remove("a")]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(ring.members).toEqual(["b"]);
    expect(ring.shardsOf("a")).toEqual([]);
    expect(ring.shardsOf("b")).toHaveLength(8);
  });

  test("without members refuses to name an owner", () => {
    const ring = createRing();
    expect(ring.shardOf("key")).toBeLessThan(ring.shards);
    expect(() => ring.ownerOf("key")).toThrow(new RangeError("The ring has no members; add one first"));
  });

  test("leaves members without a shard if it has fewer shards than members", () => {
    const ring = createRing(names(5), { shards: 2 });
    expect(names(5).map((member) => ring.shardsOf(member).length)).toEqual(
      expect.arrayContaining([1, 1, 0, 0, 0]),
    );
  });

  test.each([
    [
      () => createRing([], { replicas: 0 }),
      "Expected `replicas` to be an integer from 1 to 8192, got 0 (number)",
    ],
    [
      () => createRing([], { shards: 1.5 }),
      "Expected `shards` to be an integer from 1 to 4194304, got 1.5 (number)",
    ],
    [
      () => createRing([], { replica: 5 } as object),
      "Unknown option `replica`; expected one of replicas, shards",
    ],
    [
      () => createRing([""]),
      'Expected `member` to be a string of 1 to 512 bytes of well-formed UTF-8, got "" (string)',
    ],
    [
      () => createRing(["a"]).ownerOf(""),
      'Expected `key` to be a string of 1 to 512 bytes of well-formed UTF-8, got "" (string)',
    ],
    [
      () => createRing(["a"], { shards: 4 }).ownerOfShard(4),
      "Expected `shard` to be an integer from 0 to 3, got 4 (number)",
    ],
    [() => createRing(names(1_025), { replicas: 1 }), "Expected at most 1024 members, got one more"],
  ])("refuses an invalid value: %#", (call, message) => {
    expect(call).toThrow(message);
  });
});
