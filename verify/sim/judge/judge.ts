import { isLockError } from "holdfast";

import type { History } from "./history.ts";
import type { Use } from "../plan/schedule.ts";
import type { Asking } from "./queue-order.ts";

/** What the work of a `withLock` throws. */
export const workFailure: Error = new Error("the work failed");

/** Whether what callers are told may be told them. */
export class Judge {
  readonly #history: History;

  constructor(history: History) {
    this.#history = history;
  }

  /** An acquire was refused. */
  refused(error: unknown, { kind, key, waitMs, ending, attemptId }: Use, { since, weight }: Asking): void {
    if (ending === "throw" && error === workFailure) {
      return;
    }
    if (isLockError(error, "limit-mismatch")) {
      const { limits } = this.#history.of(key);
      // What it named is not known here: where there was one limit all the time everybody named that.
      if (limits.everChanged || limits.since(since).some((limit) => limit < weight)) {
        return;
      }
    }
    // A call of a named attempt asks the engine when an earlier call of the attempt has ended, and may have little time left then.
    const isHasty = kind !== "try" && waitMs !== null && (waitMs < hastyMs || attemptId !== undefined);
    this.told(
      error,
      isHasty ? ["wait-timeout", "quorum-not-reached", "engine-unavailable"] : ["wait-timeout"],
    );
  }

  /** @param usual what may be told where nothing is wrong */
  told(error: unknown, usual: readonly string[]): void {
    if (isLockError(error) && usual.includes(error.code)) {
      return;
    }
    if (isLockError(error) && troubles.has(error.code)) {
      this.#history.complain("refusal", String(error));
    } else {
      this.#history.fail("refusal", error instanceof Error ? String(error.stack) : String(error));
    }
  }
}

/** What an engine in trouble may be told by. */
const troubles: ReadonlySet<string> = new Set([
  "engine-unavailable",
  "quorum-not-reached",
  "lease-lost",
  "closed",
]);
/** Who waits less may be gone before the nodes have answered. */
const hastyMs = 100;
