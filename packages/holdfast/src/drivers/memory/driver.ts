import { momentOf, systemClock, type Clock } from "../../runtime/clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  Extension,
  Grant,
  Latches,
  Pending,
  Report,
  Requeued,
  Together,
  Verified,
} from "../../driver.ts";
import { closedError, type LossReason } from "../../errors.ts";
import { checkNames, wrongCursor } from "../../options.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";
import type { FenceState, LockEvent, LockState, NodeState } from "../../lock-state.ts";
import { validFrom } from "../../validity.ts";
import { MemoryEngine } from "./lock-table.ts";
import type { Holding } from "./lock.ts";
import { Watchers } from "./watch.ts";

export interface MemoryOptions {
  /** Time and timers. @defaultValue those of this process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

const dayMs = 86_400_000;

const capabilities: Capabilities = {
  kinds: ["mutex", "read-write", "semaphore", "latch"],
  guarantee: "process",
  waiting: "notify",
  requeue: true,
  fencingBlocks: true,
  maxTtlMs: dayMs,
  claimMs: dayMs,
};

/**
 * An engine inside this process, that needs no server: among all who use the same driver object, and nobody else, one holds
 * a key at a time. A TTL runs on the monotonic clock, so it stands still while the machine sleeps.
 * @throws {TypeError} for an option that it does not know
 */
export function memory(options: MemoryOptions = {}): Driver {
  checkNames(options, ["clock", "random"]);
  return new MemoryDriver(options.clock ?? systemClock, options.random ?? systemRandom);
}

class MemoryDriver implements Driver {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities = capabilities;
  readonly #engine: MemoryEngine;
  readonly #watchers: Watchers;
  readonly #listeners = new Set<DriverListener>();
  readonly #startedAt: number;
  #owner = "unknown";
  #isClosed = false;

