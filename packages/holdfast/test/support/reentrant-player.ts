import { AsyncResource } from "node:async_hooks";

import fc from "fast-check";
import { isLockError, LeaseLostError, type Lease, type Locks } from "holdfast";
import { expect } from "vitest";

import { ReentrantModel, type Ask, type Outcome } from "./reentrant-model.ts";
import { closeWorld, type World } from "./simulated-engines.ts";

const key = "k";

export type Step =
  | {
      readonly ask: "work" | "lease";
      readonly by: number;
      /** A session, a work around it (the newest is 0), or neither. */
      readonly as: { readonly session: string } | { readonly inside: number } | null;
      readonly ttlMs: number;
      readonly renew: boolean;
      readonly waitMs: number | null;
    }
  | { readonly release: number }
  | { readonly end: number }
  | { readonly abort: number }
  | { readonly lose: number }
  | { readonly advance: number };

const which = fc.nat(5);

/** Times are such that an expiry and a deadline never fall on the same moment: hundreds of ms, and 50 or 20 more. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 24,
      arbitrary: fc.record({
        ask: fc.constantFrom("work", "lease"),
        by: fc.nat(1),
        as: fc.oneof(
          { weight: 1, arbitrary: fc.constant(null) },
          { weight: 2, arbitrary: fc.record({ session: fc.constantFrom("s", "t") }) },
          { weight: 4, arbitrary: fc.record({ inside: fc.nat(2) }) },
        ),
        ttlMs: fc.integer({ min: 2, max: 8 }).map((hundreds) => hundreds * 100 + 50),
        renew: fc.boolean(),
        waitMs: fc.constantFrom(null, 0, 120, 520, Infinity, Infinity, Infinity),
      }),
    },
    { weight: 12, arbitrary: fc.record({ release: which }) },
    { weight: 8, arbitrary: fc.record({ end: which }) },
    { weight: 5, arbitrary: fc.record({ abort: which }) },
    { weight: 2, arbitrary: fc.record({ lose: fc.nat(1) }) },
    { weight: 6, arbitrary: fc.record({ advance: fc.integer({ min: 1, max: 6 }).map((n) => n * 100) }) },
  ),
  { maxLength: 40, size: "max" },
) as fc.Arbitrary<Step[]>;

type ReentrantLockable = ReturnType<Locks["reentrant"]>;

interface Options {
  readonly ttlMs: number;
  readonly renew: boolean;
  readonly signal: AbortSignal;
  readonly session: string | undefined;
}

/** One acquire, from the asking to the release. */
interface Asked extends Ask {
  readonly by: number;
  readonly inside: Asked | undefined;
  readonly controller: AbortController;
  /** Whoever shares a hold with it has the same. */
  readonly root: string;
  lease: Lease | undefined;
  signal: AbortSignal | undefined;
  /** Of work: where it runs, and its end. */
  scope: AsyncResource | undefined;
  finish: () => void;
  /** Why it ended. */
  outcome: Outcome | undefined;
  /** Whether it had been told of a loss when it was released. */
  wasTold: boolean;
}

/** Plays steps, watches over what was promised, and compares with the model where the engine is exact. */
export class ReentrantPlay {
  readonly #world: World;
  /** Of an engine that is exact. */
  readonly #model: ReentrantModel | undefined;
  readonly #asked: Asked[] = [];
  readonly #broken = new Set<bigint>();
  #largest = 0n;
  #givesBack = false;
  #failure: unknown;

