import fc from "fast-check";
import { expect, test } from "vitest";

import { QueueNode, LinkedQueue } from "../../src/runtime/linked-queue.ts";

test("keeps the order of arrival after removals at any position", () => {
  const change = fc.tuple(fc.constantFrom("add", "delete"), fc.nat(9));
  fc.assert(
    fc.property(fc.array(change, { maxLength: 100 }), (changes) => {
      const links = Array.from({ length: 10 }, (_, item) => new QueueNode(item));
      const queue = new LinkedQueue<number>();
      const set = new Set<number>();
      for (const [what, item] of changes) {
        queue[what](links[item] as QueueNode<number>);
        set[what](item);
        expect([queue.size, queue.first]).toEqual([set.size, [...set][0]]);
      }
      for (const item of set) {
        expect(queue.first).toBe(item);
        queue.delete(links[item] as QueueNode<number>);
      }
      expect(links.every(({ previous, next }) => previous === undefined && next === undefined)).toBe(true);
    }),
  );
});
