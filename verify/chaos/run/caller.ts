import { setTimeout as pause } from "node:timers/promises";

import { runCampaign } from "./election-campaign.ts";
import type { HandedOver } from "./client-protocol.ts";
import { requestOf, drawTask, type LockTask } from "./task.ts";
import type { RequestKind } from "../judge/history.ts";
import { acquire, tryAcquire, withLock, type Lock } from "./lock.ts";
import { enterTwice } from "./reentry.ts";
import { uniqueName, type ClientState } from "./client-state.ts";
import type { RecordedLease } from "./recorded-lease.ts";
import { useResource } from "./critical-section.ts";

type UseOptions = Pick<LockTask, "holdMs" | "downgrades">;

/** The settings of an acquire. */
interface AcquireSettings {
  readonly signal?: AbortSignal;
  readonly attemptId?: string;
}

/** The share of tasks that use a latch. */
const latchShare = 0.08;

/** A caller that runs one task after another, each with a lock. */
export class Caller {
  readonly #client: ClientState;

  constructor(client: ClientState) {
    this.#client = client;
  }

  async workUntil(isOver: () => boolean): Promise<void> {
    const { random, latches } = this.#client;
    while (!isOver()) {
      await (latches && random.happens(latchShare) ? latches.useLatch() : this.#runTask());
      await pause(random.between(0, 12));
    }
  }

  /** Continues a lease or an attempt of another process. */
  async takeOver(item: HandedOver): Promise<void> {
    const { locks, recorder, random } = this.#client;
    if (item.kind === "lease") {
      const { serialized, lock } = item;
      const request = { ...requestOf(lock), kind: "adopt", waitMs: 0 } as const;
      const adopted = await recorder.acquire(request, () => locks.adopt(serialized));
      await this.#useAndRelease(adopted, { holdMs: random.between(0, 30), downgrades: false });
    } else {
      const { lock, attemptId } = item;
      const options = { ttlMs: this.#client.maxTtlMs, waitMs: 1_000, attemptId };
      const { waitMs } = options;
      const request = { ...requestOf(lock), kind: "attempt", waitMs, attemptId } as const;
      const repeated = await recorder.acquire(request, () => acquire(locks, lock, options));
      await pause(random.between(0, 30));
      await repeated?.release();
    }
  }

  /** Acquires a lock for the longest TTL, and lets this process be frozen between reading and writing. */
  async holdUntilFrozen(lock: Lock, awaitFreeze: () => Promise<void>, withinMs: number): Promise<void> {
    const { maxTtlMs } = this.#client;
    const task = { lock, ttlMs: maxTtlMs, waitMs: withinMs, renew: true, holdMs: 0, downgrades: false };
    const recorded = await this.#requestLease(task, "acquire");
    if (recorded) {
      await recorded.extend(maxTtlMs).catch(() => undefined); // a lost lease is frozen too
      await useResource(this.#client, recorded, 0, awaitFreeze);
      await recorded.release();
    }
  }

  #runTask(): Promise<void> {
    const { random } = this.#client;
    const task = drawTask(this.#client);
    const { lockKind } = task.lock;
    if (lockKind === "election") return runCampaign(this.#client, task);
    if (lockKind === "reentrant") return enterTwice(this.#client, task);
    const percent = random.between(0, 100);
    if (percent < 30) return this.#runWithLock(task);
    if (percent < 60) return this.#acquireAndUse(task, "acquire");
    if (percent < 72) return this.#acquireAndUse(task, "try");
    if (percent < 82) return this.#abortAcquire(task);
    if (percent < 88) return this.#repeatAttempt({ ...task, downgrades: false }); // a downgrade needs a lease that no repeat shares
    if (percent < 93) return lockKind === "all" ? this.#extendLease(task) : this.#transferLease(task);
    if (percent < 98) return this.#extendLease(task);
    return this.#holdPastExpiry(task);
  }

  /** Runs the task with `withLock`. */
  async #runWithLock(task: LockTask): Promise<void> {
    const { locks, recorder } = this.#client;
    const { lock, waitMs, ttlMs, renew, holdMs } = task;
    await recorder.withLock(
      { ...requestOf(lock), kind: "work", waitMs },
      (work) => withLock(locks, lock, { ttlMs, waitMs, renew }, work),
      async (recorded) => {
        await useResource(this.#client, recorded, holdMs);
        return this.#downgradeIfRequested(recorded, task);
      },
    );
  }

  async #acquireAndUse(task: LockTask, kind: "acquire" | "try"): Promise<void> {
    const recorded = await this.#requestLease(task, kind);
    await this.#useAndRelease(recorded, task);
  }

  /** Aborts the acquire, possibly after the grant. */
  async #abortAcquire(task: LockTask): Promise<void> {
    const { random } = this.#client;
    const controller = new AbortController();
    const timer = setTimeout(
      () => {
        controller.abort();
      },
      random.pick([random.between(0, 10), random.between(0, 300)]),
    );
    const recorded = await this.#requestLease(task, "acquire", { signal: controller.signal });
    clearTimeout(timer);
    await this.#useAndRelease(recorded, task);
  }

  /** Names the attempt and repeats it: in this process, in another process, or after a failure. */
  async #repeatAttempt(task: LockTask): Promise<void> {
    const { random, handOver } = this.#client;
    const attemptId = uniqueName(this.#client);
    const first = await this.#requestLease(task, "attempt", { attemptId });
    if (!first) {
      await this.#useAndRelease(await this.#requestLease(task, "attempt", { attemptId }), task);
      return;
    }
    if (random.happens(0.3)) {
      handOver({ kind: "attempt", lock: task.lock, attemptId });
    } else if (random.happens(0.5)) {
      const second = await this.#requestLease(task, "attempt", { attemptId });
      await this.#useAndRelease(first, task);
      await second?.release();
      return;
    }
    await this.#useAndRelease(first, task);
  }

  async #transferLease(task: LockTask): Promise<void> {
    const recorded = await this.#requestLease(task, "acquire");
    if (recorded && recorded.lease.remainingMs() > 0) {
      this.#client.handOver({ kind: "lease", lock: task.lock, serialized: recorded.transfer() });
    } else {
      await recorded?.release();
    }
  }

  async #extendLease(task: LockTask): Promise<void> {
    const { recorder, random } = this.#client;
    const recorded = await this.#requestLease(task, "acquire");
    if (recorded) {
      await pause(task.holdMs / 2);
      await recorded.extend(random.integer(100, task.ttlMs)).catch((error: unknown) => {
        const code = recorder.codeOf(error);
        if (code.startsWith("strange")) {
          throw error;
        }
      });
      await this.#useAndRelease(recorded, { ...task, holdMs: task.holdMs / 2 });
    }
  }

  /** Holds the lease without renewal until its loss is reported. */
  async #holdPastExpiry(task: LockTask): Promise<void> {
    const ttlMs = this.#client.shortestTtlMs;
    const recorded = await this.#requestLease({ ...task, ttlMs, renew: false }, "acquire");
    if (recorded) {
      await recorded.lost();
      await recorded.release();
    }
  }

