import { whenAborted } from "../cancellation.ts";
import type { Contention } from "../contention.ts";
import { LeaseLostError, LockError, WaitTimeoutError, type LossReason } from "../errors.ts";
import type { Frames } from "../frames.ts";
import { controllerOf, type HeldLease, type OwnedLease, type SerializedLease } from "../lease.ts";
import type { Way } from "../lockable.ts";
import { checkText, type AcquireOptions, type ResolvedAcquire } from "../options.ts";
import type { Mutexes } from "./mutex.ts";
import { Turns } from "./turns.ts";

export interface ReentrantOptions extends AcquireOptions {
  /**
   * Who asks, for work that is not one call tree: acquires of one session are nested whatever called them.
   * @defaultValue the innermost `withLock` of this `Locks` instance around the call; outside of any, each acquire is by itself
   */
  session?: string | undefined;
}

export interface ResolvedReentrant extends ResolvedAcquire {
  readonly session: string | undefined;
}

/**
 * Locks that their holder may acquire again: the server sees one mutex, the count lives in this process. Options that outlive
 * the grant are those of the outermost acquire.
 */
export class Reentrants {
  readonly #contention: Contention;
  readonly #frames: Frames;
  readonly #mutexes: Mutexes;
  readonly #sessions = new Map<string, Session>();
  #sweepAt = fewSessions;

  constructor(contention: Contention, frames: Frames, mutexes: Mutexes) {
    this.#contention = contention;
    this.#frames = frames;
    this.#mutexes = mutexes;
  }

  way(key: string, defaults: ResolvedReentrant): Way<ReentrantOptions, ResolvedReentrant, ReentrantLease> {
    return {
      resolve: (options) => this.resolve(options, defaults),
      resolveTry: ({ session, ...options } = {}) =>
        withSession(this.#mutexes.resolveTry(options, defaults), session, defaults.session),
      acquire: async (options, isForWork) => {
        const lease = await this.#enter(key, options, isForWork);
        if (!lease) {
          throw new WaitTimeoutError(key, options.waitMs, this.#contention.holderOf(key)?.describe());
        }
        return lease;
      },
      try: (options, isForWork) => this.#enter(key, { ...options, waitMs: 0 }, isForWork, true),
    };
  }

  resolve(
    { session, ...options }: ReentrantOptions = {},
    defaults: ResolvedAcquire & { readonly session?: string | undefined },
  ): ResolvedReentrant {
    return withSession(this.#mutexes.resolve(options, defaults), session, defaults.session);
  }

  /** Undefined: others of this process have it, of whom the caller has to wait for one. */
  async #enter(
    key: string,
    options: ResolvedReentrant,
    isForWork: boolean,
    isTry = false,
  ): Promise<ReentrantLease | null> {
    this.#contention.refuseClosed(key);
    options.signal?.throwIfAborted();
    const around = this.#frames.find(
      (lease) => lease instanceof ReentrantLease && lease.key === key && !lease.isOver,
    ) as ReentrantLease | undefined;
    const { session } = options;
    if (around && (session === undefined || session === around.session)) {
      return around.enter(options, isForWork);
    } else if (session !== undefined) {
      this.#frames.refuseWithin(key);
      return this.#enterSession(key, session, options, isTry);
    }
    const base = await this.#begin(key, options, isTry);
    return base && new Nest(this.#contention, base).enter();
  }

  #begin(key: string, options: ResolvedAcquire, isTry: boolean): Promise<HeldLease | null> {
    return isTry ? this.#mutexes.try(key, options) : this.#mutexes.acquire(key, options);
  }

  /** One of a session asks the engine; the others of it wait for what that one gets. */
  async #enterSession(
    key: string,
    name: string,
    options: ResolvedAcquire,
    isTry: boolean,
  ): Promise<ReentrantLease | null> {
    const id = JSON.stringify([key, name]);
    this.#sweep();
    const session = this.#sessions.get(id) ?? { turns: new Turns(this.#contention), nest: undefined };
    this.#sessions.set(id, session);
    const { clock } = this.#contention;
    const since = clock.now();
    if (!(await session.turns.take(options))) {
      return null;
    }
    try {
      const nest = session.nest?.deref();
      if (nest && !nest.isOver) {
        return nest.enter();
      }
      const waitMs = Math.max(0, options.waitMs - (clock.now() - since));
      const base = await this.#begin(key, { ...options, waitMs }, isTry);
      if (!base) {
        return null;
      }
      const begun = new Nest(this.#contention, base, name, () => {
        this.#forgetIfIdle(id, session);
      });
      session.nest = new WeakRef(begun);
      return begun.enter();
    } finally {
      session.turns.give();
      this.#forgetIfIdle(id, session);
    }
  }

  /** Nobody tells of sessions whose leases were orphaned, transferred or forgotten. */
  #sweep(): void {
    if (this.#sessions.size >= this.#sweepAt) {
      for (const [id, session] of this.#sessions) {
        this.#forgetIfIdle(id, session);
      }
      this.#sweepAt = Math.max(fewSessions, 2 * this.#sessions.size);
    }
  }

  #forgetIfIdle(id: string, session: Session): void {
    const isHeld = session.nest?.deref()?.isOver === false;
    if (!isHeld && session.turns.isIdle && this.#sessions.get(id) === session) {
      this.#sessions.delete(id);
    }
  }
}

