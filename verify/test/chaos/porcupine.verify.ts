import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import { granted, historyFixture, released, type PlantedHistory } from "./planted-history.ts";

const { folder, plant } = historyFixture();
const program = fileURLToPath(new URL("../../dist/chaos/check.js", import.meta.url));

async function judged(planted: PlantedHistory): Promise<{ status: number | null; text: string }> {
  await plant(planted);
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, folder(), "--porcupine"], {
    encoding: "utf8",
  });
  return { status, text: stdout + stderr };
}

test("a checker of others finds an order of a right history", async () => {
  const judgement = await judged({
    clients: {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200), ...granted(2, 500, 13, { until: 600 })],
      "client-1.2": [...granted(1, 202, 12, { requestedAt: 90 }), ...released(1, 300)],
      "client-2.3": [...granted(1, 700, 14), ...released(1, 800)],
    },
  });
  expect(judgement).toEqual({ status: 0, text: "8 operations of 1 keys are linearizable\n" });
});

test.each([
  ["two holders at once", 199, 12],
  ["a token that falls", 202, 9],
])("and none of a history with %s", async (_, at, token) => {
  const { status, text } = await judged({
    clients: {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, at, token), ...released(1, 300)],
    },
  });
  expect(status, text).toBe(1);
  expect(text).toContain("hot: Illegal, 4 operations");
});

test("nor of one with more readers than a writer allows", async () => {
  const book = { key: "book-1" } as const;
  const { status, text } = await judged({
    clients: {
      "client-0.1": [...granted(1, 100, 10, { ...book, lockKind: "write" }), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11, { ...book, lockKind: "read" }), ...released(1, 300)],
    },
  });
  expect(status, text).toBe(1);
});