  #requestLease(
    task: LockTask,
    kind: RequestKind,
    settings: AcquireSettings = {},
  ): Promise<RecordedLease | undefined> {
    const { locks, recorder } = this.#client;
    const { lock, waitMs, ttlMs, renew } = task;
    const options = { ttlMs, renew, ...settings };
    if (kind === "try") {
      const request = { ...requestOf(lock), kind, waitMs: 0 };
      return recorder.acquire(request, () => tryAcquire(locks, lock, options));
    }
    const attemptField = settings.attemptId === undefined ? {} : { attemptId: settings.attemptId };
    const request = { ...requestOf(lock), kind, waitMs, ...attemptField };
    return recorder.acquire(request, () => acquire(locks, lock, { ...options, waitMs }));
  }

  async #useAndRelease(recorded: RecordedLease | undefined, task: UseOptions): Promise<void> {
    if (recorded) {
      await useResource(this.#client, recorded, task.holdMs);
      await (await this.#downgradeIfRequested(recorded, task)).release();
    }
  }

  /** Downgrades a writer, if its task says so, and reads as a reader for the same time. Other leases stay unchanged. */
  async #downgradeIfRequested(
    recorded: RecordedLease,
    { downgrades, holdMs }: UseOptions,
  ): Promise<RecordedLease> {
    const reader = downgrades ? await recorded.downgrade() : undefined;
    if (reader) {
      await useResource(this.#client, reader, holdMs);
    }
    return reader ?? recorded;
  }
}
