import type { Locks } from "holdfast";
import { faulty, type FaultInjector } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { commandText } from "../../../support/diagnostics-log.ts";
import { clock, onSingleServer, pass, process, server, within } from "../../../support/single-server.ts";
import { GatedConnection } from "./gated-connection.ts";

// One server. Requests, replies and notifications that arrive late or in another order.

const ttlMs = 30_000;
const lock = "lock:k";
const queue = "holdfast:queue:{lock:k}";

let others: Locks;

onSingleServer();

beforeEach(async () => {
  others = await process();
});

test("a grant by notification to a waiter that has left ends with its claim", async () => {
  const { locks, faults } = await faultyProcess();
  const held = await within(10, others.acquire("k", { ttlMs }));
  faults.duplicate(1, 200); // a duplicate queues the request again after the waiter has left
  const refused = locks.acquire("k", { ttlMs, waitMs: 100 }).catch((error: unknown) => error);
  await pass(150);
  expect(await refused).toMatchObject({ code: "wait-timeout" });
  expect(server.dump(queue)).toBeUndefined();
  await pass(100);
  expect(server.dump(queue)).toBeDefined();
  clock.jumpWall(-1_000); // the deadline is still to come by the server's clock
  await within(10, held.release());
  await pass(3_010);
  expect(server.get(lock)).toBeNull();
});

test("a late notification does not end an extended lease, even if the server's clock was set back", async () => {
  const { locks, faults } = await faultyProcess();
  const held = await within(10, others.acquire("k", { ttlMs }));
  const waiting = locks.acquire("k", { ttlMs });
  await pass(100);
  faults.delay({ messageMs: 3 * ttlMs });
  await within(10, held.release());
  const lease = await within(6_000, waiting); // by reply
  faults.delay({});
  clock.jumpWall(-4 * ttlMs);
  await pass(3 * ttlMs);
  expect(lease.signal.aborted).toBe(false);
  expect(await within(10, others.tryAcquire("k"))).toBeNull();
  expect(await within(10, lease.release())).toBe(true);
});

test("a grant without a reply, to a try, is released in the background", async () => {
  const { locks, faults } = await faultyProcess();
  faults.dropReply(1);
  const tried = locks.tryAcquire("k", { ttlMs }).catch((error: unknown) => error);
  await pass(10);
  expect(server.get(lock)).not.toBeNull();
  await pass(2_000);
  expect(await tried).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
  expect(server.get(lock)).toBeNull();
});

test("a queue entry that is added after its waiter has left is removed", async () => {
  const held = await within(10, others.acquire("k", { ttlMs }));
  const gate = new GatedConnection(server.connect());
  const locks = await process(gate);
  gate.isClosed = true;
  const refused = locks.acquire("k", { ttlMs, waitMs: 500 }).catch((error: unknown) => error);
  await pass(1_000);
  expect(await refused).toMatchObject({ code: "engine-unavailable" });
  clock.jumpWall(-10_000);
  gate.open();
  await pass(10);
  expect(server.dump(queue)).toBeUndefined();
  expect(await within(10, held.release())).toBe(true);
});

test("a lease is valid from its request, and so is its extension", async () => {
  const { locks, faults } = await faultyProcess();
  faults.delay({ replyMs: 300, messageMs: 0 });
  const lease = await within(350, locks.acquire("k", { ttlMs, renew: false }));
  expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs * 0.99 - 2 - 300);
  await within(350, lease.extend(ttlMs));
  expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs * 0.99 - 2 - 300);
});

test("a grant whose reply comes after its TTL is requested again", async () => {
  const { locks, faults } = await faultyProcess();
  faults.delay({ replyMs: 600 });
  const left = locks.acquire("k", { ttlMs: 500, renew: false }).then((lease) => lease.remainingMs());
  await pass(500);
  faults.delay({});
  expect(await within(1_000, left)).toBeGreaterThan(0);
});

test("a grant by notification soon has its whole TTL, even without renewal", async () => {
  const { locks } = await faultyProcess();
  const held = await within(10, others.acquire("k", { ttlMs }));
  const acquired = locks.acquire("k", { ttlMs, renew: false });
  await pass(100);
  await within(10, held.release());
  const lease = await within(10, acquired);
  await pass(50);
  expect(lease.remainingMs()).toBeGreaterThan(ttlMs * 0.9);
});

test("a waiter without a subscription adds no queue entry", async () => {
  const gate = new GatedConnection(server.connect());
  const locks = await process(gate);
  const held = await within(10, others.acquire("k", { ttlMs }));
  gate.listener?.disconnected();
  const waiting = locks.acquire("k", { ttlMs }).catch((error: unknown) => error);
  await pass(20);
  expect(server.dump(queue)).toBeUndefined();
  gate.listener?.connected();
  await pass(1_000);
  expect(server.dump(queue)).toBeDefined();
  await within(10, held.release());
  expect(await within(10, waiting)).toMatchObject({ key: "k" });
});

