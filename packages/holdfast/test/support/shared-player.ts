import {
  isLockError,
  type AcquireOptions,
  type Lease,
  type Lockable,
  type Locks,
  type WriteLease,
} from "holdfast";
import fc from "fast-check";
import { expect } from "vitest";

import { SharedLockModel } from "./shared-model.ts";
import { closeSimulated, type SimulatedEngine } from "./simulated-engines.ts";

/** A kind of lock that several may hold. Demands are weights. */
export interface SharedKind {
  readonly limit: number;
  readonly weights: readonly number[];
  readonly limits: readonly number[];
  lockable(locks: Locks, key: string, weight: number, limit: number): Lockable<AcquireOptions>;
  setLimit(locks: Locks, key: string, present: number, wanted: number): Promise<void>;
}

const processes = 3;
const key = "k";

export type Step =
  | {
      readonly ask: number;
      readonly by: number;
      readonly ttlMs: number;
      readonly waitMs: number | null;
      readonly renew: boolean;
    }
  | { readonly release: number }
  | { readonly extend: number; readonly ttlMs: number }
  | { readonly abort: number }
  | { readonly break: number; readonly by: number }
  | { readonly downgrade: number; readonly isAnswerLost: boolean }
  | { readonly setLimit: number; readonly by: number }
  | { readonly advance: number }
  | { readonly close: number }
  | { readonly fault: "silence" | "reset" | "duplicate" | "mute" | "none"; readonly at: number };

interface Weights {
  readonly downgrade?: number;
  readonly setLimit?: number;
  readonly fault?: number;
}

/** Times are such that an expiry and a deadline never fall on the same moment: hundreds of ms, and 1 or 50 more. */
export function stepsOf(kind: SharedKind, weights: Weights): fc.Arbitrary<Step[]> {
  const by = fc.nat(processes - 1);
  const which = fc.nat(6);
  const ttlMs = fc.integer({ min: 2, max: 8 }).map((hundreds) => hundreds * 100 + 1);
  const waitMs = fc.constantFrom(null, 0, 150, 550, 1_050, Infinity, Infinity);
  const step = fc.oneof(
    {
      weight: 24,
      arbitrary: fc.record({
        ask: fc.constantFrom(...kind.weights),
        by,
        ttlMs,
        waitMs,
        renew: fc.boolean(),
      }),
    },
    { weight: 14, arbitrary: fc.record({ release: which }) },
    { weight: 4, arbitrary: fc.record({ extend: which, ttlMs }) },
    { weight: 6, arbitrary: fc.record({ abort: which }) },
    { weight: 4, arbitrary: fc.record({ break: which, by }) },
    { weight: 12, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 6 }).map((n) => n * 100) }) },
    {
      weight: 4 * (weights.downgrade ?? 0),
      arbitrary: fc.record({ downgrade: which, isAnswerLost: fc.boolean() }),
    },
    {
      weight: 4 * (weights.setLimit ?? 0),
      arbitrary: fc.record({ setLimit: fc.constantFrom(...kind.limits), by }),
    },
    {
      weight: 4 * (weights.fault ?? 0),
      arbitrary: fc.record({
        fault: fc.constantFrom("silence", "reset", "duplicate", "mute", "none"),
        at: by,
      } as const),
    },
    { weight: 1, arbitrary: fc.record({ close: by }) },
  );
  return fc.array(step, { maxLength: 40, size: "max" }) as fc.Arbitrary<Step[]>;
}

type State = "waiting" | "granted" | "over";

/** One request, from the asking to the end of its lease. */
interface PlayedRequest {
  readonly id: number;
  readonly by: number;
  readonly waits: boolean;
  readonly controller: AbortController;
  /** Greater than every number that had been seen when it was asked. */
  readonly floor: bigint;
  /** The limit that it named. */
  readonly limit: number;
  weight: number;
  /** An operator's force ended it, of which its holder need not have heard. */
  isBroken: boolean;
  /** For a while it wanted more than there was: an engine may send it away, and it asks again. */
  wasImpossible: boolean;
  state: State;
  lease: Lease | undefined;
  grantedIn: number;
}