  constructor(world: World) {
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
    if ("ask" in step) {
      this.#ask(step);
    } else if ("release" in step) {
      const leases = this.#asked.filter(({ isWork, lease }) => !isWork && lease);
      this.#release(leases.at(-1 - step.release)); // perhaps once too many
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

  #ask(step: Extract<Step, { ask: string }>): void {
    const { as, ttlMs, renew, waitMs } = step;
    const asked = this.#askedBy(step);
    this.#asked.push(asked);
    this.#model?.ask(asked);
    const session = as && "session" in as ? as.session : undefined;
    const options = { ttlMs, renew, signal: asked.controller.signal, session };
    const call = (): void => {
      this.#call(asked, options, waitMs).catch((error: unknown) => (this.#failure ??= error));
    };
    if (asked.inside?.scope) {
      asked.inside.scope.runInAsyncScope(call);
    } else {
      call();
    }
  }

  #askedBy({ ask, by, as, ttlMs, renew, waitMs }: Extract<Step, { ask: string }>): Asked {
    const works = this.#asked.filter(({ scope }) => scope);
    const inside = as && "inside" in as ? works.at(-1 - as.inside) : undefined;
    const session = as && "session" in as ? `${by} ${as.session}` : undefined;
    const id = this.#asked.length;
    return {
      id,
      by: inside?.by ?? by,
      session,
      inside,
      isWork: ask === "work",
      ttlMs: renew ? Infinity : ttlMs,
      deadline: waitMs === null ? null : this.#world.clock.now() + waitMs,
      controller: new AbortController(),
      root: inside?.root ?? session ?? String(id),
      lease: undefined,
      signal: undefined,
      scope: undefined,
      finish: () => undefined,
      outcome: undefined,
      wasTold: false,
    };
  }

  async #call(asked: Asked, options: Options, waitMs: number | null): Promise<void> {
    const lock = this.#world.locks[asked.by]?.reentrant(key) as ReentrantLockable;
    try {
      await (asked.isWork ? this.#callWork : this.#callLease).call(this, asked, lock, options, waitMs);
    } catch (error) {
      this.#refused(asked, error);
    }
  }

