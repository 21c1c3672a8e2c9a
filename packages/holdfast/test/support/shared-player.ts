import { isLockError, type Lease, type WriteLease } from "holdfast";
import { expect } from "vitest";

import { SharedLockChecker } from "./shared-checker.ts";
import { SharedLockModel } from "./shared-model.ts";
import type { PlayedRequest } from "./shared-request.ts";
import { injectFault, key, processes, type SharedKind, type Step } from "./shared-steps.ts";
import { closeSimulated, type SimulatedEngine } from "./simulated-engines.ts";

/** Plays steps against an engine, checks the guarantees, and compares with the model if the engine is exact. */
export class SharedScenarioPlayer {
  readonly #world: SimulatedEngine;
  readonly #kind: SharedKind;
  readonly #model: SharedLockModel;
  readonly #checker: SharedLockChecker;
  readonly #requests: PlayedRequest[] = [];
  readonly #closed = new Set<number>();
  readonly #isFaultFree: boolean;
  readonly #allowsHandover: boolean;
  #step = 0;
  #checksRelease = false;
  #failure: unknown;

  /** @param handsOver if leases are handed over in memory, order and fencing tokens hold for grants only, not for leases */
  constructor(world: SimulatedEngine, kind: SharedKind, isFaultFree: boolean, handsOver = false) {
    this.#world = world;
    this.#kind = kind;
    this.#isFaultFree = isFaultFree;
    this.#allowsHandover = handsOver;
    this.#checker = new SharedLockChecker({
      kind,
      requests: this.#requests,
      isFaultFree,
      allowsHandover: handsOver,
    });
    this.#model = new SharedLockModel(kind.limit, world.clock.now());
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      this.#step += 1;
      this.#checker.beginStep();
      await this.#do(step);
      await this.#settle();
      this.#checker.expectArrivalOrder(this.#step);
      await this.#compare();
    }
    await this.#end();
  }

  async #do(step: Step): Promise<void> {
    if ("acquire" in step) {
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
      injectFault(this.#world.faults[step.at], step.fault);
    }
  }

  #request({ acquire, by, ttlMs, waitMs, renew }: Extract<Step, { acquire: number }>): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by)) {
      return;
    }
    const { limit } = this.#checker;
    const weight = Math.min(acquire, limit);
    const controller = new AbortController();
    const request: PlayedRequest = {
      id: this.#requests.length,
      by,
      weight,
      waits: waitMs !== null && waitMs > 0,
      controller,
      floor: this.#checker.largest,
      limit,
      isBroken: false,
      wasImpossible: false,
      state: "waiting",
      lease: undefined,
      grantedIn: -1,
    };
    this.#requests.push(request);
    const lockable = this.#kind.lockable(locks, key, weight, limit);
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
          this.#checker.expectRefusal(error);
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
    this.#checker.granted(request, lease);
    if (this.#checksRelease) {
      this.#release(request);
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
          // An unresponsive server receives the release only after its recovery, and the lease may have expired by then.
          const isOver = this.#world.clock.now() - since >= leftMs;
          expect(wasOurs || isOver || request.isBroken, "a valid lease is released").toBe(true);
        },
        (error: unknown) => {
          this.#checker.expectRefusal(error);
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
          this.#checker.expectRefusal(error);
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
      locks.admin.breakLock(key, { fencingToken, reason: "test" }).then(
        () => undefined,
        (error: unknown) => {
          this.#checker.expectRefusal(error);
        },
      ),
    );
  }

  #downgrade(request: PlayedRequest, lease: Lease, isAnswerLost: boolean): void {
    if (lease.remainingMs() === 0 || request.weight === 1) {
      return;
    } else if (isAnswerLost && !this.#isFaultFree) {
      injectFault(this.#world.faults[request.by], "reset");
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
    const present = this.#checker.limit;
    this.#checker.setLimit(wanted);
    for (const request of this.#requests) {
      request.wasImpossible ||= request.weight > wanted;
    }
    this.#model.setLimit(wanted);
    this.#follow(this.#kind.setLimit(locks, key, present, wanted));
  }

  #close(by: number): void {
    const locks = this.#world.locks[by];
    if (!locks || this.#closed.has(by) || this.#closed.size === processes - 1) {
      return; // the close of the last process would close the engine
    }
    this.#closed.add(by);
    const own = this.#requests.filter((request) => request.by === by);
    const cleanup = own.filter(({ state, lease }) => state === "waiting" || (lease?.remainingMs() ?? 0) > 0);
    this.#model.dequeueAll(cleanup.map(({ id }) => id));
    this.#follow(locks.close());
  }

  #onHeld(index: number, action: (request: PlayedRequest, lease: Lease) => void): void {
    const held = this.#requests.filter(({ state, by }) => state === "granted" && !this.#closed.has(by));
    const request = held.at(-1 - index);
    if (request?.lease) {
      action(request, request.lease);
    }
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

  /** In memory every time is exact. */
  async #compare(): Promise<void> {
    const observer = this.#world.locks.find((_, index) => !this.#closed.has(index));
    if (this.#world.name === "memory" && !this.#allowsHandover && observer) {
      await this.#checker.compare(this.#model, observer);
    }
  }

  /** The faults end, and every holder releases at once. Every waiter gets its turn, and no residue remains. */
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
    // A waiter that a lower limit refused polls after 5 s. A waiter that lost a reply may need several polls.
    await clock.advance(this.#isFaultFree ? 6_000 : 20_000);
    expect(this.#failure).toBeUndefined();
    const waiting = this.#requests.filter(({ state }) => state === "waiting");
    expect(
      waiting.map(({ id }) => id),
      "every waiter gets its turn",
    ).toEqual([]);
    // A repeated request may have left a queue entry, which lasts for a minute.
    await clock.advance(this.#isFaultFree ? 0 : 61_000);
    await closeSimulated(this.#world);
    expect(residue?.() ?? [], "no residue remains").toEqual([]);
    expect(this.#failure).toBeUndefined();
  }
}
