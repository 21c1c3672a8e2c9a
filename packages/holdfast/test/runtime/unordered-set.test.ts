import { expect, test } from "vitest";

import { absent, UnorderedSet, type Indexed } from "../../src/runtime/unordered-set.ts";

function member(): Indexed {
  return { index: absent };
}

test("contains every item that was added and not removed, once", () => {
  const pool = new UnorderedSet<Indexed>();
  const members = Array.from({ length: 5 }, member);
  const [first, , third, , last] = members as [Indexed, Indexed, Indexed, Indexed, Indexed];
  for (const each of [...members, first]) {
    pool.add(each);
  }
  for (const each of [first, last, first]) {
    pool.delete(each);
  }
  expect(new Set(pool.items)).toEqual(new Set(members.slice(1, 4)));
  expect(pool.items).toHaveLength(3);
  expect(pool.items[third.index]).toBe(third);
  pool.add(first);
  for (const each of members) {
    pool.delete(each);
  }
  expect(pool.items).toEqual([]);
});