  constructor(clock: Clock, random: Random) {
    this.clock = clock;
    this.random = random;
    this.#startedAt = clock.now();
    this.#engine = new MemoryEngine(clock, random, (key) => this.#watchers.changed(key));
    this.#watchers = new Watchers({
      heldKeys: (prefix) => this.#engine.heldKeys(prefix),
      state: (key) => this.#engine.state(key, this.#owner),
    });
  }

  introduce(owner: string): void {
    this.#owner = owner;
  }

  checkKey(): void {
    // Every key that the core accepts can be held in memory.
  }

  ticket(): number {
    return this.#engine.ticket();
  }

  acquire(request: AcquireRequest): Pending {
    if (this.#isClosed) {
      return { result: Promise.reject(closedError(request.key)), cancel: () => undefined };
    }
    return this.#engine.ask(request, this.#owner);
  }

  async acquireTogether(requests: readonly AcquireRequest[]): Promise<Together> {
    this.#assertOpen(requests[0]?.key);
    const taken = requests.find((request) => !this.#engine.isFor(request));
    if (taken) {
      await this.#engine.ask(taken, this.#owner).result; // refuses what is another kind of lock
      return { outcome: "held", key: taken.key };
    }
    const answers = requests.map((request) => this.#engine.ask(request, this.#owner).result);
    const granted = (await Promise.all(answers)).flatMap((answer) =>
      answer.outcome === "granted" ? [answer.grant] : [],
    );
    return { outcome: "granted", grants: granted };
  }

  requeue(given: Grant, request: AcquireRequest): Requeued {
    const holding = this.#engine.holdingOf(given.key, given.token);
    if (holding !== undefined) {
      // Nobody is served before the new request stands in the queue too: its ticket may be the first.
      this.#engine.end(holding);
    }
    const pending = this.acquire(request);
    const lock = this.#engine.at(given.key);
    if (lock) {
      this.#engine.serve(lock); // the request may have been refused, as of a limit that was lowered
    }
    return { ...pending, released: Promise.resolve(holding !== undefined) };
  }

  async extend({ key, token, fencingToken, ttlMs, words }: ExtendRequest): Promise<Extension> {
    if (this.#isClosed) {
      return { outcome: "unknown", error: closedError(key) };
    }
    const holding = this.#engine.holdingOf(key, token);
    if (holding === undefined) {
      return { outcome: "lost", reason: this.#lossReason(key) };
    } else if (holding.fence.first > fencingToken) {
      return { outcome: "lost", reason: "expired" };
    }
    if (words !== undefined) {
      this.#tell(holding, words);
    }
    return { outcome: "renewed", validity: this.#engine.prolong(holding, ttlMs) };
  }

  async verify(key: string, token: string): Promise<Verified> {
    this.#assertOpen(key);
    const holding = this.#engine.holdingOf(key, token);
    if (holding === undefined) {
      return { outcome: "lost", reason: this.#lossReason(key) };
    }
    const asked = momentOf(this.clock);
    return { outcome: "held", validity: validFrom(asked, holding.dueAt - asked.now) };
  }

  async release(key: string, token: string): Promise<boolean> {
    const holding = this.#engine.holdingOf(key, token);
    if (holding === undefined) {
      return false;
    }
    this.#engine.end(holding);
    this.#engine.serve(holding.lock);
    return true;
  }

  async downgrade(key: string, token: string): Promise<boolean> {
    const holding = this.#engine.holdingOf(key, token);
    if (holding === undefined) {
      return false;
    }
    holding.lock.downgrade(holding);
    this.#engine.serve(holding.lock);
    return true;
  }

  async setLimit(key: string, limit: number): Promise<void> {
    this.#assertOpen(key);
    const refusal = this.#engine.setLimit(key, limit);
    if (refusal) {
      throw refusal;
    }
  }

  get latches(): Latches {
    return this.#engine.latches;
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async inspect(key: string): Promise<LockState> {
    this.#assertOpen(key);
    return this.#engine.state(key, this.#owner);
  }

  async list(query: {
    prefix: string;
    cursor: string | null;
    limit: number;
  }): Promise<{ locks: LockState[]; cursor: string | null }> {
    this.#assertOpen();
    const { prefix, cursor, limit } = query;
    if (cursor?.startsWith(">") === false) {
      throw wrongCursor(cursor);
    }
    const keys = this.#engine.heldKeys(prefix).sort();
    const rest = cursor === null ? keys : keys.filter((key) => key > cursor.slice(1));
    const page = rest.slice(0, limit);
    return {
      locks: page.map((key) => this.#engine.state(key, this.#owner)),
      cursor: rest.length > limit ? `>${page.at(-1) ?? ""}` : null,
    };
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watchers.watch(target, signal);
  }

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    this.#assertOpen(key);
    const holding = Array.from(this.#engine.at(key)?.holdings ?? []).find(
      ({ fence }) => fencingToken >= fence.first && fencingToken <= fence.last,
    );
    if (holding === undefined) {
      return false;
    }
    this.#engine.end(holding);
    this.#engine.serve(holding.lock);
    // Nobody sees the next grant before this turn ends: the old holder hears of its loss first.
    for (const listener of this.#listeners) {
      listener.lost(holding.token, "broken", new Error(reason));
    }
    return true;
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    this.#assertOpen(key);
    const holding = Array.from(this.#engine.at(key)?.holdings ?? []).find(
      ({ fence }) => fencingToken >= fence.current && fencingToken <= fence.last,
    );
    if (holding === undefined) {
      return "stale";
    }
    return fencingToken === holding.fence.last ? "current" : "unknown"; // it may have been handed on since
  }

  async nodes(): Promise<NodeState[]> {
    this.#assertOpen();
    return [
      {
        node: "memory",
        reachable: true,
        latencyMs: 0,
        version: null,
        role: null,
        replication: null,
        runId: null,
        uptimeMs: this.clock.now() - this.#startedAt,
        clockOffsetMs: 0,
        notifications: "proved",
        quarantine: null,
        error: null,
      },
    ];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#engine.close();
    this.#watchers.close();
    this.#listeners.clear();
  }

  #tell(holding: Holding, { fencingToken, localWaiters = 0, ...words }: Report): void {
    const isNews = holding.fence.current !== fencingToken || holding.localWaiters !== localWaiters;
    holding.words = words;
    holding.fence.current = fencingToken;
    holding.localWaiters = localWaiters;
    if (isNews) {
      this.#watchers.changed(holding.lock.key);
    }
  }

  /** Why a token does not hold that did: of those who share nobody takes it. */
  #lossReason(key: string): LossReason {
    return this.#engine.at(key)?.kind === "mutex" ? "stolen" : "expired";
  }

  #assertOpen(key?: string): void {
    if (this.#isClosed) {
      throw closedError(key);
    }
  }
}
