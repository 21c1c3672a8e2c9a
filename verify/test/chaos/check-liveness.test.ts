import { describe, expect, test } from "vitest";

import type { ClientRecord, CoordinatorRecord } from "../../chaos/judge/history.ts";
import { endOfRun, granted, historyFixture } from "./planted-history.ts";

const { finds, violated } = historyFixture();

describe("waits", () => {
  const requested: ClientRecord = {
    e: "requested",
    at: 100,
    requestId: 1,
    key: "hot",
    kind: "acquire",
    waitMs: 1_000,
  };

  test("a request is settled", async () => {
    await finds(["waits"], { "client-0.1": [requested] });
  });

  test("a request is settled in time", async () => {
    const late: ClientRecord = { e: "refused", at: 7_000, requestId: 1, code: "wait-timeout" };
    await finds(["waits"], { "client-0.1": [requested, late] });
  });

  test("a request may be late by the time for which its process was stalled", async () => {
    const records: ClientRecord[] = [
      requested,
      { e: "stalled", at: 7_000, since: 2_000 },
      { e: "refused", at: 7_001, requestId: 1, code: "wait-timeout" },
    ];
    await finds([], { "client-0.1": records });
  });

  test("a request of a killed process is not judged", async () => {
    const found = await violated({
      clients: { "client-0.1": [requested] },
      coordinator: [{ e: "killed", at: 300, process: "client-0.1" }, endOfRun],
    });
    expect(found).toEqual([]);
  });

  test("a release is settled", async () => {
    const records: ClientRecord[] = [
      ...granted(1, 100, 10),
      { e: "releasing", at: 200, requestId: 1, validUntil: 900 },
    ];
    await finds(["waits"], { "client-0.1": records });
  });
});

describe("a loss", () => {
  test("is reported on time", async () => {
    const records: ClientRecord[] = [
      ...granted(1, 100, 10),
      { e: "unreported", at: 1_150, requestId: 1, validUntil: 1_100 },
      { e: "lost", at: 1_160, requestId: 1, reason: "expired" },
    ];
    await finds(["loss-notice"], { "client-0.1": records });
  });

  test("is reported at all", async () => {
    await finds(["loss-notice"], { "client-0.1": granted(1, 100, 10) });
  });
});

describe("in a quiet period", () => {
  test("every client gets the lock", async () => {
    const records: ClientRecord[] = [
      { e: "requested", at: 100, requestId: 1, key: "hot", kind: "probe", waitMs: 20_000 },
      { e: "refused", at: 20_100, requestId: 1, code: "wait-timeout" },
    ];
    await finds(["quiet-period"], { "client-0.1": records });
  });

  test("every process comes to rest", async () => {
    const restless: CoordinatorRecord = { e: "not-quiescent", at: 100, round: 1, process: "client-0.1" };
    expect(await violated({ coordinator: [restless, endOfRun] })).toEqual(["quiet-period"]);
  });

  test("no keys remain on the servers", async () => {
    const left: CoordinatorRecord = { e: "residue", at: 100, round: 1, node: 0, keys: ["lock:hot (-1 ms)"] };
    expect(await violated({ coordinator: [left, endOfRun] })).toEqual(["residue"]);
  });

  test("the run reaches its end", async () => {
    expect(await violated({ coordinator: [{ e: "phase", at: 1, phase: "storm", round: 1 }] })).toEqual([
      "quiet-period",
    ]);
  });
});

test("memory must not grow", async () => {
  const records = Array.from({ length: 30 }, (_, index): ClientRecord => ({
    e: "memory",
    at: index * 1_000,
    bytes: (20 + index) * 1024 * 1024,
  }));
  await finds(["memory"], { "client-0.1": records });
});

describe("a process", () => {
  test("must not have an unhandled rejection", async () => {
    const unhandled: ClientRecord = { e: "unhandled-error", at: 100, error: "unhandled rejection: Error" };
    await finds(["unhandled-error"], { "client-0.1": [unhandled] });
  });

  test("must not crash", async () => {
    const crashed: CoordinatorRecord = { e: "crashed", at: 100, process: "client-0.1", how: "code 1" };
    expect(await violated({ clients: { "client-0.1": [] }, coordinator: [crashed, endOfRun] })).toEqual([
      "unhandled-error",
    ]);
  });

  test("must not get an unknown error", async () => {
    const records: ClientRecord[] = [
      { e: "requested", at: 100, requestId: 1, key: "hot", kind: "acquire", waitMs: 1_000 },
      { e: "refused", at: 200, requestId: 1, code: "strange: TypeError" },
    ];
    await finds(["unhandled-error"], { "client-0.1": records });
  });
});
