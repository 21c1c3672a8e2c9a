import { expect, test } from "vitest";

import { murmur3 } from "../../src/routing/murmur3.ts";

test.each([
  ["", 0],
  ["a", 0x3c2569b2],
  ["ab", 0x9bbfd75f],
  ["abc", 0xb3dd93fa],
  ["abcd", 0x43ed676a],
  ["hello", 0x248bfa47],
  ["hello, world", 0x149bbb7f],
  ["The quick brown fox jumps over the lazy dog", 0x2e4ff723],
])("the hash of %j is that of the published function", (text, hash) => {
  expect(murmur3(text)).toBe(hash);
});
