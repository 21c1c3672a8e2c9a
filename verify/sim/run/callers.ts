import { getEventListeners } from "node:events";

import { isLockError, LeaseLostError, type Lease } from "holdfast";

import { keysOf } from "../plan/lock-mode.ts";
import type { Client } from "./client.ts";
import { attemptOf, type History } from "../judge/history.ts";
import type { Sharing } from "../judge/holdings.ts";
import { Judge } from "../judge/judge.ts";
import { Keeping } from "./lease-use.ts";
import type { Break, SetLimit, Use } from "../plan/schedule.ts";
import type { Asking } from "../judge/queue-order.ts";
import { Wants, within, type Want } from "../plan/acquire-options.ts";

/** How often a named attempt is repeated where its outcome is unknown. */
const mostRepeats = 3;
const repeatAfterMs = 50;

/** The programs on all machines: they ask for locks, hold them for a while, and give them back. */
export class Callers {
  readonly #history: History;
  readonly #trace: (line: string) => void;
  readonly #judge: Judge;
  readonly #keeping: Keeping;
  readonly #wants = new Wants();
  #frames = 0;

  /** @param clients whom a lease may be given to */
  constructor(history: History, clients: readonly Client[], trace: (line: string) => void) {
    this.#history = history;
    this.#trace = trace;
    this.#judge = new Judge(history);
    this.#keeping = new Keeping(history, this.#judge, this.#wants, clients, trace);
  }

  async use(client: Client, planned: Use): Promise<void> {
    const use = within(planned, this.#limitOf(planned));
    client.uses.add(use);
    client.longestTtlMs = Math.max(client.longestTtlMs, use.ttlMs);
    try {
      await (use.kind === "with" ? this.#with(client, use) : this.#acquire(client, use));
    } finally {
      client.uses.delete(use);
    }
  }

  async break({ locks, index }: Client, { key }: Break): Promise<void> {
    try {
      const [holder] = (await locks.inspect(key)).holders;
      const fencingToken = holder?.fencingToken;
      if (fencingToken !== undefined) {
        this.#history.breaks(key, fencingToken, Number(holder?.owner?.slice("client ".length)));
        this.#history.operations += 1;
        const isBroken = await locks.breakLock(key, { fencingToken, reason: "an operator wants it" });
        this.#trace(`client ${index} breaks ${fencingToken}: ${isBroken}`);
      }
    } catch (error) {
      this.#judge.told(error, []);
    }
  }

  async setLimit({ locks, index }: Client, { key, limit }: SetLimit): Promise<boolean> {
    this.#history.operations += 1;
    this.#history.asksForLimit(key, limit);
    try {
      const set = locks.semaphore(key, { limit }).setLimit(limit);
      this.#history.setLimit(key, limit);
      await set;
      this.#trace(`client ${index} has set the limit of ${key} to ${limit}`);
      return true;
    } catch (error) {
      this.#judge.told(error, []);
      return false;
    }
  }

  #limitOf({ key }: Use): number {
    return this.#history.of(key).limits.wanted;
  }

  #want(client: Client, use: Use): Want {
    const permits = use.as?.kind === "permits" ? use.as.permits : 1;
    const limit = Math.max(permits, this.#limitOf(use)); // he knows of no less than he asks for
    this.#history.of(use.key).limits.named(limit);
    return this.#wants.of(client, use, limit);
  }

  async #acquire(client: Client, use: Use): Promise<void> {
    const { attemptId } = use;
    let granted: Lease | null | undefined;
    for (let tries = 0; granted === undefined && tries <= mostRepeats; tries += 1) {
      granted = await this.#ask(client, use, async (asking, signal) => {
        const lease = await this.#request(client, use, signal);
        if (lease) {
          this.#granted(client, use, lease, asking, this.#sharing(client, use));
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
      await this.#keeping.keep(client, use, granted);
    }
  }

  #request(client: Client, use: Use, signal: AbortSignal): Promise<Lease | null> {
    const { kind, ttlMs, renew, attemptId, maxHoldMs } = use;
    const { lockable, options: own } = this.#want(client, use);
    const options = { ttlMs, renew, attemptId, maxHoldMs, signal, ...own };
    return kind === "try"
      ? lockable.tryAcquire(options)
      : lockable.acquire({ ...options, waitMs: use.waitMs ?? Infinity });
  }

