import { isLockError, type Lease } from "holdfast";

import type { History } from "./history.ts";
import type { ClientMachine } from "./machines.ts";
import type { Use } from "./schedule.ts";

/** The programs on all machines: they ask for locks, hold them for a while, and give them back. */
export class Callers {
  readonly #history: History;
  readonly #trace: (line: string) => void;

  constructor(history: History, trace: (line: string) => void) {
    this.#history = history;
    this.#trace = trace;
  }

  async use(client: ClientMachine, use: Use): Promise<void> {
    client.uses.add(use);
    const lease = await this.#acquire(client, use);
    if (lease) {
      this.#trace(`client ${client.index} granted ${use.key} ${lease.fencingToken}`);
      this.#history.granted(client.index, lease);
      await this.#hold(client, use, lease);
    }
    client.uses.delete(use);
  }

  async #acquire(
    client: ClientMachine,
    { kind, key, ttlMs, waitMs, renew, abortMs }: Use,
  ): Promise<Lease | null> {
    const { locks, clock, index } = client;
    const controller = new AbortController();
    const patience =
      abortMs === undefined || kind === "try"
        ? undefined
        : clock.setTimer(() => {
            controller.abort(impatience);
          }, abortMs);
    const waited = kind === "try" ? () => undefined : this.#history.waits(index, key);
    try {
      return await (kind === "try"
        ? locks.tryAcquire(key, { ttlMs, renew })
        : locks.acquire(key, { ttlMs, waitMs, renew, signal: controller.signal }));
    } catch (error) {
      this.#trace(`client ${index} was refused ${key}: ${String(error)}`);
      const isHasty = kind === "acquire" && waitMs < hastyMs;
      this.#judge(error, isHasty ? ["wait-timeout", "quorum-not-reached"] : ["wait-timeout"]);
      return null;
    } finally {
      waited();
      clock.clearTimer(patience);
    }
  }

  async #hold(client: ClientMachine, { holdMs, extendAtMs, ttlMs }: Use, lease: Lease): Promise<void> {
    if (extendAtMs !== undefined) {
      await client.pause(extendAtMs);
      await lease.extend(ttlMs).catch((error: unknown) => {
        this.#judge(error, []);
      });
    }
    await client.pause(holdMs - (extendAtMs ?? 0));
    this.#trace(
      `client ${client.index} releases ${lease.fencingToken} with ${lease.remainingMs().toFixed(1)} ms left`,
    );
    const isOurs = lease.remainingMs() > 0;
    this.#history.released(lease);
    const wasOurs = await lease.release().catch((error: unknown) => {
      this.#judge(error, []);
      return true;
    });
    if (isOurs && !wasOurs) {
      this.#history.complain(`client ${client.index} lost ${lease.fencingToken}`);
    }
  }

  #judge(error: unknown, usual: readonly string[]): void {
    if (error === impatience || (isLockError(error) && usual.includes(error.code))) {
      return;
    }
    if (isLockError(error) && troubles.has(error.code)) {
      this.#history.complain(String(error));
    } else {
      this.#history.fail(error instanceof Error ? String(error.stack) : String(error));
    }
  }
}

const impatience = new Error("the caller lost its patience");
/** What an engine in trouble may be told by. */
const troubles: ReadonlySet<string> = new Set([
  "engine-unavailable",
  "quorum-not-reached",
  "lease-lost",
  "closed",
]);
/** Who waits less may be gone before the nodes have answered. */
const hastyMs = 100;
