import assert from "node:assert/strict";

import { LeaseLostError } from "../../errors.ts";
import type { Lease, SerializedLease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import type { AuditRecord } from "../../operator/audit.ts";
import type { BreakResult } from "../../operator/break-owner.ts";
import { aborted, granted, later, refused, type Cases } from "./fixture.ts";

export const breakCases: Cases = {
  "a break notifies the holder and grants the lock to the next waiter": async ({
    here,
    there,
    key,
    queued,
  }) => {
    const lease = await here.acquire(key);
    const signalReason = aborted(lease.signal);
    const waiter = later(there.acquire(key));
    await queued(1);
    const { fencingToken } = lease;
    assert.equal(await there.admin.breakLock(key, { fencingToken, reason: "maintenance" }), true);
    const reason = await signalReason;
    assert.ok(reason instanceof LeaseLostError);
    assert.deepEqual([reason.code, reason.reason, reason.key], ["lease-lost", "broken", key]);
    const next = await waiter;
    assert.equal(await lease.release(), false);
    assert.equal(await next.release(), true);
  },

  "a break with another grant's number changes nothing": async ({ here, there, key }) => {
    const { fencingToken } = await (async () => {
      const earlier = await here.acquire(key);
      await earlier.release();
      return earlier;
    })();
    assert.equal(await there.admin.breakLock(key, { fencingToken, reason: "test" }), false);
    const lease = await here.acquire(key);
    for (const wrong of [fencingToken, lease.fencingToken + 1_000_000n]) {
      assert.equal(await there.admin.breakLock(key, { fencingToken: wrong, reason: "test" }), false);
    }
    lease.throwIfLost();
    assert.equal(await lease.release(), true);
  },

  "a break by owner ends every grant of that owner, and no other": async ({ here, there, key }) => {
    const dead = { owner: `pod-7 of ${key}` };
    const leases = [await here.acquire(`${key}:a`, dead), await here.acquire(`${key}:b`, dead)];
    const other = await here.acquire(`${key}:c`, { owner: `${dead.owner}1` });
    const losses = leases.map(({ signal }) => aborted(signal));
    const seen: string[] = [];
    const { results, isComplete } = await there.admin.breakOwner(dead.owner, {
      reason: "the pod died",
      prefix: key,
      onResult: (result) => seen.push(result.key),
    });
    assert.equal(isComplete, true);
    const tokens = new Map(leases.map((lease) => [lease.key, lease.fencingToken]));
    assert.deepEqual(new Map(results.map((result) => [result.key, result.fencingToken])), tokens);
    assert.ok(results.every(({ broken }) => broken === true));
    assert.deepEqual(
      seen,
      results.map((result) => result.key),
    );
    for (const loss of await Promise.all(losses)) {
      assert.equal((loss as LeaseLostError).reason, "broken");
    }
    other.throwIfLost();
    const grants = [{ key: other.key, fencingToken: other.fencingToken }];
    const skipped = await there.admin.breakOwner(dead.owner, { reason: "test", grants });
    assert.deepEqual(
      skipped.results.map(({ broken }) => broken),
      [false],
    );
    assert.equal(await other.release(), true);
  },

  "the audit has each break that ended a grant, newest first": async ({ here, there, key, hasAudit }) => {
    if (!hasAudit) {
      await refused(there.admin.audit(), "unsupported");
      return;
    }
    const [first, firstId] = await brokenBy(there, await here.acquire(key, { owner: "pod-7" }), {
      reason: longReason,
      by: 'ada "\u{1f512}"',
    });
    const again = { fencingToken: first.fencingToken, reason: "again" };
    assert.equal(await there.admin.breakLock(key, again), false);
    const [second, secondId] = await brokenBy(there, await here.acquire(key), { reason: "it hangs" });
    await brokenBy(there, await here.acquire(`${key}:other`), { reason: "another key" });
    const { records, cursor } = await here.admin.audit({ key });
    assert.equal(cursor, null);
    assert.deepEqual(
      records.map(({ id, fencingToken }) => [id, fencingToken]),
      [
        [secondId, second.fencingToken],
        [firstId, first.fencingToken],
      ],
    );
    const [newer, older] = records as readonly [AuditRecord, AuditRecord];
    assert.deepEqual(
      { ...older, at: 0 },
      {
        id: firstId,
        at: 0,
        action: "break",
        by: 'ada "\u{1f512}"',
        key,
        fencingToken: first.fencingToken,
        owner: "pod-7",
        reason: longReason,
        result: "broken",
      },
    );
    assert.ok(newer.at >= older.at);
    assert.ok(BigInt(newer.id) > BigInt(older.id));
    assert.deepEqual(await here.admin.audit({ id: firstId }), { records: [older], cursor: null });
    const page = await here.admin.audit({ key, limit: 1 });
    assert.deepEqual(page, { records: [newer], cursor: newer.id });
    assert.deepEqual(await here.admin.audit({ key, limit: 1, cursor: page.cursor ?? "" }), {
      records: [older],
      cursor: null,
    });
  },

  "two operators who break a grant at once have one record for each break": async ({
    here,
    there,
    key,
    hasAudit,
  }) => {
    const { fencingToken } = await here.acquire(key);
    const breaks = await Promise.all([
      here.admin.breakLock(key, { fencingToken, reason: "test", by: "ada" }),
      there.admin.breakLock(key, { fencingToken, reason: "test", by: "grace" }),
    ]);
    const operators = ["ada", "grace"].filter((_, index) => breaks[index]);
    assert.ok(operators.length > 0);
    if (hasAudit) {
      const { records } = await here.admin.audit({ key });
      assert.deepEqual(records.map(({ by }) => by).sort(), operators);
    }
  },

  "a transferred lease belongs to the process that adopts it": async ({ here, there, key }) => {
    const lease = await here.acquire(key);
    const serialized = throughJson(lease.transfer());
    const adopted = await there.adopt(serialized);
    assert.equal(adopted.fencingToken, lease.fencingToken);
    assert.equal(await lease.release(), false);
    assert.equal(await here.tryAcquire(key), null);
    adopted.throwIfLost();
    assert.equal(await adopted.release(), true);
    granted(await here.tryAcquire(key));
  },

  "an adopted lease is renewed by the adopting process": async ({ here, there, key, pause }) => {
    const ttlMs = 2_000; // a busy machine may delay a renewal by two thirds of this
    const lease = await here.acquire(key, { ttlMs });
    const adopted = await there.adopt(throughJson(lease.transfer()));
    await pause(2.5 * ttlMs);
    adopted.throwIfLost();
    assert.equal(await adopted.release(), true);
  },

  "a released lease cannot be adopted": async ({ here, there, key }) => {
    const serialized = throughJson((await here.acquire(key)).transfer());
    await (await there.adopt(serialized)).release();
    const error = await refused(there.adopt(serialized), "lease-lost");
    assert.equal(error.key, key);
  },
};

function throughJson(serialized: SerializedLease): SerializedLease {
  return JSON.parse(JSON.stringify(serialized)) as SerializedLease;
}

/** A reason of the largest size, with characters that engines store and send in special ways. */
const longReason = `\u0001\t\n"'\\\u2028\u{1f512}`.padEnd(1024 - 4, "x");

/** Breaks a lease. @returns the lease, and the id of the record */
async function brokenBy(
  operator: Locks,
  lease: Lease,
  options: { reason: string; by?: string },
): Promise<[Lease, string]> {
  const { key, fencingToken } = lease;
  const results: BreakResult[] = [];
  const onResult = (result: BreakResult): unknown => results.push(result);
  assert.equal(await operator.admin.breakLock(key, { fencingToken, ...options, onResult }), true);
  const [result] = results;
  assert.equal(typeof result?.auditId, "string");
  return [lease, result?.auditId as string];
}
