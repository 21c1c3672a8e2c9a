import { getEventListeners } from "node:events";

import { isLockError, LeaseLostError, type Lease } from "holdfast";

import type { Client } from "./client.ts";
import type { History } from "./history.ts";
import { Judge } from "./judge.ts";
import { Keeping } from "./keeping.ts";
import type { Break, Use } from "./schedule.ts";
import type { Asking } from "./turns.ts";

/** How often a named attempt is repeated where its outcome is unknown. */
const mostRepeats = 3;
const repeatAfterMs = 50;

/** The programs on all machines: they ask for locks, hold them for a while, and give them back. */
export class Callers {
  readonly #history: History;
  readonly #trace: (line: string) => void;
  readonly #judge: Judge;
  readonly #keeping: Keeping;

  /** @param clients whom a lease may be given to */
  constructor(history: History, clients: readonly Client[], trace: (line: string) => void) {
    this.#history = history;
    this.#trace = trace;
    this.#judge = new Judge(history);
    this.#keeping = new Keeping(history, this.#judge, clients, trace);
  }

  async use(client: Client, use: Use): Promise<void> {
    client.uses.add(use);
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
        this.#history.breaks(key, fencingToken);
        this.#history.operations += 1;
        const isBroken = await locks.breakLock(key, { fencingToken, reason: "an operator wants it" });
        this.#trace(`client ${index} breaks ${fencingToken}: ${isBroken}`);
      }
    } catch (error) {
      this.#judge.told(error, []);
    }
  }

  async #acquire(client: Client, use: Use): Promise<void> {
    const { attemptId } = use;
    let granted: Lease | null | undefined;
    for (let tries = 0; granted === undefined && tries <= mostRepeats; tries += 1) {
      granted = await this.#ask(client, use, async (asking, signal) => {
        const lease = await this.#request(client, use, signal);
        if (lease) {
          this.#granted(client, lease, asking, attemptId);
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
    if (attemptId !== undefined && !granted) {
      this.#history.taken(use.key, use.ttlMs); // what it may have left stays for a repeat until the TTL ends it
    }
    if (granted) {
      await this.#keeping.keep(client, use, granted);
    }
  }

  #request({ locks }: Client, use: Use, signal: AbortSignal): Promise<Lease | null> {
    const { kind, key, ttlMs, renew, attemptId, maxHoldMs } = use;
    const options = { ttlMs, renew, attemptId, maxHoldMs, signal };
    return kind === "try"
      ? locks.tryAcquire(key, options)
      : locks.acquire(key, { ...options, waitMs: use.waitMs ?? Infinity });
  }

  async #with(client: Client, use: Use): Promise<void> {
    const { key, ttlMs, waitMs, renew, maxHoldMs } = use;
    await this.#ask(client, use, async (asking, signal) => {
      const options = { ttlMs, renew, maxHoldMs, signal };
      const work = async (lease: Lease): Promise<string> => {
        this.#granted(client, lease, asking);
        this.#history.answered(key, asking);
        return this.#keeping.work(client, use, lease);
      };
      try {
        const value =
          waitMs === 0
            ? await client.locks.tryWithLock(key, options, work)
            : await client.locks.withLock(key, { ...options, waitMs: waitMs ?? Infinity }, work);
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
      this.#judge.refused(error, use);
      return isLockError(error, "wait-timeout") || isLockError(error, "closed") ? null : undefined;
    } finally {
      this.#history.answered(key, asking);
      clock.clearTimer(patience);
      if (getEventListeners(signal, "abort").length > 0) {
        this.#history.fail("leftovers", `client ${client.index} left a listener on a caller's signal`);
      }
    }
  }

  #granted({ index }: Client, lease: Lease, asking: Asking, attemptId?: string): void {
    this.#trace(`client ${index} granted ${lease.key} ${lease.fencingToken}`);
    void lease.signal; // made when somebody asks for it
    this.#history.granted(asking, lease, attemptId);
  }
}

const impatience = new Error("the caller lost its patience");
