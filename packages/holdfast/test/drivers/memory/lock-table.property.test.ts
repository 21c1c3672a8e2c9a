import fc from "fast-check";
import { memory } from "holdfast/memory";
import { manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import type { AcquireResult, Driver, Grant, PendingAcquire } from "../../../src/driver.ts";
import { request } from "../../support/memory-requests.ts";

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      acquire: fc.constantFrom("a", "b"),
      ttlMs: fc.integer({ min: 5, max: 60 }),
      waitMs: fc.constantFrom(null, 0, 10, 40, Infinity),
      want: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ release: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ requeue: fc.nat(9), waitMs: fc.constantFrom(10, Infinity) }) },
  { weight: 2, arbitrary: fc.record({ extend: fc.nat(9), ttlMs: fc.integer({ min: 5, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ cancel: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ breakGrant: fc.nat(9) }) },
  { weight: 3, arbitrary: fc.record({ advance: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ block: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ jumpWall: fc.integer({ min: -50, max: 50 }) }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Plays steps against the driver and checks its guarantees. */
class LockTablePlayer {
  readonly clock = manualClock();
  readonly driver: Driver = memory({ clock: this.clock, random: manualRandom(1) });
  readonly #pending: PendingAcquire[] = [];
  readonly #grants: Grant[] = [];
  /** The grant in force of each key, as its holder may believe, and its largest number. */
  readonly #present = new Map<string, Grant>();
  readonly #numbers = new Map<string, bigint>();
  #unsettled = 0;
  /** Whether the latest release may report that it ended a lease. */
  #mayRelease = false;
  failure: unknown = undefined;

  async run(now: Step): Promise<void> {
    if ("acquire" in now) {
      const deadline = now.waitMs === null ? null : this.clock.now() + now.waitMs;
      this.#follow(this.driver.acquire(request(this.driver, now.acquire, { ...now, deadline })));
    } else if ("release" in now) {
      await this.#onGrant(now.release, (grant) => this.#release(grant));
    } else if ("requeue" in now) {
      await this.#onGrant(now.requeue, (grant) => this.#requeue(grant, now.waitMs));
    } else if ("extend" in now) {
      await this.#onGrant(now.extend, (grant) => this.#extend(grant, now.ttlMs));
    } else if ("cancel" in now) {
      this.#pending.at(-1 - now.cancel)?.cancel("cancelled");
    } else if ("breakGrant" in now) {
      await this.#onGrant(now.breakGrant, (grant) => this.#break(grant));
    } else if ("advance" in now) {
      await this.clock.advance(now.advance);
    } else if ("block" in now) {
      this.clock.block(now.block);
    } else {
      this.clock.jumpWall(now.jumpWall);
    }
    await this.clock.advance(0);
  }

  /** Checks that nothing remains once TTLs and deadlines have passed. */
  async end(): Promise<void> {
    for (let round = 0; round < this.#pending.length + 2; round += 1) {
      await this.clock.advance(60);
    }
    expect(this.#unsettled).toBe(0);
    expect(this.clock.timers()).toBe(0);
    expect((await this.driver.list({ prefix: "", cursor: null, limit: 10 })).locks).toEqual([]);
  }

  #follow(pending: PendingAcquire): void {
    this.#pending.push(pending);
    this.#unsettled += 1;
    pending.result
      .then(
        (acquired) => {
          this.#answered(acquired);
        },
        (reason: unknown) => {
          expect(reason).toBe("cancelled");
        },
      )
      .finally(() => (this.#unsettled -= 1))
      .catch((error: unknown) => (this.failure ??= error));
  }

  #answered(acquired: AcquireResult): void {
    if (acquired.outcome === "held") {
      return;
    }
    const { grant } = acquired;
    const present = this.#present.get(grant.key);
    if (present?.token !== grant.token) {
      const left = (present?.validity.until ?? -Infinity) - this.clock.now();
      expect(left, "two holders").toBeLessThan(0);
      expect(grant.fencingToken, "numbers rise").toBeGreaterThan(this.#numbers.get(grant.key) ?? 0n);
      this.#present.set(grant.key, grant);
    }
    this.#numbers.set(grant.key, grant.fencingToken + BigInt(grant.fencingCount) - 1n);
    this.#grants.push(grant);
  }

  async #onGrant(index: number, action: (grant: Grant) => Promise<void>): Promise<void> {
    const grant = this.#grants.at(-1 - index);
    if (grant) {
      await action(grant);
    }
  }

  async #release(grant: Grant): Promise<void> {
    const released = this.driver.release(grant.key, grant.token, grant.validity.until);
    this.#onReleased(grant);
    this.#check(grant, await released);
  }

  async #requeue(grant: Grant, waitMs: number): Promise<void> {
    const deadline = this.clock.now() + waitMs;
    const requeued = this.driver.requeue(grant, request(this.driver, grant.key, { deadline, ttlMs: 30 }));
    this.#onReleased(grant);
    this.#follow(requeued);
    this.#check(grant, await requeued.released);
  }

  async #extend({ key, token, fencingToken, validity }: Grant, ttlMs: number): Promise<void> {
    const mayHold = this.#present.get(key)?.token === token;
    const extension = await this.driver.extend({ key, token, fencingToken, ttlMs, info: undefined });
    if (extension.outcome === "extended") {
      expect(mayHold).toBe(true);
      const { until } = extension.validity;
      validity.until = Math.max(validity.until, until);
      const present = this.#present.get(key) as Grant;
      present.validity.until = Math.max(present.validity.until, until);
    }
  }

  async #break(grant: Grant): Promise<void> {
    const broken = this.driver.breakGrant(grant.key, grant.fencingToken, "test");
    this.#onReleased(grant);
    this.#check(grant, (await broken).isBroken);
  }

  /** From here on, and before the next grant, the holder no longer relies on its lease. */
  #onReleased({ key, token }: Grant): void {
    const present = this.#present.get(key);
    this.#mayRelease = present?.token === token;
    if (present && this.#mayRelease) {
      present.validity.until = -Infinity;
    }
  }

  #check(grant: Grant, released: boolean): void {
    if (released) {
      expect(this.#mayRelease, `${grant.token} was released by a caller that did not hold it`).toBe(true);
    }
  }
}

test("any requests in any order: one holder, rising numbers, and no record at the end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), async (steps) => {
      const play = new LockTablePlayer();
      for (const now of steps) {
        await play.run(now);
      }
      await play.end();
      if (play.failure !== undefined) {
        throw play.failure as Error;
      }
    }),
    { numRuns: 500 },
  );
});
