import { instantNow, systemClock, type Clock } from "../../runtime/clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  Grant,
  LatchEngine,
  PendingAcquire,
  HolderReport,
  PendingRequeue,
  VerifyResult,
} from "../../driver.ts";
import { closedError, type LossReason } from "../../errors.ts";
import { checkOptionNames, invalidCursor } from "../../option-checks.ts";
import { systemRandom, type Random } from "../../runtime/random.ts";
import type { FenceState, LockEvent, LockState, NodeState } from "../../lock-state.ts";
import { validFrom } from "../../validity.ts";
import {
  auditPage,
  type AuditPage,
  type AuditQuery,
  type BreakNote,
  type BreakOutcome,
} from "../../operator/audit.ts";
import { AuditLog } from "./audit-log.ts";
import { LockTable } from "./lock-table.ts";
import type { HolderEntry } from "./lock.ts";
import { WatchHub } from "./watch.ts";

export interface MemoryOptions {
  /** Time and timers. @defaultValue the clock of the process */
  readonly clock?: Clock | undefined;
  /** @defaultValue the operating system's */
  readonly random?: Random | undefined;
}

const dayMs = 86_400_000;

const capabilities: Capabilities = {
  engine: "memory",
  kinds: ["mutex", "read-write", "semaphore", "latch"],
  guarantee: "process",
  waiting: "notify",
  requeue: true,
  fencingBlocks: true,
  maxTtlMs: dayMs,
  claimMs: dayMs,
};

/**
 * Locks within this process, without a server. Exclusion covers all users of the same driver object, and no other driver object.
 * A TTL runs on the monotonic clock, so a TTL stands still while the machine sleeps.
 * @throws {TypeError} for an unknown option
 * @example
 * ```ts
 * const locks = createLocks(memory()); // in tests, or for the tasks of one process
 * ```
 */
export function memory(options: MemoryOptions = {}): Driver {
  checkOptionNames(options, ["clock", "random"]);
  return new MemoryDriver(options.clock ?? systemClock, options.random ?? systemRandom);
}

class MemoryDriver implements Driver {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities = capabilities;
  readonly #table: LockTable;
  readonly #watchers: WatchHub;
  readonly #listeners = new Set<DriverListener>();
  readonly #startedAt: number;
  readonly #auditLog: AuditLog;
  #owner = "unknown";
  #isClosed = false;

