import type { Locks } from "holdfast";
import type { Connection } from "holdfast/redis";
import { beforeEach, expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { commandText } from "../../../support/diagnostics-log.ts";
import { clock, onSingleServer, process, server, within } from "../../../support/single-server.ts";

// A try gets its result from one reply. Another request of the same try may still be on its way.

const ttlMs = 30_000;
const lockKey = "lock:k";
/** A request is not executed later than this after its sending: `commandTimeoutMs` plus 3 s. */
const latestMs = 5_000;

let others: Locks;

onSingleServer();

beforeEach(async () => {
  others = await process();
});

test("a try that was repeated over a new connection leaves no grant of its first request", async () => {
  let execute: (() => Promise<unknown>) | undefined;
  const resetsOnce: Connection = withReplies((call, send) => {
    if (execute || commandText(call[2])[0] !== "acquire") {
      return send();
    }
    execute = send;
    return Promise.reject(new Error("Connection is closed."));
  });
  const locks = await process(resetsOnce);
  const lease = await within(10, others.acquire("k", { ttlMs }));
  expect(await within(1_000, locks.tryAcquire("k", { ttlMs }))).toBeNull();
  expect(await within(10, lease.release())).toBe(true);
  void execute?.();
  await clock.advance(10);
  expect(server.get(lockKey)).not.toBeNull();
  await clock.advance(latestMs + 1_000);
  expect(server.get(lockKey)).toBeNull();
});

test("a request that is executed after the expiry of its lease leaves no grant", async () => {
  let execute: (() => void) | undefined;
  let lateNumber: unknown;
  const delaysOnce: Connection = withReplies(async (call, send) => {
    if (execute || commandText(call[2])[0] !== "acquire") {
      return send();
    }
    await new Promise<void>((resolve) => {
      execute = resolve;
    });
    lateNumber = await send(); // the short reply of a grant
    return lateNumber;
  });
  const locks = await process(delaysOnce);
  const lease = await within(2_500, locks.acquire("k", { ttlMs: 1_000, renew: false, waitMs: 10_000 }));
  lease.throwIfLost();
  await clock.advance(2_200);
  expect(server.get(lockKey)).toBeNull();
  execute?.();
  await clock.advance(10);
  expect(lateNumber).toBeGreaterThan(Number(lease.fencingToken)); // it was granted the lock
  expect(server.get(lockKey)).toBeNull();
});

test("a try whose requests were all refused by the server sends no clean-up", async () => {
  const operations: string[] = [];
  const refusing: Connection = withReplies((call, send) => {
    const [name = ""] = commandText(call[2]);
    operations.push(name);
    return name === "acquire"
      ? Promise.reject(new Error("LOADING Redis is loading the dataset in memory"))
      : send();
  });
  const locks = await process(refusing);
  await expect(within(3_000, locks.tryAcquire("k", { ttlMs }))).rejects.toMatchObject({
    code: "engine-unavailable",
    outcome: "none",
  });
  await clock.advance(latestMs);
  expect(operations).not.toContain("release");
});

test("a request that the script refuses for a moment is sent again", async () => {
  let refusals = 0;
  const refusesOnce: Connection = withReplies(async (call, send) => {
    if (refusals > 0 || commandText(call[2])[0] !== "acquire") {
      return send();
    }
    refusals += 1;
    return [await send(), ["error", "LOADING Redis is loading the dataset in memory"]];
  });
  const locks = await process(refusesOnce);
  await within(2_000, locks.acquire("k", { ttlMs, waitMs: 1_000 }));
  expect(refusals).toBe(1);
});

test("a malformed reply does not leave the caller without a result", async () => {
  const malformed: Connection = withReplies(async (call, send) => {
    const reply = await send();
    return commandText(call[2])[0] === "acquire" ? [(reply as unknown[])[0]] : reply;
  });
  const locks = await process(malformed);
  await expect(within(5_000, locks.acquire("k", { ttlMs, waitMs: 1_000 }))).rejects.toMatchObject({
    code: "engine-unavailable",
  });
});

type Call = Parameters<Connection["run"]>;

/** A connection with other replies to its scripts. */
function withReplies(run: (call: Call, send: () => Promise<unknown>) => Promise<unknown>): Connection {
  const connection = server.connect();
  return altered(connection, { run: (...call) => run(call, () => connection.run(...call)) });
}
