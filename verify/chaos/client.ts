import { block } from "@holdfast/test-kit";
import { createLocks } from "holdfast";

import { Caller } from "./run/caller.ts";
import { SeededRandom } from "./plan/chance.ts";
import type { ClientTask, FromClient, ToClient } from "./run/client-protocol.ts";
import { engines } from "./plan/engines.ts";
import { requestOf, fullLocks } from "./run/task.ts";
import { LatchCaller } from "./run/latches.ts";
import { acquire, type Lock } from "./run/lock.ts";
import type { ClientState } from "./run/client-state.ts";
import { Recorder } from "./run/recorder.ts";
import { ResourceClient } from "./run/resource-client.ts";

// A client process: `client.js <ClientTask as JSON>`. In a storm it uses locks, and in a quiet period it acquires every lock. It ends with
// its parent.

const shortestTtlMs = 400;
/** A longer gap between two ticks counts as a freeze. */
const frozenMs = 100;
const longestSpinMs = 1_000;

const task = JSON.parse(process.argv[2] ?? "{}") as ClientTask;
const recorder = new Recorder(task.historyFile, task.epoch, task.addresses.ports);
recorder.write({ e: "opened", at: recorder.clock.now(), pid: process.pid, handover: task.handover });
process.on("disconnect", () => process.exit());
// Ctrl-C reaches the whole process group, and the parent decides how to stop this process.
process.on("SIGINT", () => undefined);

const engine = engines[task.engine];
const connected = await engine.connect(task.addresses, task.without);
const locks = createLocks(connected.driver, {
  owner: task.name,
  ...(task.handover ? {} : { handover: false as const }),
});
const client: ClientState = {
  name: task.name,
  index: task.index,
  locks,
  recorder,
  resource: await ResourceClient.open(task.resourcePort, task.name),
  random: new SeededRandom(task.seed),
  keys: task.keys,
  shortestTtlMs,
  maxTtlMs: engine.maxTtlMs,
  handOver: (handed) => {
    send({ said: "hand", handed });
  },
};
if (task.keys.latches) {
  client.latches = new LatchCaller(client, task.keys.latches);
}
const callers = Array.from({ length: task.callers }, () => new Caller(client));
/** The work that remains before this process is at rest. */
const pendingWork = new Set<Promise<void>>();
let isStorm = false;

process.on("message", (message: ToClient) => {
  handleOrder(message);
});
send({ said: "ready" });

function handleOrder(order: ToClient): void {
  switch (order.order) {
    case "storm":
      isStorm = true;
      for (const caller of callers) {
        track(caller.workUntil(() => !isStorm));
      }
      return;
    case "quiet":
      isStorm = false;
      track(acquireAllLocks(order.round));
      return;
    case "block":
      block(order.forMs);
      return;
    case "hold-for-freeze":
      track(freezeWhileHolding(order.withinMs));
      return;
    case "break":
      track(breakChosenLock());
      return;
    case "take":
      track((callers[0] as Caller).takeOver(order.handed));
      return;
    case "stop":
      void stop();
  }
}

function track(work: Promise<void>): void {
  pendingWork.add(work);
  void work.then(() => pendingWork.delete(work));
}

/** Ends the current work, and then acquires every lock. */
async function acquireAllLocks(round: number): Promise<void> {
  const pending = Array.from(pendingWork);
  await Promise.all(pending);
  const locksToProbe = fullLocks(task.keys);
  for (const [index] of locksToProbe.entries()) {
    const lock = locksToProbe[(index + task.index) % locksToProbe.length] as Lock;
    const waitMs = task.probeWaitMs;
    const request = { ...requestOf(lock), kind: "probe", waitMs } as const;
    const probe = await recorder.acquire(request, () =>
      acquire(locks, lock, { ttlMs: engine.maxTtlMs, waitMs }),
    );
    await probe?.release();
  }
  await client.latches?.runQuietPeriodLatch(round, task.probeWaitMs);
  recorder.write({ e: "quiescent", at: recorder.clock.now(), round });
  send({ said: "quiet", round });
}

/** Prefers the hot lock. If a run omits a rule, the process always uses that lock, because the effect shows there. */
function chooseLock(): Lock {
  const { random, keys } = client;
  const hot = { lockKind: "mutex", key: keys.hot } as const;
  const others = fullLocks(keys).filter(({ lockKind }) => lockKind !== "mutex");
  return task.without === null && random.happens(0.4) ? random.pick(others) : hot;
}

/** Breaks a lock like an operator who looked its holder up. */
async function breakChosenLock(): Promise<void> {
  const { keys, key: first } = chooseLock();
  const key = client.random.pick(keys ?? [first]);
  try {
    const state = await locks.inspect(key);
    const holder = state.holders.length === 0 ? undefined : client.random.pick(state.holders);
    const fencingToken = holder?.fencingToken;
    if (fencingToken !== undefined) {
      recorder.write({ e: "breaking", at: recorder.clock.now(), key, token: String(fencingToken) });
      const isBroken = await locks.admin.breakLock(key, { fencingToken, reason: "chaos" });
      recorder.write({ e: "break-result", at: recorder.clock.now(), key, answer: String(isBroken) });
    }
  } catch (error) {
    recorder.write({ e: "break-result", at: recorder.clock.now(), key, answer: recorder.codeOf(error) });
  }
}

/** Simulates a machine that stops in the middle of the work: the process continues only after it was frozen and thawed. */
function freezeWhileHolding(withinMs: number): Promise<void> {
  const awaitFreeze = (): Promise<void> =>
    new Promise((resolve) => {
      process.send?.({ said: "ready-to-freeze" } satisfies FromClient, undefined, undefined, () => {
        spinUntilFrozen();
        resolve();
      });
    });
  return (callers[0] as Caller).holdUntilFrozen(chooseLock(), awaitFreeze, withinMs);
}

/** Blocks this process until the parent freezes and thaws it once. No other code may run before that. */
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
  client.resource.close();
  recorder.write({ e: "closed", at: recorder.clock.now() });
  process.disconnect();
}

/** A missing parent is noticed by `disconnect`, so a lost message does not matter. */
function send(message: FromClient): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