  async #with(client: Client, use: Use): Promise<void> {
    const { ttlMs, waitMs, renew, maxHoldMs } = use;
    await this.#ask(client, use, async (asking, signal) => {
      const { lockable, options: own } = this.#want(client, use);
      const options = { ttlMs, renew, maxHoldMs, signal, ...own };
      const work = async (lease: Lease): Promise<string> => {
        const sharing = this.#sharing(client, use);
        this.#granted(client, use, lease, asking, sharing);
        this.#history.answered(asking);
        return this.#keeping.work(client, use, lease, sharing?.name);
      };
      try {
        const value =
          waitMs === 0
            ? await lockable.tryWithLock(options, work)
            : await lockable.withLock({ ...options, waitMs: waitMs ?? Infinity }, work);
        this.#keeping.didWork(use, value);
      } catch (error) {
        if (!(error instanceof LeaseLostError) || !this.#keeping.didLose(use, error)) {
          throw error;
        }
      }
      return null;
    });
  }

  /** @returns undefined: it was refused, and not because another holds the lock */
  async #ask(
    client: Client,
    use: Use,
    ask: (asking: Asking, signal: AbortSignal) => Promise<Lease | null>,
  ): Promise<Lease | null | undefined> {
    const { key, abortMs, kind } = use;
    const { clock } = client.process;
    const controller = new AbortController();
    const { signal } = controller;
    const asking = this.#history.asks(use, client.handover);
    this.#history.operations += 1;
    const patience =
      abortMs === undefined || kind === "try"
        ? undefined
        : clock.setTimer(() => {
            controller.abort(impatience);
          }, abortMs);
    try {
      return await ask(asking, signal);
    } catch (error) {
      this.#trace(`client ${client.index} was refused ${key}: ${String(error)}`);
      if (error === impatience) {
        return null;
      }
      this.#judge.refused(error, use, asking);
      return isLockError(error, "wait-timeout") || isLockError(error, "closed") ? null : undefined;
    } finally {
      this.#history.answered(asking);
      clock.clearTimer(patience);
      if (getEventListeners(signal, "abort").length > 0) {
        this.#history.fail("leftovers", `client ${client.index} left a listener on a caller's signal`);
      }
    }
  }

  #granted({ index }: Client, use: Use, lease: Lease, asking: Asking, sharing: Sharing | undefined): void {
    this.#trace(`client ${index} granted ${lease.keys.join(" ")} ${lease.fencingToken}`);
    void lease.signal; // made when somebody asks for it
    const keys = [...lease.keys].sort().join();
    if (keys !== keysOf(use).join() || !lease.keys.every((key) => lease.fencingTokens.has(key))) {
      this.#history.fail("several", `client ${index} asked for ${keysOf(use).join()} and has ${keys}`);
    }
    const mayBeShared =
      use.attemptId !== undefined || (use.as?.kind === "nested" && use.as.session !== undefined);
    this.#history.granted(asking, lease, sharing, mayBeShared);
  }

  /** With whom it may have one grant. */
  #sharing({ index }: Client, { as, attemptId }: Use): Sharing | undefined {
    if (as?.kind === "nested") {
      const name = as.session ?? `frame ${(this.#frames += 1)}`;
      return { name: `client ${index}, ${name}` };
    }
    return attemptId === undefined ? undefined : { name: attemptOf(index, attemptId) };
  }
}

const impatience = new Error("the caller lost its patience");
