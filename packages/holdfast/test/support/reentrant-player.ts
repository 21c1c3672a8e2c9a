import { AsyncResource } from "node:async_hooks";

import { isLockError, LeaseLostError, type Lease, type Locks } from "holdfast";
import { expect } from "vitest";

import { ReentrantModel, type Outcome } from "./reentrant-model.ts";
import {
  createRequest,
  outcomeSeenOf,
  type PlayedRequest,
  type RequestOptions,
} from "./reentrant-request.ts";
import type { Step } from "./reentrant-steps.ts";
import { closeSimulated, type SimulatedEngine } from "./simulated-engines.ts";

const key = "k";

type ReentrantLockable = ReturnType<Locks["reentrant"]>;

/** Plays steps, checks the guarantees, and compares with the model if the engine is exact. */
export class ReentrantScenarioPlayer {
  readonly #world: SimulatedEngine;
  /** Undefined if the engine is not exact. */
  readonly #model: ReentrantModel | undefined;
  readonly #requests: PlayedRequest[] = [];
  readonly #broken = new Set<bigint>();
  #largest = 0n;
  #checksRelease = false;
  #failure: unknown;

  constructor(world: SimulatedEngine) {
    this.#world = world;
    this.#model = world.name === "memory" ? new ReentrantModel(world.clock.now()) : undefined;
  }

  async run(all: readonly Step[]): Promise<void> {
    for (const step of all) {
      await this.#do(step);
      await this.#advance(this.#world.latencyMs);
      expect(this.#failure).toBeUndefined();
      await this.#compare();
    }
    await this.#end();
  }

  async #do(step: Step): Promise<void> {
    if ("acquire" in step) {
      this.#request(step);
    } else if ("release" in step) {
      const leases = this.#requests.filter(({ isWork, lease }) => !isWork && lease);
      this.#release(leases.at(-1 - step.release)); // perhaps a repeated release
    } else if ("end" in step) {
      this.#finish(this.#working().at(-1 - step.end));
    } else if ("abort" in step) {
      this.#abort(this.#waiting().at(-1 - step.abort));
    } else if ("lose" in step) {
      this.#lose(step.lose);
    } else {
      await this.#advance(step.advance);
    }
  }

