import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { createLocks, type Lease, type Locks, type Random } from "holdfast";
import { redlock, type Connection } from "holdfast/redis";
import { faulty, manualRandom } from "holdfast/testing";

import { ClockView, wallStart, WorldClock } from "./virtual-clock.ts";

const [nodeCount, rivalCount] = [5, 20];
/** The clocks of two rivals differ at least by so much, and those of two nodes at the most. */
const apartMs = 50;
const holdMs = 0.5;

export interface Contest {
  /** `acquire`: waits in the queue. `try`: tries again after a while at random. */
  readonly how: "acquire" | "try";
  /** Of each rival. */
  readonly callers: number;
  readonly handover: boolean;
  /** Of each caller. */
  readonly turns: number;
}

export interface Outcome {
  /** Grants by the engine, by how many rounds their number took. */
  readonly rounds: ReadonlyMap<number, number>;
  readonly leases: number;
  readonly tookMs: number;
  readonly commands: number;
}

/** Twenty drivers, each with its own clock, want one lock of five nodes, over a network that is seldom slow. */
export async function contend(contest: Contest): Promise<Outcome> {
  const rounds = new Map<number, number>();
  const count = (message: unknown): void => {
    const vote = message as { key: string; rounds: number };
    if (vote.key === key) {
      rounds.set(vote.rounds, (rounds.get(vote.rounds) ?? 0) + 1);
    }
  };
  const contestants = new Contestants(contest);
  await contestants.warmUp();
  subscribe("holdfast:vote", count);
  try {
    return { ...(await contestants.play()), rounds };
  } finally {
    unsubscribe("holdfast:vote", count);
  }
}

/** Which part of the grants took one round. */
export function shareOfOneRound({ rounds }: Outcome): number {
  const all = [...rounds.values()].reduce((sum, grants) => sum + grants, 0);
  return (rounds.get(1) ?? 0) / all;
}

const key = "k";

class Contestants {
  readonly #contest: Contest;
  readonly #clock = new WorldClock();
  readonly #random = manualRandom(1);
  readonly #rivals: readonly { readonly locks: Locks; readonly clock: ClockView }[];
  #commands = 0;
  #leases = 0;

  constructor(contest: Contest) {
    this.#contest = contest;
    const nodes = Array.from(
      { length: nodeCount },
      (_, index) =>
        new FakeRedis({
          clock: this.#view((apartMs * index) / (nodeCount - 1)),
          random: manualRandom(100 + index),
          name: `n${index}`,
          upForMs: 3_600_000,
        }),
    );
    this.#rivals = Array.from({ length: rivalCount }, (_, index) => this.#rival(index, nodes));
  }

  async warmUp(): Promise<void> {
    const warm = this.#rivals.map(async ({ locks }) => (await locks.acquire("warm")).release());
    await Promise.all([...warm, this.#clock.advance(1_000)]);
    this.#commands = 0;
  }

  async play(): Promise<Omit<Outcome, "rounds">> {
    const { callers } = this.#contest;
    const begun = this.#clock.now;
    let [busy, endedAt] = [this.#rivals.length * callers, 0];
    for (const { locks, clock } of this.#rivals) {
      for (let caller = 0; caller < callers; caller += 1) {
        void this.#takeTurns(locks, clock).then(() => {
          busy -= 1;
          endedAt = this.#clock.now;
        });
      }
    }
    while (busy > 0 && this.#clock.now < begun + patienceMs) {
      await this.#clock.advance(10);
    }
    const tookMs = endedAt - begun;
    const closing = Promise.all(this.#rivals.map(({ locks }) => locks.close()));
    await Promise.all([closing, this.#clock.advance(1_000)]);
    return { leases: this.#leases, tookMs, commands: this.#commands };
  }

  async #takeTurns(locks: Locks, clock: ClockView): Promise<void> {
    const { turns, how } = this.#contest;
    for (let turn = 0; turn < turns; turn += 1) {
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

  #rival(index: number, nodes: readonly FakeRedis[]): { locks: Locks; clock: ClockView } {
    const clock = this.#view(apartMs * index);
    const connections = nodes.map((node) => this.#linkTo(node));
    const driver = redlock(connections, { clock, random: manualRandom(index) });
    return { clock, locks: createLocks(driver, this.#contest.handover ? {} : { handover: false }) };
  }

  /** With other delays from one request to the next. */
  #linkTo(node: FakeRedis): Connection {
    const { connection, controls } = faulty(node.connect(), { clock: this.#view(0) });
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

  #view(aheadMs: number): ClockView {
    return new ClockView(this.#clock, { wall: wallStart + aheadMs });
  }
}

/** Nobody may need so long, ms. */
const patienceMs = 60_000;

/** One way, ms: of a hundred one is slow. */
function delayMs(random: Random): number {
  const fast = 0.15 + 0.25 * random.nextFloat();
  return random.nextFloat() < 0.01 ? fast * 10 : fast;
}

function pause(clock: ClockView, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}
