import { startRedis } from "@holdfast/test-kit";

import { connect, type Client } from "../clients.ts";
import type { Locks } from "../library.ts";
import { judged, time, wordsOf, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";
import { within, type Ending } from "../within.ts";

const ttlMs = 10_000;
const mostMs = 1_000;
const patienceMs = 5_000;

/** The lock is another's when its first holder releases it: as after a lease that ran out during a pause. */
export const releaseAfterExpiry: Scenario = {
  withinMs: 30_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const thief = direct(server);
    const locks = library.onServer(connect(server.port));
    await warmUp(locks);
    const complaints = [
      ...(await released(locks, thief)),
      ...(await ranToItsEnd(locks, thief)),
      ...(await threw(locks, thief)),
    ];
    return judged(complaints);
  },
};

async function released(locks: Locks, thief: Client): Promise<string[]> {
  const lease = await locks.acquire("released", { ttlMs, waitMs: 1_000 });
  await steal(locks, thief, "released");
  const ending = await within(patienceMs, lease.release());
  return [
    ...complaintsOfTime("release", ending),
    ...(ending.state === "fulfilled" && ending.value !== false ? ["release said nothing of the loss"] : []),
    ...((await isAnothers(locks, thief, "released")) ? [] : ["release took the lock from another"]),
  ];
}

async function ranToItsEnd(locks: Locks, thief: Client): Promise<string[]> {
  if (locks.run === null) {
    return [];
  }
  const work = (): Promise<void> => steal(locks, thief, "ran");
  const ending = await within(patienceMs, locks.run("ran", ttlMs, work));
  return [
    ...complaintsOfTime("the callback form", ending),
    ...(ending.state === "fulfilled" ? ["the callback form resolved as if nothing was lost"] : []),
    ...((await isAnothers(locks, thief, "ran")) ? [] : ["the callback form took the lock from another"]),
  ];
}

async function threw(locks: Locks, thief: Client): Promise<string[]> {
  if (locks.run === null) {
    return [];
  }
  const own = new Error("the work's own");
  const ending = await within(
    patienceMs,
    locks.run("threw", ttlMs, async () => {
      await steal(locks, thief, "threw");
      throw own;
    }),
  );
  const isReplaced = ending.state === "rejected" && !tells(ending.error, own);
  return isReplaced ? [`the work's own error was replaced by "${wordsOf(ending.error)}"`] : [];
}

function complaintsOfTime(what: string, ending: Ending<unknown>): string[] {
  const took = time(ending.afterMs);
  if (ending.state === "pending") {
    return [`${what} did not end in ${took}`];
  }
  return ending.afterMs > mostMs
    ? [`${what} took ${took}${ending.state === "rejected" ? ` to say "${wordsOf(ending.error)}"` : ""}`]
    : [];
}

async function steal(locks: Locks, thief: Client, key: string): Promise<void> {
  await thief.set(locks.nameOnServer(key), "another's", "PX", 60_000);
}

async function isAnothers(locks: Locks, thief: Client, key: string): Promise<boolean> {
  return (await thief.get(locks.nameOnServer(key))) === "another's";
}

/** Itself, or as a cause. */
function tells(error: unknown, own: Error): boolean {
  return error === own || (error instanceof Error && tells(error.cause, own));
}
