import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  ListQuery,
  Grant,
  PendingAcquire,
  PendingRequeue,
  VerifyResult,
} from "../../driver.ts";
import { closedError, EngineError, type LossReason } from "../../errors.ts";
import type { FenceState, LockEvent, LockState, NodeState } from "../../lock-state.ts";
import {
  auditPage,
  type AuditPage,
  type AuditQuery,
  type AuditRecord,
  type BreakNote,
  type BreakOutcome,
} from "../../operator/audit.ts";
import { invalidCursor } from "../../option-checks.ts";
import { ArrivalOrder } from "../../runtime/arrival-order.ts";
import { instantNow, type Clock } from "../../runtime/clock.ts";
import type { Random } from "../../runtime/random.ts";
import { validFrom } from "../../validity.ts";
import { PollingWatches } from "../polling-watch.ts";
import { CleanUps } from "./clean-up.ts";
import type { LeaseStore } from "./lease-store.ts";
import { LateRequests, StoreAcquire, type StoreAcquireHost } from "./store-acquire.ts";
import { isRetryable, StoreCalls, type StoreSettings } from "./store-calls.ts";
import { WaitingAcquires } from "./waiting-acquires.ts";

/** A driver for an engine that stores leases in a table. See `lease-store.ts` for how an engine is added. */
export class StoreDriver implements Driver {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly audit?: (query: AuditQuery) => Promise<AuditPage>;
  readonly #store: LeaseStore;
  readonly #calls: StoreCalls;
  readonly #watches: PollingWatches = new PollingWatches(this, isRetryable);
  readonly #cleanUps: CleanUps;
  readonly #waiting = new WaitingAcquires();
  readonly #listeners = new Set<DriverListener>();
  readonly #host: StoreAcquireHost & { owner: string };
  #unsubscribe: (() => void) | undefined;
  #isClosed = false;