test("a new grant to the next caller is another attempt, with another token", async () => {
  const { locks } = await faultyProcess();
  const attempts = new Set<string | undefined>();
  const first = await within(10, locks.acquire("k", { ttlMs }));
  attempts.add(server.get(lock)?.split(":")[0]);
  const next = locks.acquire("k", { ttlMs, renew: false }); // not by a handover in memory
  await pass(5);
  await within(10, first.release());
  const second = await within(10, next);
  attempts.add(server.get(lock)?.split(":")[0]);
  expect(attempts.size).toBe(2);
  expect(await within(10, second.release())).toBe(true);
});

test("a release that is refused at first returns true, also if the next caller aborts", async () => {
  const { faults, released } = await passedOnInVain("connect ECONNREFUSED");
  faults.refuse(null);
  expect(await within(3_000, released)).toBe(true);
  expect(server.get(lock)).toBeNull();
});

test("a release that is refused at first returns false if the server lost the grant before", async () => {
  const { faults, released } = await passedOnInVain("LOADING Redis is loading the dataset in memory");
  server.flushAll();
  faults.refuse(null);
  expect(await within(3_000, released)).toBe(false);
});

test("a release with a next caller returns true although its reply was lost", async () => {
  const { locks, faults } = await faultyProcess();
  const lease = await within(10, locks.acquire("k", { ttlMs }));
  const next = locks.acquire("k", { ttlMs, renew: false });
  await pass(5);
  let lost = 0;
  faults.dropReply(({ args }) => commandText(args)[0] === "release" && (lost += 1) === 1, "reset");
  faults.refuse(new Error("LOADING Redis is loading the dataset in memory"));
  const released = lease.release();
  await pass(300);
  faults.refuse(null);
  await within(3_000, next);
  expect(lost).toBeGreaterThan(0);
  expect(await within(3_000, released)).toBe(true);
});

test.each(["with a next caller", "without a next caller"])(
  "a release %s takes no longer than its budget",
  async (how) => {
    const { locks, faults } = await faultyProcess();
    const lease = await within(10, locks.acquire("k", { ttlMs }));
    if (how === "with a next caller") {
      locks.acquire("k", { ttlMs, renew: false }).catch(() => undefined);
      await pass(5);
    }
    const token = server.get(lock);
    faults.refuse(new Error("connect ECONNREFUSED"));
    const released = lease.release().catch((error: unknown) => error);
    await pass(1_500);
    faults.refuse(null);
    faults.freeze();
    expect(await within(500, released)).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
    faults.thaw();
    await pass(10_000);
    expect(server.get(lock)).not.toBe(token); // the release has continued
  },
);

test("a request that the server executed too late is repeated with a new token, which then holds the lock", async () => {
  const inner = server.connect();
  const tokens: (string | undefined)[] = [];
  const locks = await process(
    altered(inner, {
      run: (script, keys, args) => {
        const all = commandText(args);
        const at = all.indexOf("acquire");
        if (at >= 0) {
          tokens.push(all[at + 1]);
        }
        const isFirst = at >= 0 && tokens.length === 1;
        const latest = all.at(-1);
        return inner.run(script, keys, isFirst ? args.map((arg) => (arg === latest ? "1" : arg)) : args);
      },
    }),
  );
  const lease = await within(50, locks.acquire("k", { ttlMs }));
  expect(tokens).toHaveLength(2);
  expect(new Set(tokens).size).toBe(2);
  expect(server.get(lock)?.split(" ")[0]).toBe(tokens[1]);
  expect(await within(10, lease.release())).toBe(true);
});

/** The server refuses the release of a lease until the next caller has aborted. */
async function passedOnInVain(
  refusal: string,
): Promise<{ faults: FaultInjector; released: Promise<boolean> }> {
  const { locks, faults } = await faultyProcess();
  const lease = await within(10, locks.acquire("k", { ttlMs }));
  const caller = new AbortController();
  const next = locks
    .acquire("k", { ttlMs, renew: false, signal: caller.signal })
    .catch((error: unknown) => error);
  await pass(5);
  faults.refuse(new Error(refusal));
  const released = lease.release();
  released.catch(() => undefined);
  await pass(100);
  caller.abort("changed my mind");
  await pass(100);
  expect(await next).toBe("changed my mind");
  return { faults, released };
}

async function faultyProcess(): Promise<{ locks: Locks; faults: FaultInjector }> {
  const { connection, controls } = faulty(server.connect(), { clock });
  return { locks: await process(connection), faults: controls };
}
