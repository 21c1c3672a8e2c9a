import { describe, expect, test } from "vitest";

import { compareTickets, decodeName, encodeName, Paths } from "../../../src/drivers/zookeeper/paths.ts";

describe("the names of nodes", () => {
  const paths = new Paths("/holdfast");

  test.each(["a", "order:555/é", ".", "..", "a-b", "%41", "\0\u{1f512}\u007f", "ünï"])(
    "give the key %j back",
    (key) => {
      const name = encodeName(key);
      expect(name).toMatch(/^[\w%]+$/);
      expect(decodeName(name)).toBe(key);
    },
  );

  test("show the grant and the queue in its order", () => {
    const view = paths.view("k", [
      "wait-b-0000000007",
      "grant",
      "wait-c-t3-0000000009",
      "held-a-1f",
      "wait-d-0000000005",
      "other",
      "wait-%-0000000001",
      "held-%zz-1",
      "wait-a.b-0000000002",
    ]);
    expect(view.held).toEqual({ path: "/holdfast/locks/k/held-a-1f", token: "a" });
    expect(view.entries.map(({ token, ticket }) => [token, ticket])).toEqual([
      ["c", 3],
      ["d", 5],
      ["b", 7],
    ]);
    expect(view.entries[0]?.path).toBe("/holdfast/locks/k/wait-c-t3-0000000009");
  });

  test("keep the order of sequence numbers that have wrapped around", () => {
    const view = paths.view("k", ["wait-late--2147483648", "wait-early-2147483647"]);
    expect(view.entries.map(({ token }) => token)).toEqual(["early", "late"]);
    expect(compareTickets(-2_147_483_648, 2_147_483_647)).toBeGreaterThan(0);
  });

  test("may be right under the root of the server", () => {
    expect(new Paths("/").lock("k")).toBe("/locks/k");
  });
});
