import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { expect, test } from "vitest";

import { judge } from "../../chaos/judge/judge.ts";
import { granted, historyFixture, released } from "./planted-history.ts";

const { folder, plant } = historyFixture();

const reads = { key: "book-1", lockKind: "read" } as const;
const writes = { key: "book-1", lockKind: "write" } as const;
/** Permits of a semaphore with four permits. */
const permits = (count: number) => ({ key: "permits-1", lockKind: "semaphore", permits: count }) as const;

test("the report shows a violation", async () => {
  await plant({
    clients: {
      "client-0.1": [...granted(1, 100, 10), ...released(1, 200)],
      "client-1.2": [...granted(1, 150, 11), ...released(1, 300)],
    },
  });
  const { summary, violations, figures } = await judge(folder());
  expect(violations).toHaveLength(1);
  expect(figures).toMatchObject({ grants: 2, losses: 0 });
  expect(summary).toContain("client-1.2#1 (11) while client-0.1#1 (10) was valid for 50.000 ms more");
  expect(await readFile(join(folder(), "report.md"), "utf8")).toContain("**violated: 1**");
});

test("the report shows each kind of lock, and the largest number of valid leases at once", async () => {
  await plant({
    clients: {
      "client-0.1": [
        ...granted(1, 100, 10, reads),
        ...granted(2, 100, 20, permits(3)),
        ...released(1, 200),
        ...released(2, 200),
      ],
      "client-1.2": [...granted(1, 150, 11, reads), ...released(1, 250)],
      "client-2.3": [...granted(1, 300, 12, writes), ...released(1, 350)],
    },
  });
  const { figures } = await judge(folder());
  expect(figures.maxConcurrent).toEqual({ "book-1": "2 readers", "permits-1": "3 of 4 permits" });
  expect(figures.byLock).toMatchObject({
    read: { requests: 2, grants: 2, losses: 0 },
    write: { requests: 1, grants: 1 },
    semaphore: { requests: 1, grants: 1 },
  });
});
