import { getEventListeners } from "node:events";
import { isLockError, LeaseLostError, type Lease } from "holdfast";

import { keysOf } from "../plan/lock-mode.ts";
import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import { CallJudge } from "../judge/judge.ts";
import { attemptKey, type SharedGroup } from "../judge/leases.ts";
import { LeaseUse } from "./lease-use.ts";
import type { Fault } from "../plan/faults.ts";
import type { Break, SetLimit, Use } from "../plan/schedule.ts";
import type { WaitingRequest } from "../judge/waiting-request.ts";
import { AcquireSpecs, withinLimit, type AcquireSpec } from "../plan/acquire-options.ts";

/** How often an attempt is repeated if its outcome is unknown. */
const maxRepeats = 3;
const repeatAfterMs = 50;

/** The programs on all machines. They request locks, hold the leases for a while, and release the leases. */
export class Callers {
  readonly #history: History;
  readonly #trace: (line: string) => void;
  readonly #judge: CallJudge;
  readonly #leaseUse: LeaseUse;
  readonly #acquireSpecs = new AcquireSpecs();
  #frames = 0;

  /**
   * @param clients the clients that may get a transferred lease
   * @param inject injects the pause of a process that has transferred a lease
   */
  constructor(
    history: History,
    clients: readonly Client[],
    trace: (line: string) => void,
    inject: (fault: Fault) => void,
  ) {
    this.#history = history;
    this.#trace = trace;
    this.#judge = new CallJudge(history);
    this.#leaseUse = new LeaseUse(history, this.#judge, this.#acquireSpecs, clients, trace, inject);
  }

