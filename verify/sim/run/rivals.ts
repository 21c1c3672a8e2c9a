import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { createLocks, type Lease, type Locks, type Random } from "holdfast";
import { redlock, type Connection } from "holdfast/redis";
import { faulty, manualRandom } from "holdfast/testing";

import { ClockView, wallStart, VirtualClock } from "./virtual-clock.ts";

const [nodeCount, rivalCount] = [5, 20];
/** The smallest difference between the clocks of two rivals, and the largest between the clocks of two nodes, ms. */
const intervalMs = 50;
const holdMs = 0.5;

export interface ContentionSetup {
  /** `acquire`: the caller waits in the queue. `try`: the caller tries again after a random delay. */
  readonly how: "acquire" | "try";
  /** The callers of each rival. */
  readonly callers: number;
  readonly handover: boolean;
  /** The acquisitions of each caller. */
  readonly acquisitions: number;
}

export interface ContentionResult {
  /** How many grants of the engine took each number of rounds for their fencing number. */
  readonly rounds: ReadonlyMap<number, number>;
  readonly leases: number;
  readonly tookMs: number;
  readonly commands: number;
}

/** Twenty drivers, each with its own clock, contend for one lock of five nodes, over a network that is seldom slow. */
export async function runContention(contest: ContentionSetup): Promise<ContentionResult> {
  const rounds = new Map<number, number>();
  const count = (message: unknown): void => {
    const vote = message as { key: string; rounds: number };
    if (vote.key === key) {
      rounds.set(vote.rounds, (rounds.get(vote.rounds) ?? 0) + 1);
    }
  };
  const run = new ContentionRun(contest);
  await run.warmUp();
  subscribe("holdfast:vote", count);
  try {
    return { ...(await run.run()), rounds };
  } finally {
    unsubscribe("holdfast:vote", count);
  }
}

/** The fraction of grants that took one round. */
export function singleBroadcastShare({ rounds }: ContentionResult): number {
  const all = [...rounds.values()].reduce((sum, grants) => sum + grants, 0);
  return (rounds.get(1) ?? 0) / all;
}

const key = "k";

class ContentionRun {
  readonly #setup: ContentionSetup;
  readonly #clock = new VirtualClock();
  readonly #random = manualRandom(1);
  readonly #contenders: readonly { readonly locks: Locks; readonly clock: ClockView }[];
  #commands = 0;
  #leases = 0;

  constructor(contest: ContentionSetup) {
    this.#setup = contest;
    const nodes = Array.from(
      { length: nodeCount },
      (_, index) =>
        new FakeRedis({
          clock: this.#clockView((intervalMs * index) / (nodeCount - 1)),
          random: manualRandom(100 + index),
          name: `n${index}`,
          upForMs: 3_600_000,
        }),
    );
    this.#contenders = Array.from({ length: rivalCount }, (_, index) => this.#createContender(index, nodes));
  }

  async warmUp(): Promise<void> {
    const warm = this.#contenders.map(async ({ locks }) => (await locks.acquire("warm")).release());
    await Promise.all([...warm, this.#clock.advance(1_000)]);
    this.#commands = 0;
  }

  async run(): Promise<Omit<ContentionResult, "rounds">> {
    const { callers } = this.#setup;
    const begun = this.#clock.now;
    let [pending, endedAt] = [this.#contenders.length * callers, 0];
    for (const { locks, clock } of this.#contenders) {
      for (let caller = 0; caller < callers; caller += 1) {
        void this.#acquireRepeatedly(locks, clock).then(() => {
          pending -= 1;
          endedAt = this.#clock.now;
        });
      }
    }
    while (pending > 0 && this.#clock.now < begun + waitMs) {
      await this.#clock.advance(10);
    }
    const tookMs = endedAt - begun;
    const closing = Promise.all(this.#contenders.map(({ locks }) => locks.close()));
    await Promise.all([closing, this.#clock.advance(1_000)]);
    return { leases: this.#leases, tookMs, commands: this.#commands };
  }

  async #acquireRepeatedly(locks: Locks, clock: ClockView): Promise<void> {
    const { acquisitions, how } = this.#setup;
    for (let turn = 0; turn < acquisitions; turn += 1) {
      const lease = how === "try" ? await this.#tryUntilGranted(locks, clock) : await locks.acquire(key);
      this.#leases += 1;
      await pause(clock, holdMs);
      await lease.release();
    }
  }

  async #tryUntilGranted(locks: Locks, clock: ClockView): Promise<Lease> {
    for (let failures = 0; ; failures += 1) {
      const lease = await locks.tryAcquire(key);
      if (lease) {
        return lease;
      }
      await pause(clock, this.#random.nextFloat() * 2 ** Math.min(failures, 6));
    }
  }

  #createContender(index: number, nodes: readonly FakeRedis[]): { locks: Locks; clock: ClockView } {
    const clock = this.#clockView(intervalMs * index);
    const connections = nodes.map((node) => this.#linkTo(node));
    const driver = redlock(connections, { clock, random: manualRandom(index) });
    return { clock, locks: createLocks(driver, this.#setup.handover ? {} : { handover: false }) };
  }

  /** A connection with new delays for each request. */
  #linkTo(node: FakeRedis): Connection {
    const { connection, controls } = faulty(node.connect(), { clock: this.#clockView(0) });
    const [requestMs, replyMs, messageMs] = [this.#random, this.#random, this.#random].map(delayMs);
    controls.delay({ requestMs, replyMs, messageMs });
    return {
      keyPrefix: connection.keyPrefix,
      name: connection.name,
      run: (script, keys, args) => {
        this.#commands += 1;
        controls.delay({
          requestMs: delayMs(this.#random),
          replyMs: delayMs(this.#random),
          messageMs: delayMs(this.#random),
        });
        return connection.run(script, keys, args);
      },
      command: (name, args) => connection.command(name, args),
      subscribe: (channel, kind, listener) => connection.subscribe(channel, kind, listener),
      onDown: (listener) => connection.onDown(listener),
    };
  }

  #clockView(aheadMs: number): ClockView {
    return new ClockView(this.#clock, { wall: wallStart + aheadMs });
  }
}

/** The contention must end within this time, ms. */
const waitMs = 60_000;

/** The delay in one direction, ms. One of a hundred delays is long. */
function delayMs(random: Random): number {
  const fast = 0.15 + 0.25 * random.nextFloat();
  return random.nextFloat() < 0.01 ? fast * 10 : fast;
}

function pause(clock: ClockView, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}
