import { expect, test } from "vitest";

import { open, onManualClock, engine, unreachable } from "../support/lease-fixture.ts";

onManualClock();

const reason = "the pod died";

test("a limit ends the work, and a second call breaks the rest", async () => {
  const [dead, operator] = [open({}, { defaults: { owner: "pod-7" } }), open()];
  for (let i = 0; i < 40; i += 1) {
    await dead.acquire(`k${i}`);
  }
  const first = await operator.admin.breakOwner("pod-7", { reason, limit: 39 });
  expect(first).toMatchObject({ isComplete: false, results: expect.objectContaining({ length: 39 }) });
  const second = await operator.admin.breakOwner("pod-7", { reason, limit: 1 });
  expect(second).toMatchObject({ isComplete: true, results: [{ broken: true }] });
  expect(dead.held()).toEqual([]);
});

test("an abort ends the work between two steps, and onResult has reported the broken grants", async () => {
  const [dead, operator] = [open({}, { defaults: { owner: "pod-7" } }), open()];
  for (let i = 0; i < 40; i += 1) {
    await dead.acquire(`k${i}`);
  }
  const controller = new AbortController();
  const broken: string[] = [];
  const breaking = operator.admin.breakOwner("pod-7", {
    reason,
    signal: controller.signal,
    onResult: ({ key }) => {
      broken.push(key);
      controller.abort(new Error("enough"));
    },
  });
  await expect(breaking).rejects.toThrow("enough");
  expect(broken).toHaveLength(16);
  expect(dead.held()).toHaveLength(24);
});

test("a break without a reply is unknown, and the others are broken", async () => {
  const dead = open({}, { defaults: { owner: "pod-7" } });
  const held = await Promise.all(["a", "b", "c"].map((key) => dead.acquire(key)));
  const operator = open({
    breakGrant: (key, ...rest) =>
      key === "b" ? Promise.reject(unreachable) : engine.breakGrant(key, ...rest),
  });
  const { results } = await operator.admin.breakOwner("pod-7", { reason });
  expect(results.map(({ key, broken, error }) => [key, broken, error])).toEqual([
    ["a", true, undefined],
    ["b", "unknown", unreachable],
    ["c", true, undefined],
  ]);
  expect(JSON.parse(JSON.stringify(results[0]))).toEqual({
    key: "a",
    fencingToken: held[0]?.fencingToken.toString(),
    broken: true,
    auditId: "1",
  });
});

test("a semaphore's grants of one owner are broken, and a page that repeats a key repeats no break", async () => {
  const [dead, other] = [
    open({}, { defaults: { owner: "pod-7" } }),
    open({}, { defaults: { owner: "pod-8" } }),
  ];
  await dead.semaphore("s", { limit: 3 }).acquire();
  await dead.semaphore("s", { limit: 3 }).acquire();
  await other.semaphore("s", { limit: 3 }).acquire();
  const pages = ["1", "2", null];
  const operator = open({
    list: async (query) => ({
      ...(await engine.list({ ...query, cursor: null })),
      cursor: pages.shift() ?? null,
    }),
  });
  const { results } = await operator.admin.breakOwner("pod-7", { reason });
  expect(results.map(({ broken }) => broken)).toEqual([true, true]);
  expect(other.held()).toMatchObject([{ key: "s", kind: "semaphore", permits: 1 }]);
});

test("bad options are refused before any I/O, and a closed Locks breaks nothing", async () => {
  const locks = open();
  const call = (owner: unknown, options: unknown) => () =>
    locks.admin.breakOwner(owner as string, options as { reason: string });
  expect(call("", { reason })).toThrow(/Expected `owner`/);
  expect(call("pod-7", {})).toThrow(/Expected `reason`/);
  expect(call("pod-7", { reason, limit: 0 })).toThrow(/Expected `limit` to be an integer from 1 to 100000/);
  expect(call("pod-7", { reason, grants: [{ key: "k", fencingToken: 1 }] })).toThrow(
    /Expected `fencingToken`/,
  );
  expect(call("pod-7", { reason, onResult: 1 })).toThrow(/Expected `onResult` to be a function/);
  expect(call("pod-7", { reason, force: true })).toThrow(/Unknown option `force`/);
  await locks.close();
  await expect(locks.admin.breakOwner("pod-7", { reason })).rejects.toMatchObject({ code: "closed" });
});