/** So many may be left that are over. */
const fewSessions = 64;

interface Session {
  /** Whose it is to ask the engine. */
  readonly turns: Turns;
  /** What the session holds; weakly, so that a forgotten lease is found out. */
  nest: WeakRef<Nest> | undefined;
}

/** One hold at the engine, and how many of its owner's leases stand on it. */
class Nest {
  readonly contention: Contention;
  readonly base: HeldLease;
  readonly session: string | undefined;
  readonly #ended: () => void;
  #count = 0;

  constructor(
    contention: Contention,
    base: HeldLease,
    session?: string,
    ended: () => void = () => undefined,
  ) {
    this.contention = contention;
    this.base = base;
    this.session = session;
    this.#ended = ended;
  }

  /** Nobody is in it any more, or it was lost: once that was said, a late answer to a renewal does not prolong it any more. */
  get isOver(): boolean {
    return this.#count === 0 || this.base.lossNow() !== undefined || this.base.remainingMs() === 0;
  }

  get count(): number {
    return this.#count;
  }

  enter(left?: () => void): ReentrantLease {
    this.#count += 1;
    return new ReentrantLease(this, left);
  }

  /** The last one out gives it back. */
  async leave(): Promise<boolean> {
    this.#count -= 1;
    if (this.#count > 0) {
      return this.base.remainingMs() > 0;
    }
    try {
      return await this.base.release();
    } finally {
      this.#ended();
    }
  }
}

/** A lease that shares its hold with those around it. The lock is free when the last of them is released. */
export class ReentrantLease implements OwnedLease {
  readonly #nest: Nest;
  readonly #turns: Turns;
  readonly #left: () => void;
  #controller: AbortController | undefined;
  #stopFollowing: () => void = () => undefined;
  #releasing: Promise<boolean> | undefined;

  constructor(nest: Nest, left: () => void = () => undefined) {
    this.#nest = nest;
    this.#turns = new Turns(nest.contention);
    this.#left = left;
  }

  /**
   * A lease inside this one's `withLock`. Of the branches of that work one at a time has a `withLock` of its own; the others wait for
   * that one, and not for us. Null: not within `waitMs`.
   */
  async enter(options: ResolvedAcquire, isForWork: boolean): Promise<ReentrantLease | null> {
    if (!(await this.#turns.take(options))) {
      return null;
    }
    try {
      this.throwIfLost();
    } catch (error) {
      this.#turns.give();
      throw error;
    }
    if (isForWork) {
      return this.#nest.enter(() => {
        this.#turns.give();
      });
    }
    this.#turns.give();
    return this.#nest.enter();
  }

  get isOver(): boolean {
    return this.#releasing !== undefined;
  }

  get session(): string | undefined {
    return this.#nest.session;
  }

  get key(): string {
    return this.#base.key;
  }

  get keys(): readonly string[] {
    return this.#base.keys;
  }

  get owner(): string {
    return this.#base.owner;
  }

  get fencingToken(): bigint {
    return this.#base.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, bigint> {
    return this.#base.fencingTokens;
  }

  get validUntil(): number {
    return this.#base.validUntil;
  }

  /** The signal of the hold, until we are released. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = controllerOf(this);
      this.#controller = controller;
      const { signal } = this.#base;
      if (signal.aborted) {
        controller.abort(signal.reason);
      } else if (!this.isOver) {
        this.#stopFollowing = whenAborted(signal, (reason) => {
          controller.abort(reason);
        });
      }
    }
    return this.#controller.signal;
  }

  get wasTransferred(): boolean {
    return this.#base.wasTransferred;
  }

  get isInForce(): boolean {
    return this.remainingMs() > 0;
  }

  lossNow(): LossReason | undefined {
    return this.#base.lossNow();
  }

  remainingMs(): number {
    return this.isOver ? 0 : this.#base.remainingMs();
  }

  throwIfLost(): void {
    this.#base.throwIfLost();
    if (this.isOver) {
      throw new LeaseLostError(this.key, "released", this.#nest.contention.clock.wall());
    }
  }

  async extend(ttlMs?: number): Promise<void> {
    this.throwIfLost();
    await this.#base.extend(ttlMs);
  }

  release(): Promise<boolean> {
    if (!this.#releasing) {
      this.#stopFollowing();
      this.#releasing = this.#nest.leave();
      this.#left();
    }
    return this.#releasing;
  }

  orphan(): void {
    this.#base.orphan();
  }

  transfer(): SerializedLease {
    if (this.#nest.count > 1) {
      const message = `"${this.key}" is held ${this.#nest.count} times here; only the last of its leases can be transferred`;
      throw new LockError(message, { code: "unsupported", key: this.key });
    }
    this.throwIfLost();
    return this.#base.transfer();
  }

  toJSON(): ReturnType<HeldLease["toJSON"]> {
    return { ...this.#base.toJSON(), remainingMs: this.remainingMs() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => false);
  }

  get #base(): HeldLease {
    return this.#nest.base;
  }
}

function withSession(
  options: ResolvedAcquire,
  session: string | undefined,
  fallback: string | undefined,
): ResolvedReentrant {
  return { ...options, session: session === undefined ? fallback : checkText("session", session, 512) };
}