  async #advance(ms: number): Promise<void> {
    this.#model?.advance(ms);
    await this.#world.clock.advance(ms);
  }

  #request(step: Extract<Step, { acquire: string }>): void {
    const { as, ttlMs, renew, waitMs } = step;
    const request = createRequest(step, this.#requests, this.#world.clock.now());
    this.#requests.push(request);
    this.#model?.request(request);
    const session = as && "session" in as ? as.session : undefined;
    const options = { ttlMs, renew, signal: request.controller.signal, session };
    const call = (): void => {
      this.#call(request, options, waitMs).catch((error: unknown) => (this.#failure ??= error));
    };
    if (request.inside?.scope) {
      request.inside.scope.runInAsyncScope(call);
    } else {
      call();
    }
  }

  async #call(request: PlayedRequest, options: RequestOptions, waitMs: number | null): Promise<void> {
    const lock = this.#world.locks[request.by]?.reentrant(key) as ReentrantLockable;
    try {
      await (request.isWork ? this.#callWork : this.#callLease).call(this, request, lock, options, waitMs);
    } catch (error) {
      this.#refused(request, error);
    }
  }

  async #callWork(
    request: PlayedRequest,
    lock: ReentrantLockable,
    options: RequestOptions,
    waitMs: number | null,
  ): Promise<void> {
    const work = (lease: Lease): Promise<void> => this.#work(request, lease);
    if (waitMs !== null) {
      await lock.withLock({ ...options, waitMs }, work);
    } else if (!(await lock.tryWithLock(options, work)).ran) {
      request.outcome = "null";
    }
    expect(request.wasReported, "a loss rejects the work").toBe(false);
  }

  async #callLease(
    request: PlayedRequest,
    lock: ReentrantLockable,
    options: RequestOptions,
    waitMs: number | null,
  ): Promise<void> {
    const lease = await (waitMs === null ? lock.tryAcquire(options) : lock.acquire({ ...options, waitMs }));
    if (lease) {
      this.#granted(request, lease);
    } else {
      request.outcome = "null";
    }
  }

  #work(request: PlayedRequest, lease: Lease): Promise<void> {
    const done = new Promise<void>((resolve) => {
      request.finish = resolve;
    });
    request.scope = new AsyncResource("work");
    this.#granted(request, lease);
    return done;
  }

  #granted(request: PlayedRequest, lease: Lease): void {
    const { fencingToken } = lease;
    request.lease = lease;
    request.signal = lease.signal;
    const inside = this.#inside().filter((other) => other !== request);
    const strangers = inside.filter((other) => other.lease?.fencingToken !== fencingToken);
    expect(
      strangers.map(({ id }) => id),
      "no other caller is inside",
    ).toEqual([]);
    const nest = this.#requests.filter((other) => other.lease?.fencingToken === fencingToken);
    expect(new Set(nest.map(({ root }) => root)), "only its own requests share its hold").toEqual(
      new Set([request.root]),
    );
    if (nest.length === 1) {
      expect(fencingToken, "fencing tokens rise").toBeGreaterThan(this.#largest);
      this.#largest = fencingToken;
    }
    expect(lease.remainingMs(), "no expired lease is granted").toBeGreaterThan(0);
    this.#giveBack(request);
  }

  #refused(request: PlayedRequest, error: unknown): void {
    if (request.lease) {
      expect(error, "a loss rejects the work").toBeInstanceOf(LeaseLostError);
      expect(request.signal?.aborted, "the signal was aborted first").toBe(true);
      request.outcome = "released";
    } else if (error === "enough") {
      request.outcome = "enough";
    } else if (isLockError(error, "wait-timeout") || isLockError(error, "lease-lost")) {
      request.outcome = error.code as Outcome;
    } else {
      throw error;
    }
  }

  #release(request: PlayedRequest | undefined): void {
    if (!request?.lease) {
      return;
    }
    const { lease, outcome } = request;
    const wasValid = lease.remainingMs() > 0;
    const expected = this.#model?.release(request);
    this.#over(request);
    lease
      .release()
      .then((wasOurs) => {
        if (expected !== undefined && !this.#checksRelease) {
          expect(wasOurs, "the result of a release").toBe(expected);
        } else if (wasValid && outcome === undefined && !this.#broken.has(lease.fencingToken)) {
          expect(wasOurs, "a valid lease is released").toBe(true);
        }
      })
      .catch((error: unknown) => (this.#failure ??= error));
  }

  #over(request: PlayedRequest): void {
    if (request.outcome === undefined) {
      request.outcome = "released";
      request.wasReported = request.signal?.aborted === true;
    }
  }

  #finish(request: PlayedRequest | undefined): void {
    if (request) {
      this.#model?.release(request);
      this.#over(request);
      request.finish();
    }
  }

  #abort(request: PlayedRequest | undefined): void {
    if (request) {
      this.#model?.abort(request);
      request.controller.abort("enough");
    }
  }

  #lose(by: number): void {
    const fencingToken = this.#inside()[0]?.lease?.fencingToken;
    if (fencingToken !== undefined) {
      this.#broken.add(fencingToken);
      this.#model?.markLost();
      this.#world.locks[by]?.admin
        .breakLock(key, { fencingToken, reason: "test" })
        .catch((error: unknown) => (this.#failure ??= error));
    }
  }

  #giveBack(request: PlayedRequest): void {
    if (this.#checksRelease && request.isWork) {
      this.#finish(request);
    } else if (this.#checksRelease) {
      this.#release(request);
    }
  }

  #waiting(): PlayedRequest[] {
    return this.#requests.filter(({ lease, outcome }) => !lease && outcome === undefined);
  }

  #working(): PlayedRequest[] {
    return this.#requests.filter(({ scope, outcome }) => scope && outcome === undefined);
  }

  /** The requests that may rely on their leases. */
  #inside(): PlayedRequest[] {
    return this.#requests.filter(
      ({ lease }) => lease && lease.remainingMs() > 0 && !this.#broken.has(lease.fencingToken),
    );
  }

  /** In memory every time is exact. */
  async #compare(): Promise<void> {
    const model = this.#model;
    if (!model) {
      return;
    }
    const seen = this.#requests.map((request) => [request.id, outcomeSeenOf(request)]);
    expect(seen).toEqual(this.#requests.map((request) => [request.id, model.outcomeOf(request)]));
    for (const { signal, outcome, lease, wasReported } of this.#requests.filter((request) => request.lease)) {
      const isLost = outcome === undefined ? lease?.remainingMs() === 0 : wasReported;
      expect(
        signal?.aborted,
        "a loss aborts the signals of the hold, and no signal of a released lease",
      ).toBe(isLost);
    }
    const state = await this.#world.locks[0]?.inspect(key);
    expect(state?.holders.length, "whether it is held").toBe(model.isHeld ? 1 : 0);
    expect(state?.waiterCount, "how many wait at the engine").toBe(model.waiterCount);
  }

  /** Every holder releases at once. Every waiter gets its turn, and no residue remains. */
  async #end(): Promise<void> {
    const { clock, residue } = this.#world;
    this.#checksRelease = true;
    for (const request of this.#requests.filter(({ lease, outcome }) => lease && outcome === undefined)) {
      this.#giveBack(request);
    }
    await clock.advance(6_000);
    expect(this.#failure).toBeUndefined();
    expect(
      this.#waiting().map(({ id }) => id),
      "every waiter gets its turn",
    ).toEqual([]);
    await closeSimulated(this.#world);
    expect(residue?.() ?? [], "no residue remains").toEqual([]);
    expect(this.#failure).toBeUndefined();
  }
}
