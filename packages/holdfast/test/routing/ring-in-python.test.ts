import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { createRing } from "holdfast/routing";
import { expect, test } from "vitest";

import { murmur3 } from "../../src/routing/murmur3.ts";
import { onPython } from "../support/servers.ts";

const script = fileURLToPath(new URL("ring.py", import.meta.url));

interface Computed {
  readonly hashes: number[];
  readonly shards: number[];
  readonly owners: string[];
  readonly sizes: number[];
}

function computedInPython(request: object): Computed {
  const { stdout, stderr } = spawnSync("python3", [script], {
    input: JSON.stringify(request),
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Computed;
}

const texts = ["a", "ab", "abc", "abcd", "order:555", "größe", "価格", "🔒", "\u{ffff}"];

onPython("a program in Python that follows the documentation", () => {
  test.each([
    { members: ["one"], replicas: 1, shards: 1 },
    { members: ["b", "a", "c"], replicas: 16, shards: 100 },
    { members: ["\u{ffff}", "🔒", "größe", "z"], replicas: 64, shards: 1_000 }, // sorted by bytes, not by UTF-16
    { members: Array.from({ length: 40 }, (_, at) => `10.0.0.${at}:8080`), replicas: 128, shards: 65_536 },
  ])("computes the same hashes, shards and owners: %#", ({ members, replicas, shards }) => {
    const keys = [...texts, ...Array.from({ length: 10_000 }, (_, at) => `order:${at}`)];
    const ring = createRing(members, { replicas, shards });
    expect(computedInPython({ members, replicas, shards, keys })).toEqual({
      hashes: keys.map(murmur3),
      shards: keys.map((key) => ring.shardOf(key)),
      owners: keys.map((key) => ring.ownerOf(key)),
      sizes: members.map((member) => ring.shardsOf(member).length),
    });
  });
});
