import { startRedis } from "@holdfast/test-kit";

import { connect, type Client } from "../clients.ts";
import type { Locks } from "../library.ts";
import { outcomeOf, formatMs, verdictText, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";
import { withTimeout, type PromiseOutcome } from "../within.ts";

const ttlMs = 10_000;
const maxMs = 1_000;
const timeoutMs = 5_000;

/** When the first holder releases, another client holds the lock, as after a lease that expired during a pause. */
export const releaseAfterExpiry: Scenario = {
  withinMs: 30_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const otherHolder = direct(server);
    const locks = library.onServer(connect(server.port));
    await warmUp(locks);
    const complaints = [
      ...(await released(locks, otherHolder)),
      ...(await resolvedDespiteLoss(locks, otherHolder)),
      ...(await rejectedWithOwnError(locks, otherHolder)),
    ];
    return outcomeOf(complaints);
  },
};

async function released(locks: Locks, otherHolder: Client): Promise<string[]> {
  const lease = await locks.acquire("released", { ttlMs, waitMs: 1_000 });
  await replaceHolder(locks, otherHolder, "released");
  const ending = await withTimeout(timeoutMs, lease.release());
  return [
    ...timeComplaints("release", ending),
    ...(ending.state === "fulfilled" && ending.value !== false ? ["release did not report the loss"] : []),
    ...((await isHeldByOther(locks, otherHolder, "released"))
      ? []
      : ["release ended the lock of another holder"]),
  ];
}

async function resolvedDespiteLoss(locks: Locks, otherHolder: Client): Promise<string[]> {
  if (locks.withLock === null) {
    return [];
  }
  const work = (): Promise<void> => replaceHolder(locks, otherHolder, "ran");
  const ending = await withTimeout(timeoutMs, locks.withLock("ran", ttlMs, work));
  return [
    ...timeComplaints("the callback form", ending),
    ...(ending.state === "fulfilled" ? ["the callback form resolved without reporting the loss"] : []),
    ...((await isHeldByOther(locks, otherHolder, "ran"))
      ? []
      : ["the callback form ended the lock of another holder"]),
  ];
}

async function rejectedWithOwnError(locks: Locks, otherHolder: Client): Promise<string[]> {
  if (locks.withLock === null) {
    return [];
  }
  const own = new Error("the work's own");
  const ending = await withTimeout(
    timeoutMs,
    locks.withLock("threw", ttlMs, async () => {
      await replaceHolder(locks, otherHolder, "threw");
      throw own;
    }),
  );
  const isReplaced = ending.state === "rejected" && !reportsLoss(ending.error, own);
  return isReplaced ? [`the work's own error was replaced by "${verdictText(ending.error)}"`] : [];
}

function timeComplaints(description: string, ending: PromiseOutcome<unknown>): string[] {
  const durationMs = formatMs(ending.afterMs);
  if (ending.state === "pending") {
    return [`${description} did not end in ${durationMs}`];
  }
  return ending.afterMs > maxMs
    ? [
        `${description} took ${durationMs}${ending.state === "rejected" ? ` to say "${verdictText(ending.error)}"` : ""}`,
      ]
    : [];
}

async function replaceHolder(locks: Locks, otherHolder: Client, key: string): Promise<void> {
  await otherHolder.set(locks.nameOnServer(key), "another's", "PX", 60_000);
}

async function isHeldByOther(locks: Locks, otherHolder: Client, key: string): Promise<boolean> {
  return (await otherHolder.get(locks.nameOnServer(key))) === "another's";
}

/** Whether the error is the given one, or has it as a cause. */
function reportsLoss(error: unknown, own: Error): boolean {
  return error === own || (error instanceof Error && reportsLoss(error.cause, own));
}