  async use(client: Client, planned: Use): Promise<void> {
    const use = withinLimit(planned, this.#limitOf(planned));
    client.uses.add(use);
    client.longestTtlMs = Math.max(client.longestTtlMs, use.ttlMs);
    try {
      await (use.kind === "with" ? this.#runWithLock(client, use) : this.#acquire(client, use));
    } finally {
      client.uses.delete(use);
    }
  }

  async break({ locks, index }: Client, { key }: Break): Promise<void> {
    try {
      const [holder] = (await locks.inspect(key)).holders;
      const fencingToken = holder?.fencingToken;
      if (fencingToken !== undefined) {
        this.#history.operator.breaks(key, fencingToken, Number(holder?.owner?.slice("client ".length)));
        this.#history.operations += 1;
        const isBroken = await locks.admin.breakLock(key, { fencingToken, reason: "an operator wants it" });
        this.#trace(`client ${index} breaks ${fencingToken}: ${isBroken}`);
      }
    } catch (error) {
      this.#judge.errorReported(error, []);
    }
  }

  async setLimit({ locks, index }: Client, { key, limit }: SetLimit): Promise<boolean> {
    this.#history.operations += 1;
    const change = this.#history.operator.limitRequested(key, limit);
    try {
      const set = locks.semaphore(key, { limit }).setLimit(limit);
      this.#history.operator.limitSet(key, limit);
      await set;
      change.until = this.#history.findings.now;
      this.#trace(`client ${index} has set the limit of ${key} to ${limit}`);
      return true;
    } catch (error) {
      this.#judge.errorReported(error, this.#history.refusalCodes);
      return false;
    }
  }

  #limitOf({ key }: Use): number {
    return this.#history.keyHistory(key).limits.requestedLimit;
  }

  #specFor(client: Client, use: Use): AcquireSpec {
    const permits = use.mode?.kind === "permits" ? use.mode.permits : 1;
    const limit = Math.max(permits, this.#limitOf(use)); // a caller names at least the permits that it requests
    this.#history.keyHistory(use.key).limits.used(limit);
    return this.#acquireSpecs.specFor(client, use, limit);
  }

  async #acquire(client: Client, use: Use): Promise<void> {
    const { attemptId } = use;
    let granted: Lease | null | undefined;
    for (let tries = 0; granted === undefined && tries <= maxRepeats; tries += 1) {
      granted = await this.#runCall(client, use, async (request, signal) => {
        const lease = await this.#acquireLease(client, use, signal);
        if (lease) {
          this.#recordGrant(client, use, lease, request, this.#sharedGroupOf(client, use));
        }
        return lease;
      });
      if (granted === undefined && attemptId === undefined) {
        return;
      }
      if (granted === undefined) {
        await client.pause(repeatAfterMs);
      }
    }
    if (granted) {
      await this.#leaseUse.useLease(client, use, granted);
    }
  }

  #acquireLease(client: Client, use: Use, signal: AbortSignal): Promise<Lease | null> {
    const { kind, ttlMs, renew, attemptId, maxHoldMs, minHoldMs } = use;
    const { lockable, options: own } = this.#specFor(client, use);
    const options = { ttlMs, renew, attemptId, maxHoldMs, minHoldMs, signal, ...own };
    return kind === "try"
      ? lockable.tryAcquire(options)
      : lockable.acquire({ ...options, waitMs: use.waitMs ?? Infinity });
  }

  async #runWithLock(client: Client, use: Use): Promise<void> {
    const { ttlMs, waitMs, renew, maxHoldMs } = use;
    await this.#runCall(client, use, async (request, signal) => {
      const { lockable, options: ownSpec } = this.#specFor(client, use);
      const options = { ttlMs, renew, maxHoldMs, signal, ...ownSpec };
      const work = async (lease: Lease): Promise<string> => {
        const sharedGroup = this.#sharedGroupOf(client, use);
        this.#recordGrant(client, use, lease, request, sharedGroup);
        this.#history.requestSettled(request);
        return this.#leaseUse.runCallback(client, use, lease, sharedGroup?.name);
      };
      try {
        const value =
          waitMs === 0
            ? await lockable.tryWithLock(options, work)
            : await lockable.withLock({ ...options, waitMs: waitMs ?? Infinity }, work);
        this.#leaseUse.checkResult(use, value);
      } catch (error) {
        if (!(error instanceof LeaseLostError) || !this.#leaseUse.checkLoss(use, error)) {
          throw error;
        }
      }
      return null;
    });
  }

  /** @returns null if another caller holds the lock or the caller stopped waiting, undefined after another failure */
  async #runCall(
    client: Client,
    use: Use,
    call: (request: WaitingRequest, signal: AbortSignal) => Promise<Lease | null>,
  ): Promise<Lease | null | undefined> {
    const { key, abortMs, kind } = use;
    const { clock } = client.process;
    const controller = new AbortController();
    const { signal } = controller;
    const request = this.#history.requestStarted(use, client.handover);
    this.#history.operations += keysOf(use).length;
    const timer =
      abortMs === undefined || kind === "try"
        ? undefined
        : clock.setTimer(() => {
            controller.abort(abortReason);
          }, abortMs);
    try {
      return await call(request, signal);
    } catch (error) {
      this.#trace(`client ${client.index} was refused ${key}: ${String(error)}`);
      if (error === abortReason) {
        return null;
      }
      this.#judge.refused(error, use, request);
      return isLockError(error, "wait-timeout") || isLockError(error, "closed") ? null : undefined;
    } finally {
      this.#history.requestSettled(request);
      clock.clearTimer(timer);
      if (getEventListeners(signal, "abort").length > 0) {
        this.#history.fail("residue", `client ${client.index} left a listener on a caller's signal`);
      }
    }
  }

  #recordGrant(
    { index, process }: Client,
    use: Use,
    lease: Lease,
    request: WaitingRequest,
    sharedGroup: SharedGroup | undefined,
  ): void {
    request.hadPause = process.clock.endPause(); // the pause came before the caller's own work
    this.#trace(`client ${index} granted ${lease.keys.join(" ")} ${lease.fencingToken}`);
    void lease.signal; // the lease creates its signal at the first access
    const keys = [...lease.keys].sort().join();
    if (keys !== keysOf(use).join() || !lease.keys.every((key) => lease.fencingTokens.has(key))) {
      this.#history.fail("multi-lock", `client ${index} requested ${keysOf(use).join()} and got ${keys}`);
    }
    const mayBeShared =
      use.attemptId !== undefined || (use.mode?.kind === "nested" && use.mode.session !== undefined);
    this.#history.granted(request, lease, sharedGroup, mayBeShared);
  }

  /** The callers with which the caller may share a grant. */
  #sharedGroupOf({ index }: Client, { mode, attemptId }: Use): SharedGroup | undefined {
    if (mode?.kind === "nested") {
      const name = mode.session ?? `frame ${(this.#frames += 1)}`;
      return { name: `client ${index}, ${name}` };
    }
    return attemptId === undefined ? undefined : { name: attemptKey(index, attemptId) };
  }
}

const abortReason = new Error("the caller lost its patience");
