import { setTimeout as pause } from "node:timers/promises";

import type { Errand } from "./task.ts";
import type { Asked, AskKind } from "../judge/history.ts";
import { freshName, type Office } from "./client-state.ts";
import type { RecordedLease } from "./recorded-lease.ts";
import { use } from "./critical-section.ts";

/** Enters a reentrant lock again while it holds it: by a `withLock` inside another, or by a session, released in any order. */
export async function reenter(office: Office, errand: Errand): Promise<void> {
  await (office.chance.happens(0.5) ? byCallTree(office, errand) : bySession(office, errand));
}

async function byCallTree(office: Office, errand: Errand): Promise<void> {
  const { locks, recorder, chance } = office;
  const { lock, ttlMs, waitMs, renew, holdMs } = errand;
  const reentrant = locks.reentrant(lock.key);
  const about = nested(office, errand);
  const branches = chance.whole(1, 3);
  await recorder.work(
    about("work"),
    (work) => reentrant.withLock({ ttlMs, waitMs, renew }, work),
    async (outer) => {
      await use(office, outer, holdMs);
      const branch = (): Promise<void> =>
        recorder.work(
          about("nested"),
          (work) => reentrant.withLock({ ttlMs, waitMs, renew }, work),
          (inner) => use(office, inner, holdMs / 2),
        );
      await Promise.all(Array.from({ length: branches }, branch));
    },
  );
}

async function bySession(office: Office, errand: Errand): Promise<void> {
  const { locks, recorder, chance } = office;
  const { lock, ttlMs, waitMs, renew, holdMs } = errand;
  const about = nested(office, errand);
  const session = about("acquire").nest;
  const reentrant = locks.reentrant(lock.key, { session });
  const enter = (kind: AskKind): Promise<RecordedLease | undefined> =>
    recorder.ask(about(kind), () => reentrant.acquire({ ttlMs, waitMs, renew }));
  const outer = await enter("acquire");
  if (!outer) {
    return;
  }
  await use(office, outer, holdMs);
  const inner = await enter("nested");
  const [first, last] = chance.shuffled([outer, inner]);
  await first?.release();
  if (last) {
    await use(office, last, holdMs);
  }
  await pause(chance.between(0, 10));
  await last?.release();
}

function nested(office: Office, { lock, waitMs }: Errand): (kind: AskKind) => Asked {
  const nest = freshName(office);
  return (kind) => ({ key: lock.key, as: "reentrant", kind, waitMs, nest });
}
