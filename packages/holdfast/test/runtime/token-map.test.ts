import fc from "fast-check";
import { expect, test } from "vitest";

import { TokenMap } from "../../src/runtime/token-map.ts";

test("agrees with a Map after any insertions and removals", () => {
  const token = fc.oneof(
    fc.nat(40).map((ticket) => `attempt:client:${ticket}`),
    fc.constantFrom("", "a", "1:1", "another's"),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("set", "delete"), token), { maxLength: 200 }),
      (changes) => {
        const table = new TokenMap<number>();
        const map = new Map<string, number>();
        for (const [index, [change, name]] of changes.entries()) {
          if (change === "set") {
            table.set(name, index);
            map.set(name, index);
          } else {
            table.delete(name);
            map.delete(name);
          }
          expect(table.size).toBe(map.size);
        }
        for (const [, name] of changes) {
          expect(table.get(name)).toBe(map.get(name));
        }
        expect(new Set(table.items())).toEqual(new Set(map.values())); // each item once
      },
    ),
  );
});
