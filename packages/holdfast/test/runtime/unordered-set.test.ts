import { expect, test } from "vitest";

import { nowhere, Pool, type Pooled } from "../../src/runtime/unordered-set.ts";

function member(): Pooled {
  return { place: nowhere };
}

test("has whoever was added and not taken out, each once", () => {
  const pool = new Pool<Pooled>();
  const members = Array.from({ length: 5 }, member);
  const [first, , third, , last] = members as [Pooled, Pooled, Pooled, Pooled, Pooled];
  for (const each of [...members, first]) {
    pool.add(each);
  }
  for (const each of [first, last, first]) {
    pool.delete(each);
  }
  expect(new Set(pool.items)).toEqual(new Set(members.slice(1, 4)));
  expect(pool.items).toHaveLength(3);
  expect(pool.items[third.place]).toBe(third);
  pool.add(first);
  for (const each of members) {
    pool.delete(each);
  }
  expect(pool.items).toEqual([]);
});