/** Plays steps against an engine, watches over what was promised, and compares with the model where the engine is exact. */
export class SharedScenarioPlayer {
  readonly #world: SimulatedEngine;
  readonly #kind: SharedKind;
  readonly #model: SharedLockModel;
  readonly #requests: PlayedRequest[] = [];
  readonly #closed = new Set<number>();
  readonly #isFaultFree: boolean;
  readonly #allowsHandover: boolean;
  #limit: number;
  /** The largest limit of this step. */
  #limitOfStep: number;
  /** A limit is forgotten where nobody holds or waits: the next request brings the one that it names, perhaps an earlier one. */
  #limitAfterIdle = 0;
  #step = 0;
  #largest = 0n;
  #checksRelease = false;
  #failure: unknown;

  /** @param handsOver in memory: then order and numbers are those of grants by the server, and not of leases */
  constructor(world: SimulatedEngine, kind: SharedKind, isFaultFree: boolean, handsOver = false) {
    this.#world = world;
    this.#kind = kind;
    this.#isFaultFree = isFaultFree;
    this.#allowsHandover = handsOver;
    this.#limit = kind.limit;
    this.#limitOfStep = kind.limit;
    this.#model = new SharedLockModel(kind.limit, world.clock.now());
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      this.#step += 1;
      this.#limitOfStep = this.#limit;
      await this.#do(step);
      await this.#settle();
      this.#watch();
      await this.#compare();
    }
    await this.#end();
  }

  async #do(step: Step): Promise<void> {
    if ("ask" in step) {
      this.#request(step);
    } else if ("release" in step) {
      this.#onHeld(step.release, (request) => this.#release(request));
    } else if ("extend" in step) {
      this.#onHeld(step.extend, (request, lease) => this.#extend(request, lease, step.ttlMs));
    } else if ("abort" in step) {
      this.#abort(step.abort);
    } else if ("break" in step) {
      this.#onHeld(step.break, (request, lease) => this.#break(request, lease, step.by));
    } else if ("downgrade" in step) {
      this.#onHeld(step.downgrade, (request, lease) => this.#downgrade(request, lease, step.isAnswerLost));
    } else if ("setLimit" in step) {
      this.#setLimit(step.setLimit, step.by);
    } else if ("advance" in step) {
      this.#model.advance(step.advance);
      await this.#world.clock.advance(step.advance);
    } else if ("close" in step) {
      this.#close(step.close);
    } else {
      this.#fault(step.fault, step.at);
    }
  }

  #request({ ask, by, ttlMs, waitMs, renew }: Extract<Step, { ask: number }>): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by)) {
      return;
    }
    const weight = Math.min(ask, this.#limit);
    const controller = new AbortController();
    const request: PlayedRequest = {
      id: this.#requests.length,
      by,
      weight,
      waits: waitMs !== null && waitMs > 0,
      controller,
      floor: this.#largest,
      limit: this.#limit,
      isBroken: false,
      wasImpossible: false,
      state: "waiting",
      lease: undefined,
      grantedIn: -1,
    };
    this.#requests.push(request);
    const lockable = this.#kind.lockable(locks, key, weight, this.#limit);
    const options = { ttlMs, renew, signal: controller.signal };
    const granting: Promise<Lease | null> =
      waitMs === null ? lockable.tryAcquire(options) : lockable.acquire({ ...options, waitMs });
    const deadline = request.waits ? this.#model.now + (waitMs as number) : null;
    this.#model.request({ id: request.id, weight, ttlMs: renew ? Infinity : ttlMs, deadline });
    this.#follow(
      granting.then(
        (lease) => {
          this.#settled(request, lease);
        },
        (error: unknown) => {
          request.state = "over";
          this.#expectRefusal(error);
        },
      ),
    );
  }

  #settled(request: PlayedRequest, lease: Lease | null): void {
    request.state = lease ? "granted" : "over";
    if (!lease) {
      return;
    }
    request.lease = lease;
    request.grantedIn = this.#step;
    const living = this.#living();
    if (living.length === 1) {
      this.#limitAfterIdle = request.limit;
    }
    const weights = living.reduce((sum, { weight }) => sum + weight, 0);
    expect(weights, "never more than the limit at once").toBeLessThanOrEqual(
      // A run of hand-overs goes on behind a lowered limit.
      Math.max(
        this.#limit,
        this.#limitOfStep,
        this.#limitAfterIdle,
        this.#allowsHandover ? request.limit : 0,
      ),
    );
    expect(lease.remainingMs(), "nobody is given what is over").toBeGreaterThan(0);
    if (!this.#allowsHandover) {
      expect(lease.fencingToken, "numbers rise").toBeGreaterThan(request.floor);
    }
    const sameNumber = this.#requests.filter((other) => other.lease?.fencingToken === lease.fencingToken);
    expect(sameNumber, "each lease has a number of its own").toEqual([request]);
    for (const other of this.#requests) {
      const conflicts = other.weight + request.weight > Math.max(...this.#kind.limits);
      if (other.lease && other !== request && conflicts) {
        expect(lease.fencingToken, "numbers rise in the order of grants").toBeGreaterThan(
          other.lease.fencingToken,
        );
      }
    }
    this.#largest = lease.fencingToken > this.#largest ? lease.fencingToken : this.#largest;
    if (this.#checksRelease) {
      this.#release(request);
    }
  }

  #expectRefusal(error: unknown): void {
    const isExpected =
      error === "enough" ||
      isLockError(error, "wait-timeout") ||
      isLockError(error, "closed") ||
      isLockError(error, "limit-mismatch") ||
      (!this.#isFaultFree && isLockError(error, "engine-unavailable"));
    if (!isExpected) {
      throw error;
    }
  }

  #release(request: PlayedRequest): void {
    const { lease } = request;
    this.#model.dequeue(request.id);
    request.state = "over";
    const leftMs = lease?.remainingMs() ?? 0;
    const since = this.#world.clock.now();
    const releasing = lease?.release() ?? Promise.resolve(false);
    this.#follow(
      releasing.then(
        (wasOurs) => {
          // A silent server is told of the release only when it answers again, and the lease may have expired by then.
          const isOver = this.#world.clock.now() - since >= leftMs;
          expect(wasOurs || isOver || request.isBroken, "a valid lease is released").toBe(true);
        },
        (error: unknown) => {
          this.#expectRefusal(error);
        },
      ),
    );
  }

  #extend(request: PlayedRequest, lease: Lease, ttlMs: number): void {
    if (lease.remainingMs() > 0) {
      this.#model.extend(request.id, ttlMs);
    }
    this.#follow(
      lease.extend(ttlMs).catch((error: unknown) => {
        if (!isLockError(error, "lease-lost")) {
          this.#expectRefusal(error);
        }
      }),
    );
  }

  #abort(index: number): void {
    const waiting = this.#requests.filter(({ state }) => state === "waiting");
    const request = waiting.at(-1 - index);
    if (request) {
      this.#model.dequeue(request.id);
      request.controller.abort("enough");
    }
  }

  #break(request: PlayedRequest, { fencingToken }: Lease, by: number): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by)) {
      return;
    }
    request.isBroken = true;
    this.#model.dequeue(request.id);
    this.#follow(
      locks.breakLock(key, { fencingToken, reason: "test" }).then(
        () => undefined,
        (error: unknown) => {
          this.#expectRefusal(error);
        },
      ),
    );
  }

  #downgrade(request: PlayedRequest, lease: Lease, isAnswerLost: boolean): void {
    if (lease.remainingMs() === 0 || request.weight === 1) {
      return;
    } else if (isAnswerLost && !this.#isFaultFree) {
      this.#fault("reset", request.by);
    }
    request.weight = 1;
    this.#model.setWeight(request.id, 1);
    this.#follow(
      (lease as WriteLease).downgrade().then(
        (reader) => {
          request.lease = reader;
          expect(reader.fencingToken).toBe(lease.fencingToken);
        },
        (error: unknown) => {
          expect(isLockError(error, "lease-lost")).toBe(true);
        },
      ),
    );
  }

  #setLimit(wanted: number, by: number): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by)) {
      return;
    }
    const present = this.#limit;
    this.#limit = wanted;
    this.#limitAfterIdle = 0;
    for (const request of this.#requests) {
      request.wasImpossible ||= request.weight > wanted;
    }
    this.#model.setLimit(wanted);
    this.#follow(this.#kind.setLimit(locks, key, present, wanted));
  }

  #close(by: number): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by) || this.#closed.size === processes - 1) {
      return; // the last one closes the engine
    }
    this.#closed.add(by);
    const own = this.#requests.filter((request) => request.by === by);
    const cleanup = own.filter(({ state, lease }) => state === "waiting" || (lease?.remainingMs() ?? 0) > 0);
    this.#model.dequeueAll(cleanup.map(({ id }) => id));
    this.#follow(locks.close());
  }

  #fault(fault: Extract<Step, { fault: string }>["fault"], at: number): void {
    const faults = this.#world.faults[at];
    switch (fault) {
      case "silence":
      case "reset":
        faults?.dropReply(1, fault);
        return;
      case "duplicate":
        faults?.duplicate(1, 130);
        return;
      case "mute":
        faults?.dropMessages(() => true);
        return;
      case "none":
        faults?.dropMessages(null);
        return;
    }
  }

  #onHeld(index: number, action: (request: PlayedRequest, lease: Lease) => void): void {
    const held = this.#requests.filter(({ state, by }) => state === "granted" && !this.#closed.has(by));
    const request = held.at(-1 - index);
    if (request?.lease) {
      action(request, request.lease);
    }
  }

  #living(): PlayedRequest[] {
    return this.#requests.filter(
      ({ lease, isBroken }) => !isBroken && lease !== undefined && lease.remainingMs() > 0,
    );
  }

  #follow(promise: Promise<unknown>): void {
    promise.catch((error: unknown) => (this.#failure ??= error));
  }

  async #settle(): Promise<void> {
    const { latencyMs, clock } = this.#world;
    this.#model.advance(latencyMs);
    await clock.advance(latencyMs);
    if (this.#failure !== undefined) {
      throw this.#failure as Error;
    }
  }

  /** Nobody who came earlier still waits when somebody who came later was granted in this step. */
  #watch(): void {
    const newest = this.#requests.filter(({ grantedIn }) => grantedIn === this.#step);
    const waiting = this.#requests.filter(({ state, waits }) => state === "waiting" && waits);
    for (const { id } of this.#isFaultFree && !this.#allowsHandover ? newest : []) {
      const passed = waiting.filter((other) => other.id < id && !other.wasImpossible);
      expect(passed, "nobody is passed over").toEqual([]);
    }
  }

  /** In memory every moment is exact. */
  async #compare(): Promise<void> {
    const observer = this.#world.locks.find((_, index) => !this.#closed.has(index));
    if (this.#world.name !== "memory" || this.#allowsHandover || !observer) {
      return;
    }
    const waiting = this.#requests.filter(({ state }) => state === "waiting").map(({ id }) => id);
    expect(waiting, "those who wait").toEqual(this.#model.waiters);
    const { holders, waiterCount } = await observer.inspect(key);
    const ids = holders.map(
      ({ fencingToken }) => this.#requests.find(({ lease }) => lease?.fencingToken === fencingToken)?.id,
    );
    expect(
      ids.sort((a = 0, b = 0) => a - b),
      "those who hold",
    ).toEqual(this.#model.holders);
    expect(waiterCount).toBe(waiting.length);
  }

  /** Faults end, everybody gives back at once what he has or gets: all have their turn, and nothing is left. */
  async #end(): Promise<void> {
    const { clock, faults, residue } = this.#world;
    for (const own of faults) {
      own.dropMessages(null);
      own.dropReply(0);
      own.duplicate(0, 0);
    }
    this.#checksRelease = true;
    for (const request of this.#requests) {
      if (request.state === "granted") {
        this.#release(request);
      }
    }
    // Who was sent away by a lower limit asks again after 5 s; who lost an answer, perhaps some times.
    await clock.advance(this.#isFaultFree ? 6_000 : 20_000);
    expect(this.#failure).toBeUndefined();
    const waiting = this.#requests.filter(({ state }) => state === "waiting");
    expect(
      waiting.map(({ id }) => id),
      "everybody has his turn",
    ).toEqual([]);
    // A request that came twice may have left a place in the queue, which lasts for a minute.
    await clock.advance(this.#isFaultFree ? 0 : 61_000);
    await closeSimulated(this.#world);
    expect(residue?.() ?? [], "nothing is left").toEqual([]);
    expect(this.#failure).toBeUndefined();
  }
}
