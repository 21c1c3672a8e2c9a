import assert from "node:assert/strict";

import type { Driver } from "../../driver.ts";
import { isLockError, type LockError, type LockErrorCode } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import { createLocks } from "../../create-locks.ts";
import type { Locks } from "../../locks.ts";
import type { AcquireOptions, LocksOptions } from "../../options.ts";
import type { LockKind, LockState } from "../../lock-state.ts";
import { pause } from "../../runtime/timeout.ts";

/** Tests by name. Each name states a property of every driver. */
export type Cases = Readonly<Record<string, Case>>;
export type Case = (fixture: Fixture) => Promise<void>;

const pollMs = 5;

/** Two processes with one engine, and keys that no other test uses. */
export class Fixture {
  readonly key: string;
  readonly here: Locks;
  /** The locks of another process. */
  readonly there: Locks;
  readonly #driver: Driver;
  readonly #other: Driver;
  readonly #limitMs: number;
  readonly #opened: Locks[] = [];

  /**
   * @param testName part of the keys, so that residue on a server names its test
   * @param limitMs how long a case may take, ms. It suffices for slow machines, and measures nothing
   */
  constructor(driver: Driver, other: Driver, { testName, limitMs }: { testName: string; limitMs: number }) {
    this.#driver = driver;
    this.#limitMs = limitMs;
    this.#other = other;
    this.key = `conformance:${testName}:${driver.random.id()}`;
    this.here = this.open("here");
    this.there = this.open("there");
  }

  get kinds(): readonly LockKind[] {
    return this.#driver.capabilities.kinds;
  }

  get engine(): string {
    return this.#driver.capabilities.engine ?? "other";
  }

  /** Whether the driver supports hand-over in memory. */
  get hasHandover(): boolean {
    const { requeue, fencingBlocks } = this.#driver.capabilities;
    return requeue && fencingBlocks;
  }

  get hasAudit(): boolean {
    return this.#driver.audit !== undefined;
  }

  /** Runs a test case within its time limit, and closes everything that the case has opened. */
  async run(testCase: Case): Promise<void> {
    const { clock } = this.#driver;
    let timer: unknown;
    const limit = new Promise<never>((_, reject) => {
      timer = clock.setTimer(
        () => reject(new assert.AssertionError({ message: `not done within ${this.#limitMs} ms` })),
        this.#limitMs,
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

  /** Opens `Locks` with their own local queue, which are another process for the engine. Their waits end with the case at the latest. */
  readonly open = (where: "here" | "there", options: LocksOptions = {}): Locks => {
    const defaults = { waitMs: this.#limitMs, ...options.defaults };
    const locks = createLocks(where === "here" ? this.#driver : this.#other, { ...options, defaults });
    this.#opened.push(locks);
    return locks;
  };

  /** Polls until the condition is true, because there is no event to await. */
  readonly poll = async <T>(read: () => Promise<T>, condition: (value: T) => boolean): Promise<T> => {
    const { clock } = this.#driver;
    const timeoutMs = this.#limitMs * 0.4;
    const end = clock.now() + timeoutMs;
    for (;;) {
      const value = await read();
      if (condition(value)) {
        return value;
      }
      assert.ok(clock.now() < end, `not within ${timeoutMs} ms, but ${JSON.stringify(value)}`);
      await this.pause(pollMs);
    }
  };

  /** Polls the state of the key until the condition is true. */
  readonly state = (condition: (state: LockState) => boolean, key: string = this.key): Promise<LockState> =>
    this.poll(() => this.here.inspect(key), condition);

  readonly queued = async (count: number, key: string = this.key): Promise<void> => {
    await this.state(({ waiterCount }) => waiterCount === count, key);
  };

  readonly now = (): number => this.#driver.clock.now();

  readonly pause = (ms: number): Promise<void> => pause(this.#driver.clock, ms);

  /** Closes all `Locks`. The last `Locks` of a driver closes the driver. */
  async #close(): Promise<void> {
    await Promise.all(this.#opened.map((locks) => locks.close()));
  }
}

/** Test cases for a kind of lock. An engine without that kind must reject it as unsupported. */
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

/** A promise that is awaited later, or never if the test fails before. */
export function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The error of a call that must reject with this code. */
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

/** A lease that may be handed over in memory, because the caller waited for another caller of its process. */
export async function contended(locks: Locks, key: string, options?: AcquireOptions): Promise<Lease> {
  const first = await locks.acquire(key, options);
  const second = later(locks.acquire(key, options));
  await first.release();
  return second;
}

/** The lease of a try that must succeed. */
export function granted<T>(lease: T | null): T {
  assert.ok(lease, "expected a lease, got null");
  return lease;
}
