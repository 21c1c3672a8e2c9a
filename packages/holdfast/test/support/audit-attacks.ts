import { EngineError, type AuditRecord, type Locks } from "holdfast";
import { expect } from "vitest";
import { limitMs, rejection } from "@holdfast/test-kit";

/** All records that the engine lists, newest first. */
export async function allRecords(locks: Locks): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await locks.admin.audit({ cursor, limit: 1_000 });
    records.push(...page.records);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return records;
}

/** A break whose reply is lost, and its repeat by the operator, have one record. @param lose loses the reply to the next break */
export async function expectOneRecordAfterLostReply(
  holder: Locks,
  operator: Locks,
  lose: () => void,
): Promise<void> {
  const { key, fencingToken } = await holder.acquire(`lost reply ${crypto.randomUUID()}`);
  await operator.inspect(key);
  lose();
  const { error } = await rejection(operator.admin.breakLock(key, { fencingToken, reason: "it hangs" }));
  expect(error).toBeInstanceOf(EngineError);
  expect(error).toMatchObject({ outcome: "unknown" });
  await expect.poll(() => holder.checkFence(key, fencingToken), { timeout: limitMs(20_000) }).toBe("stale");
  await expect
    .poll(() => operator.admin.breakLock(key, { fencingToken, reason: "again" }).catch(() => "unknown"), {
      timeout: limitMs(20_000),
    })
    .toBe(false);
  const { records } = await holder.admin.audit({ key });
  expect(records.map(({ reason }) => reason)).toEqual(["it hangs"]);
}

/** Breaks by several operators leave the newest 1 000 records. The engine has more records before. */
export async function expectBoundedAudit(locks: readonly Locks[]): Promise<void> {
  const breaks = locks.map(async (operator, index) => {
    const { key, fencingToken } = await operator.acquire(`bounded ${index}`);
    expect(await operator.admin.breakLock(key, { fencingToken, reason: "bounded" })).toBe(true);
  });
  await Promise.all(breaks);
  const [first] = locks as [Locks];
  await expect.poll(async () => (await allRecords(first)).length, { timeout: limitMs(20_000) }).toBe(1_000);
  const newest = (await allRecords(first)).slice(0, locks.length);
  expect(newest.map(({ reason }) => reason)).toEqual(locks.map(() => "bounded"));
}
