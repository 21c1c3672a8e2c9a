import { setTimeout as pause } from "node:timers/promises";

import type { LockTask } from "./task.ts";
import type { LeaseRequest, RequestKind } from "../judge/history.ts";
import { uniqueName, type ClientState } from "./client-state.ts";
import type { RecordedLease } from "./recorded-lease.ts";
import { useResource } from "./critical-section.ts";

/** Enters a reentrant lock again while holding it: by a nested `withLock`, or by a session whose leases are released in any order. */
export async function enterTwice(client: ClientState, task: LockTask): Promise<void> {
  await (client.random.happens(0.5) ? nestWithLock(client, task) : nestBySession(client, task));
}

async function nestWithLock(client: ClientState, task: LockTask): Promise<void> {
  const { locks, recorder, random } = client;
  const { lock, ttlMs, waitMs, renew, holdMs } = task;
  const reentrant = locks.reentrant(lock.key);
  const requestOf = requestsOf(client, task);
  const branches = random.integer(1, 3);
  await recorder.withLock(
    requestOf("work"),
    (work) => reentrant.withLock({ ttlMs, waitMs, renew }, work),
    async (outer) => {
      await useResource(client, outer, holdMs);
      const branch = (): Promise<void> =>
        recorder.withLock(
          requestOf("nested"),
          (work) => reentrant.withLock({ ttlMs, waitMs, renew }, work),
          (inner) => useResource(client, inner, holdMs / 2),
        );
      await Promise.all(Array.from({ length: branches }, branch));
    },
  );
}

async function nestBySession(client: ClientState, task: LockTask): Promise<void> {
  const { locks, recorder, random } = client;
  const { lock, ttlMs, waitMs, renew, holdMs } = task;
  const requestOf = requestsOf(client, task);
  const session = requestOf("acquire").reentrantHold;
  const reentrant = locks.reentrant(lock.key, { session });
  const enter = (kind: RequestKind): Promise<RecordedLease | undefined> =>
    recorder.acquire(requestOf(kind), () => reentrant.acquire({ ttlMs, waitMs, renew }));
  const outer = await enter("acquire");
  if (!outer) {
    return;
  }
  await useResource(client, outer, holdMs);
  const inner = await enter("nested");
  const [first, last] = random.shuffled([outer, inner]);
  await first?.release();
  if (last) {
    await useResource(client, last, holdMs);
  }
  await pause(random.between(0, 10));
  await last?.release();
}

function requestsOf(client: ClientState, { lock, waitMs }: LockTask): (kind: RequestKind) => LeaseRequest {
  const reentrantHold = uniqueName(client);
  return (kind) => ({ key: lock.key, lockKind: "reentrant", kind, waitMs, reentrantHold });
}