  constructor(store: LeaseStore, settings: StoreSettings) {
    this.clock = settings.clock;
    this.random = settings.random;
    this.capabilities = store.capabilities;
    if (store.audit) {
      const read = store.audit.bind(store);
      this.audit = (query) => this.#readAudit(read, query);
    }
    this.#store = store;
    this.#calls = new StoreCalls(store, settings, () =>
      this.#report((listener) => listener.engineRecovered()),
    );
    this.#cleanUps = new CleanUps(this.#calls, (key) => this.#waiting.wakeNext(key));
    this.#host = {
      calls: this.#calls,
      cleanUps: this.#cleanUps,
      arrivalOrder: new ArrivalOrder(),
      waiting: this.#waiting,
      late: new LateRequests(settings.clock),
      owner: "unknown",
    };
  }

  setOwner(owner: string): void {
    this.#host.owner = owner;
    this.#unsubscribe ??= this.#store.subscribe?.({
      wake: (ticket) => this.#waiting.wakeTicket(ticket),
      lost: (token, reason, cause) => this.#reportLost(token, reason, cause),
      interrupted: () => {
        this.#waiting.wakeAll();
        this.#report((listener) => listener.notificationsInterrupted());
      },
    });
  }

  checkKey(key: string): void {
    this.#store.checkKey(key);
  }

  /** The engine orders waiters by their arrival. */
  ticket(): undefined {
    return undefined;
  }

  acquire(request: AcquireRequest): PendingAcquire {
    if (this.#isClosed) {
      return { result: Promise.reject(closedError(request.key)), cancel: () => undefined };
    }
    const acquire = new StoreAcquire(this.#host, request);
    this.#waiting.add(acquire);
    return acquire;
  }

  /** Grants are not handed over in memory, so the core does not call this. */
  requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const released = this.release(previous.key, previous.token, previous.validity.until);
    return Object.assign(this.acquire(request), { released });
  }

  async extend({ key, token, fencingToken, ttlMs, info }: ExtendRequest): Promise<ExtendResult> {
    const sent = instantNow(this.clock);
    const metadata = info && {
      owner: info.owner ?? this.#host.owner,
      reason: info.reason,
      labels: info.labels,
    };
    try {
      this.#assertOpen(key);
      const { graceMs } = this.#calls;
      const extension = { key, token, fencingToken, ttlMs: ttlMs + graceMs, info: metadata };
      const inForce = await this.#calls.once(key, () => this.#store.extend(extension));
      if (typeof inForce !== "number") {
        this.#host.late.lost(token);
        return { outcome: "lost", reason: inForce };
      }
      const validity = validFrom(sent, inForce - graceMs);
      this.#host.late.extended(token, validity.until);
      return { outcome: "extended", validity };
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult> {
    this.#assertOpen(key);
    const { remaining, sent } = await this.#calls.repeated(key, async () => {
      const sent = instantNow(this.clock);
      return { sent, remaining: await this.#store.verify(key, token, fencingToken) };
    });
    return typeof remaining === "number"
      ? {
          outcome: "valid",
          validity: validFrom(sent, Math.max(0, remaining) - this.#calls.graceMs),
          hasUnknownEnd: remaining === -1,
        }
      : { outcome: "lost", reason: remaining };
  }

  async release(key: string, token: string, until: number): Promise<boolean> {
    try {
      return await this.#endOf(key, until, () => this.#store.release(key, token));
    } finally {
      this.#host.late.released(token);
    }
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    return this.#endOf(key, until, () => this.#store.downgrade(key, token));
  }

  async setLimit(key: string, limit: number): Promise<void> {
    this.#assertOpen(key);
    await this.#calls.repeated(key, () => this.#store.setLimit(key, limit));
    this.#waiting.wakeNext(key);
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async inspect(key: string): Promise<LockState> {
    this.#assertOpen(key);
    return this.#calls.repeated(key, () => this.#store.inspect(key));
  }

  async list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    this.#assertOpen();
    query.signal?.throwIfAborted();
    const { cursor } = query;
    if (cursor !== null && !(this.#store.isCursor?.(cursor) ?? cursor.startsWith(">"))) {
      throw invalidCursor(cursor);
    }
    return this.#calls.repeated(undefined, () => this.#store.list(query));
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watches.watch(target, signal);
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note?: BreakNote,
  ): Promise<BreakOutcome> {
    this.#assertOpen(key);
    const broken = await this.#calls.once(key, () => this.#store.breakGrant(key, fencingToken, reason, note));
    if (broken === null) {
      return { isBroken: false };
    }
    this.#reportLost(broken.token, "broken", new Error(reason));
    this.#waiting.wakeNext(key);
    return { isBroken: true, auditId: broken.auditId };
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    this.#assertOpen(key);
    const isCurrent = await this.#calls.repeated(key, () => this.#store.isCurrent(key, fencingToken));
    return isCurrent ? "current" : "stale";
  }

  async nodes(): Promise<NodeState[]> {
    this.#assertOpen();
    return this.#store.nodes();
  }

  /** Waits for the requests that are under way, at most `commandTimeoutMs`, and removes the grants of late replies. */
  async close(): Promise<void> {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    this.#waiting.cancelAll((key) => closedError(key));
    await this.#calls.drain();
    await this.#cleanUps.close();
    this.#unsubscribe?.();
    this.#listeners.clear();
    await this.#store.close();
  }

  /**
   * Ends a grant, or the exclusive part of it. Without a reply in time the request is repeated in the background. A repeat may find the
   * grant already removed by a request whose reply was lost. The grant was in force then, if its TTL had not passed at the first request.
   */
  async #endOf(key: string, until: number, request: () => Promise<boolean>): Promise<boolean> {
    let mayBeDone = false;
    const wasInForce = this.clock.now() < until;
    try {
      const wasHeld = await this.#calls.repeated(key, request, (failure) => {
        mayBeDone ||= failure instanceof EngineError && failure.outcome === "unknown";
      });
      if (!this.#store.isNotified) {
        this.#waiting.wakeNext(key);
      }
      return wasHeld || (mayBeDone && wasInForce);
    } catch (error) {
      if (isRetryable(error) && !this.#isClosed) {
        this.#cleanUps.repeat(key, until, request);
      }
      throw error;
    }
  }

  async #readAudit(read: () => Promise<AuditRecord[]>, query: AuditQuery): Promise<AuditPage> {
    this.#assertOpen();
    return auditPage(await this.#calls.repeated(undefined, read), query);
  }

  #reportLost(token: string | null, reason: LossReason, cause: unknown): void {
    if (token !== null) {
      this.#host.late.lost(token);
    }
    this.#report((listener) => listener.lost(token, reason, cause));
  }

  #report(event: (listener: DriverListener) => void): void {
    for (const listener of this.#listeners) {
      event(listener);
    }
  }

  #assertOpen(key?: string): void {
    if (this.#isClosed) {
      throw closedError(key);
    }
  }
}