  constructor(clock: Clock, random: Random) {
    this.clock = clock;
    this.random = random;
    this.#startedAt = clock.now();
    this.#auditLog = new AuditLog(clock);
    this.#table = new LockTable(clock, random, (key) => this.#watchers.changed(key));
    this.#watchers = new WatchHub({
      heldKeys: (prefix) => this.#table.heldKeys(prefix),
      state: (key) => this.#table.state(key, this.#owner),
    });
  }

  setOwner(owner: string): void {
    this.#owner = owner;
  }

  checkKey(): void {
    // Every key that the core accepts can be held in memory.
  }

  ticket(): number {
    return this.#table.ticket();
  }

  acquire(request: AcquireRequest): PendingAcquire {
    if (this.#isClosed) {
      return { result: Promise.reject(closedError(request.key)), cancel: () => undefined };
    }
    return this.#table.request(request, this.#owner);
  }

  requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const entry = this.#table.entryOf(previous.key, previous.token);
    if (entry !== undefined) {
      // The table grants nothing before the new request is queued, because its ticket may be the first.
      this.#table.end(entry);
    }
    const pending = this.acquire(request);
    const lock = this.#table.lockAt(previous.key);
    if (lock) {
      this.#table.grantNext(lock); // a rejected request, for example after a lowered limit, has granted nothing
    }
    return { ...pending, released: Promise.resolve(entry !== undefined) };
  }

  async extend({ key, token, fencingToken, ttlMs, info }: ExtendRequest): Promise<ExtendResult> {
    if (this.#isClosed) {
      return { outcome: "unknown", error: closedError(key) };
    }
    const entry = this.#table.entryOf(key, token);
    if (entry === undefined) {
      return { outcome: "lost", reason: this.#lossReason(key) };
    } else if (entry.fence.first > fencingToken) {
      return { outcome: "lost", reason: "expired" };
    }
    if (info !== undefined) {
      this.#setReport(entry, info);
    }
    return { outcome: "extended", validity: this.#table.extend(entry, ttlMs) };
  }

  async verify(key: string, token: string): Promise<VerifyResult> {
    this.#assertOpen(key);
    const entry = this.#table.entryOf(key, token);
    if (entry === undefined) {
      return { outcome: "lost", reason: this.#lossReason(key) };
    }
    const sent = instantNow(this.clock);
    return { outcome: "valid", validity: validFrom(sent, entry.dueAt - sent.now) };
  }

  async release(key: string, token: string): Promise<boolean> {
    const entry = this.#table.entryOf(key, token);
    if (entry === undefined) {
      return false;
    }
    this.#table.end(entry);
    this.#table.grantNext(entry.lock);
    return true;
  }

  async downgrade(key: string, token: string): Promise<boolean> {
    const entry = this.#table.entryOf(key, token);
    if (entry === undefined) {
      return false;
    }
    entry.lock.downgrade(entry);
    this.#table.grantNext(entry.lock);
    return true;
  }

  async setLimit(key: string, limit: number): Promise<void> {
    this.#assertOpen(key);
    const refusal = this.#table.setLimit(key, limit);
    if (refusal) {
      throw refusal;
    }
  }

  get latches(): LatchEngine {
    return this.#table.latches;
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async inspect(key: string): Promise<LockState> {
    this.#assertOpen(key);
    return this.#table.state(key, this.#owner);
  }

  async list(query: {
    prefix: string;
    cursor: string | null;
    limit: number;
  }): Promise<{ locks: LockState[]; cursor: string | null }> {
    this.#assertOpen();
    const { prefix, cursor, limit } = query;
    if (cursor?.startsWith(">") === false) {
      throw invalidCursor(cursor);
    }
    const keys = this.#table.heldKeys(prefix).sort();
    const rest = cursor === null ? keys : keys.filter((key) => key > cursor.slice(1));
    const page = rest.slice(0, limit);
    return {
      locks: page.map((key) => this.#table.state(key, this.#owner)),
      cursor: rest.length > limit ? `>${page.at(-1) ?? ""}` : null,
    };
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watchers.watch(target, signal);
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note?: BreakNote,
  ): Promise<BreakOutcome> {
    this.#assertOpen(key);
    const entry = Array.from(this.#table.lockAt(key)?.entries ?? []).find(
      ({ fence }) => fencingToken >= fence.first && fencingToken <= fence.last,
    );
    if (entry === undefined) {
      return { isBroken: false };
    }
    const auditId = note && this.#auditLog.add({ key, fencingToken, reason }, note);
    this.#table.end(entry);
    this.#table.grantNext(entry.lock);
    // The next holder learns of its grant after this turn of the event loop, so the loss is reported before.
    for (const listener of this.#listeners) {
      listener.lost(entry.token, "broken", new Error(reason));
    }
    return { isBroken: true, auditId };
  }

  async audit(query: AuditQuery): Promise<AuditPage> {
    this.#assertOpen();
    return auditPage(this.#auditLog.records, query);
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    this.#assertOpen(key);
    const entry = Array.from(this.#table.lockAt(key)?.entries ?? []).find(
      ({ fence }) => fencingToken >= fence.current && fencingToken <= fence.last,
    );
    if (entry === undefined) {
      return "stale";
    }
    return fencingToken === entry.fence.last ? "current" : "unknown"; // a later number may have been handed over in memory
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
        notifications: "verified",
        quarantine: null,
        error: null,
      },
    ];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#table.close();
    this.#watchers.close();
    this.#listeners.clear();
  }

  #setReport(entry: HolderEntry, report: HolderReport): void {
    const { fencingToken, isLast = false, localWaiters = 0, localWaitMs, ...info } = report;
    const isChanged = entry.fence.current !== fencingToken || entry.waiting.localWaiters !== localWaiters;
    entry.info = info;
    entry.fence.current = fencingToken;
    entry.fence.last = isLast ? fencingToken : entry.fence.last;
    entry.waiting = { localWaiters, localWaitMs };
    if (isChanged) {
      this.#watchers.changed(entry.lock.key);
    }
  }

  /** Why a token no longer holds its lock. A shared grant cannot be stolen, because other holders need no grant to end. */
  #lossReason(key: string): LossReason {
    return this.#table.lockAt(key)?.kind === "mutex" ? "stolen" : "expired";
  }

  #assertOpen(key?: string): void {
    if (this.#isClosed) {
      throw closedError(key);
    }
  }
}