  async #callWork(
    asked: Asked,
    lock: ReentrantLockable,
    options: Options,
    waitMs: number | null,
  ): Promise<void> {
    const work = (lease: Lease): Promise<void> => this.#work(asked, lease);
    if (waitMs !== null) {
      await lock.withLock({ ...options, waitMs }, work);
    } else if (!(await lock.tryWithLock(options, work)).ran) {
      asked.outcome = "null";
    }
    expect(asked.wasTold, "work is told of a loss").toBe(false);
  }

  async #callLease(
    asked: Asked,
    lock: ReentrantLockable,
    options: Options,
    waitMs: number | null,
  ): Promise<void> {
    const lease = await (waitMs === null ? lock.tryAcquire(options) : lock.acquire({ ...options, waitMs }));
    if (lease) {
      this.#granted(asked, lease);
    } else {
      asked.outcome = "null";
    }
  }

  #work(asked: Asked, lease: Lease): Promise<void> {
    const done = new Promise<void>((resolve) => {
      asked.finish = resolve;
    });
    asked.scope = new AsyncResource("work");
    this.#granted(asked, lease);
    return done;
  }

  #granted(asked: Asked, lease: Lease): void {
    const { fencingToken } = lease;
    asked.lease = lease;
    asked.signal = lease.signal;
    const inside = this.#inside().filter((other) => other !== asked);
    const strangers = inside.filter((other) => other.lease?.fencingToken !== fencingToken);
    expect(
      strangers.map(({ id }) => id),
      "nobody else is inside",
    ).toEqual([]);
    const nest = this.#asked.filter((other) => other.lease?.fencingToken === fencingToken);
    expect(new Set(nest.map(({ root }) => root)), "only its own share its hold").toEqual(
      new Set([asked.root]),
    );
    if (nest.length === 1) {
      expect(fencingToken, "numbers rise").toBeGreaterThan(this.#largest);
      this.#largest = fencingToken;
    }
    expect(lease.remainingMs(), "nobody is given what is over").toBeGreaterThan(0);
    this.#giveBack(asked);
  }

  #refused(asked: Asked, error: unknown): void {
    if (asked.lease) {
      expect(error, "work is told of a loss").toBeInstanceOf(LeaseLostError);
      expect(asked.signal?.aborted, "and was told before").toBe(true);
      asked.outcome = "released";
    } else if (error === "enough") {
      asked.outcome = "enough";
    } else if (isLockError(error, "wait-timeout") || isLockError(error, "lease-lost")) {
      asked.outcome = error.code as Outcome;
    } else {
      throw error;
    }
  }

  #release(asked: Asked | undefined): void {
    if (!asked?.lease) {
      return;
    }
    const { lease, outcome } = asked;
    const wasValid = lease.remainingMs() > 0;
    const expected = this.#model?.release(asked);
    this.#over(asked);
    lease
      .release()
      .then((wasOurs) => {
        if (expected !== undefined && !this.#givesBack) {
          expect(wasOurs, "the answer of a release").toBe(expected);
        } else if (wasValid && outcome === undefined && !this.#broken.has(lease.fencingToken)) {
          expect(wasOurs, "a valid lease is released").toBe(true);
        }
      })
      .catch((error: unknown) => (this.#failure ??= error));
  }

  #over(asked: Asked): void {
    if (asked.outcome === undefined) {
      asked.outcome = "released";
      asked.wasTold = asked.signal?.aborted === true;
    }
  }

  #finish(asked: Asked | undefined): void {
    if (asked) {
      this.#model?.release(asked);
      this.#over(asked);
      asked.finish();
    }
  }

  #abort(asked: Asked | undefined): void {
    if (asked) {
      this.#model?.abort(asked);
      asked.controller.abort("enough");
    }
  }

  #lose(by: number): void {
    const fencingToken = this.#inside()[0]?.lease?.fencingToken;
    if (fencingToken !== undefined) {
      this.#broken.add(fencingToken);
      this.#model?.lose();
      this.#world.locks[by]
        ?.breakLock(key, { fencingToken, reason: "test" })
        .catch((error: unknown) => (this.#failure ??= error));
    }
  }

  #giveBack(asked: Asked): void {
    if (this.#givesBack && asked.isWork) {
      this.#finish(asked);
    } else if (this.#givesBack) {
      this.#release(asked);
    }
  }

  #waiting(): Asked[] {
    return this.#asked.filter(({ lease, outcome }) => !lease && outcome === undefined);
  }

  #working(): Asked[] {
    return this.#asked.filter(({ scope, outcome }) => scope && outcome === undefined);
  }

  /** Those who may believe that they hold it. */
  #inside(): Asked[] {
    return this.#asked.filter(
      ({ lease }) => lease && lease.remainingMs() > 0 && !this.#broken.has(lease.fencingToken),
    );
  }

  /** In memory every moment is exact. */
  async #compare(): Promise<void> {
    const model = this.#model;
    if (!model) {
      return;
    }
    const seen = this.#asked.map((asked) => [asked.id, seenOf(asked)]);
    expect(seen).toEqual(this.#asked.map((asked) => [asked.id, model.outcomeOf(asked)]));
    for (const { signal, outcome, lease, wasTold } of this.#asked.filter((asked) => asked.lease)) {
      const isLost = outcome === undefined ? lease?.remainingMs() === 0 : wasTold;
      expect(signal?.aborted, "a loss is told to all in the nest, and to nobody who left it").toBe(isLost);
    }
    const state = await this.#world.locks[0]?.inspect(key);
    expect(state?.holders.length, "whether it is held").toBe(model.isHeld ? 1 : 0);
    expect(state?.waiterCount, "how many wait at the engine").toBe(model.waiterCount);
  }

  /** Everybody gives back at once what he has or gets: all have their turn, and nothing is left. */
  async #end(): Promise<void> {
    const { clock, leftovers } = this.#world;
    this.#givesBack = true;
    for (const asked of this.#asked.filter(({ lease, outcome }) => lease && outcome === undefined)) {
      this.#giveBack(asked);
    }
    await clock.advance(6_000);
    expect(this.#failure).toBeUndefined();
    expect(
      this.#waiting().map(({ id }) => id),
      "everybody has his turn",
    ).toEqual([]);
    await closeWorld(this.#world);
    expect(leftovers?.() ?? [], "nothing is left").toEqual([]);
    expect(this.#failure).toBeUndefined();
  }
}

function seenOf({ lease, outcome }: Asked): Outcome {
  if (outcome !== undefined) {
    return outcome;
  } else if (!lease) {
    return "waiting";
  }
  return lease.remainingMs() > 0 ? "held" : "lost";
}
