import { block } from "@holdfast/test-kit";
import { createLocks } from "holdfast";

import { Caller } from "./run/caller.ts";
import { Chance } from "./plan/chance.ts";
import type { ClientTask, FromClient, ToClient } from "./run/client-protocol.ts";
import { engines } from "./plan/engine.ts";
import { aboutOf, wholeLocks } from "./run/task.ts";
import { LatchVisitor } from "./run/latches.ts";
import { acquire, type Lock } from "./run/lock.ts";
import type { Office } from "./run/client-state.ts";
import { Recorder } from "./run/recorder.ts";
import { ResourceVisitor } from "./run/resource-client.ts";

// A client process: `client.js <ClientTask as JSON>`. It works while there is a storm, and in peace shows that it gets every lock.
// It ends with its parent.

const shortestTtlMs = 400;
/** A gap of so long is taken for having been frozen. */
const frozenMs = 100;
const longestSpinMs = 1_000;

const task = JSON.parse(process.argv[2] ?? "{}") as ClientTask;
const recorder = new Recorder(task.historyFile, task.epoch, task.ways.ports);
recorder.write({ e: "opened", at: recorder.clock.now(), pid: process.pid, handover: task.handover });
process.on("disconnect", () => process.exit());
// Ctrl-C reaches the whole process group; the parent decides what it means for us.
process.on("SIGINT", () => undefined);

const engine = engines[task.engine];
const connected = await engine.connect(task.ways, task.without);
const locks = createLocks(connected.driver, {
  owner: task.name,
  ...(task.handover ? {} : { handover: false as const }),
});
const office: Office = {
  name: task.name,
  index: task.index,
  locks,
  recorder,
  resource: await ResourceVisitor.open(task.resourcePort, task.name),
  chance: new Chance(task.seed),
  keys: task.keys,
  shortestTtlMs,
  maxTtlMs: engine.maxTtlMs,
  hand: (handed) => {
    say({ said: "hand", handed });
  },
};
if (task.keys.latches) {
  office.latches = new LatchVisitor(office, task.keys.latches);
}
const callers = Array.from({ length: task.callers }, () => new Caller(office));
/** What is still to be done before this process is at rest. */
const busy = new Set<Promise<void>>();
let isStorm = false;

process.on("message", (told: ToClient) => {
  obey(told);
});
say({ said: "ready" });

function obey(told: ToClient): void {
  switch (told.order) {
    case "storm":
      isStorm = true;
      for (const caller of callers) {
        doing(caller.workUntil(() => !isStorm));
      }
      return;
    case "peace":
      isStorm = false;
      doing(rest(told.round));
      return;
    case "block":
      block(told.forMs);
      return;
    case "ambush":
      doing(walkIntoAmbush(told.withinMs));
      return;
    case "break":
      doing(breakOne());
      return;
    case "take":
      doing((callers[0] as Caller).take(told.handed));
      return;
    case "stop":
      void stop();
  }
}

function doing(work: Promise<void>): void {
  busy.add(work);
  void work.then(() => busy.delete(work));
}

/** Ends what is under way, and then gets every lock. */
async function rest(round: number): Promise<void> {
  const others = Array.from(busy);
  await Promise.all(others);
  const all = wholeLocks(task.keys);
  for (const [index] of all.entries()) {
    const lock = all[(index + task.index) % all.length] as Lock;
    const waitMs = task.probeWaitMs;
    const about = { ...aboutOf(lock), kind: "probe", waitMs } as const;
    const probe = await recorder.ask(about, () => acquire(locks, lock, { ttlMs: engine.maxTtlMs, waitMs }));
    await probe?.release();
  }
  await office.latches?.open(round, task.probeWaitMs);
  recorder.write({ e: "quiet", at: recorder.clock.now(), round });
  say({ said: "quiet", round });
}

/** Most often the hot one, and always where a rule is left out that has to show with it. */
function chosen(): Lock {
  const { chance, keys } = office;
  const hot = { as: "mutex", key: keys.hot } as const;
  const others = wholeLocks(keys).filter(({ as }) => as !== "mutex");
  return task.without === null && chance.happens(0.4) ? chance.pick(others) : hot;
}

/** As an operator would who sees who holds it. */
async function breakOne(): Promise<void> {
  const { keys, key: first } = chosen();
  const key = office.chance.pick(keys ?? [first]);
  try {
    const state = await locks.inspect(key);
    const holder = state.holders.length === 0 ? undefined : office.chance.pick(state.holders);
    const fencingToken = holder?.fencingToken;
    if (fencingToken !== undefined) {
      recorder.write({ e: "breaking", at: recorder.clock.now(), key, token: String(fencingToken) });
      const isBroken = await locks.breakLock(key, { fencingToken, reason: "chaos" });
      recorder.write({ e: "broke", at: recorder.clock.now(), key, answer: String(isBroken) });
    }
  } catch (error) {
    recorder.write({ e: "broke", at: recorder.clock.now(), key, answer: recorder.codeOf(error) });
  }
}

/** As if the machine had stopped it in the middle of its work: it goes no further before it was frozen, and thawed. */
function walkIntoAmbush(withinMs: number): Promise<void> {
  const ambush = (): Promise<void> =>
    new Promise((resolve) => {
      process.send?.({ said: "ambushed" } satisfies FromClient, undefined, undefined, () => {
        spinUntilFrozen();
        resolve();
      });
    });
  return (callers[0] as Caller).walkInto(chosen(), ambush, withinMs);
}

/** Nobody else may do anything here meanwhile, and it must not freeze itself: who froze it thaws it, once. */
function spinUntilFrozen(): void {
  const endsAt = performance.now() + longestSpinMs;
  let last = performance.now();
  for (let now = last; now - last < frozenMs && now < endsAt; now = performance.now()) {
    last = now;
  }
}

async function stop(): Promise<void> {
  await locks.close();
  connected.disconnect();
  office.resource.close();
  recorder.write({ e: "closed", at: recorder.clock.now() });
  process.disconnect();
}

/** A parent that has gone is noticed by `disconnect`; what it was not told matters no more. */
function say(message: FromClient): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
