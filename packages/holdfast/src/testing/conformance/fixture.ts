import assert from "node:assert/strict";

import type { Driver } from "../../driver.ts";
import { isLockError, type LockError, type LockErrorCode } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import { createLocks } from "../../create-locks.ts";
import type { Locks } from "../../locks.ts";
import type { AcquireOptions, LocksOptions } from "../../options.ts";
import type { LockKind, LockState } from "../../lock-state.ts";
import { pause } from "../../runtime/timeout.ts";

/** Tests. The name of each says what is true of every driver. */
export type Cases = Readonly<Record<string, Case>>;
export type Case = (fixture: Fixture) => Promise<void>;

/** How long to wait for what has to happen, ms: bounds for slow machines, not measures. */
const timeoutMs = 10_000;
const maxCaseMs = 25_000;
const pollMs = 5;

/** Two processes at one engine, and keys that nobody else uses. */
export class Fixture {
  readonly key: string;
  readonly here: Locks;
  /** Another process. */
  readonly there: Locks;
  readonly #driver: Driver;
  readonly #other: Driver;
  readonly #opened: Locks[] = [];

  /** @param testCase what is played: the key tells of it, should it be left behind */
  constructor(driver: Driver, other: Driver, testCase: string) {
    this.#driver = driver;
    this.#other = other;
    this.key = `conformance:${testCase}:${driver.random.id()}`;
    this.here = this.open("here");
    this.there = this.open("there");
  }

  get kinds(): readonly LockKind[] {
    return this.#driver.capabilities.kinds;
  }

  /** Whether leases are handed over in memory. */
  get hasHandover(): boolean {
    const { requeue, fencingBlocks } = this.#driver.capabilities;
    return requeue && fencingBlocks;
  }

  /** Plays a scene to its end, which may not be waited for longer than a test may take; leaves nothing open. */
  async run(testCase: Case): Promise<void> {
    const { clock } = this.#driver;
    let timer: unknown;
    const limit = new Promise<never>((_, reject) => {
      timer = clock.setTimer(
        () => reject(new assert.AssertionError({ message: `not done within ${maxCaseMs} ms` })),
        maxCaseMs,
        true,
      );
    });
    try {
      await Promise.race([testCase(this), limit]);
    } finally {
      clock.clearTimer(timer);
      await this.#close();
    }
  }

  /** Callers with a line of their own: another process where the engine is concerned. */
  readonly open = (where: "here" | "there", options?: LocksOptions): Locks => {
    const locks = createLocks(where === "here" ? this.#driver : this.#other, options);
    this.#opened.push(locks);
    return locks;
  };

  /** Polls until the engine says so of the key: what it waits for makes no event here. */
  readonly state = async (
    condition: (state: LockState) => boolean,
    key: string = this.key,
  ): Promise<LockState> => {
    const { clock } = this.#driver;
    const end = clock.now() + timeoutMs;
    for (;;) {
      const state = await this.here.inspect(key);
      if (condition(state)) {
        return state;
      }
      assert.ok(clock.now() < end, `not within ${timeoutMs} ms, but ${JSON.stringify(state)}`);
      await this.pause(pollMs);
    }
  };

  readonly queued = async (count: number, key: string = this.key): Promise<void> => {
    await this.state(({ waiterCount }) => waiterCount === count, key);
  };

  readonly now = (): number => this.#driver.clock.now();

  readonly pause = (ms: number): Promise<void> => pause(this.#driver.clock, ms);

  /** Closes the drivers too: the last `Locks` of each does. */
  async #close(): Promise<void> {
    await Promise.all(this.#opened.map((locks) => locks.close()));
  }
}

/** Scenes of a kind of lock that an engine may lack; then it has to refuse it. */
export function onlyKind(kind: LockKind, use: (locks: Locks, key: string) => unknown, cases: Cases): Cases {
  const onDriver = ([name, testCase]: [string, Case]): [string, Case] => [
    name,
    async (fixture) => {
      if (fixture.kinds.includes(kind)) {
        await testCase(fixture);
      } else {
        assert.throws(() => use(fixture.here, fixture.key), { code: "unsupported" });
      }
    },
  ];
  return Object.fromEntries(Object.entries(cases).map(onDriver));
}

/** A promise that is looked at later, or never if the test fails before. */
export function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The error of a call that has to be refused with this code. */
export async function refused(call: Promise<unknown>, code: LockErrorCode): Promise<LockError> {
  const error = await call.then(
    () => assert.fail(`expected a rejection with ${code}`),
    (reason: unknown) => reason,
  );
  if (!isLockError(error, code)) {
    throw error;
  }
  return error;
}

/** Resolves with the reason once the signal aborts. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    const end = (): void => resolve(signal.reason);
    if (signal.aborted) {
      end();
    } else {
      signal.addEventListener("abort", end, { once: true });
    }
  });
}

/** A lease that may be handed over in memory: another caller of its process gave the lock up in the step that granted it. */
export async function contended(locks: Locks, key: string, options?: AcquireOptions): Promise<Lease> {
  const first = await locks.acquire(key, options);
  const second = later(locks.acquire(key, options));
  await first.release();
  return second;
}

/** What a try has to give. */
export function granted<T>(lease: T | null): T {
  assert.ok(lease, "expected a lease, got null");
  return lease;
}
