import { isLockError } from "holdfast";

import type { History } from "./history.ts";
import type { Use } from "../plan/schedule.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** What the work of a `withLock` throws. */
export const workFailure: Error = new Error("the work failed");

/** Whether what callers are told may be told them. */
export class CallJudge {
  readonly #history: History;

  constructor(history: History) {
    this.#history = history;
  }

  /** An acquire was refused. */
  refused(error: unknown, { kind, key, waitMs, ending }: Use, { since, weight }: WaitingRequest): void {
    if (ending === "throw" && error === workFailure) {
      return;
    }
    if (isLockError(error, "limit-mismatch")) {
      const { limits } = this.#history.keyHistory(key);
      // What it named is not known here: where there was one limit all the time everybody named that.
      if (limits.hasChanged || limits.inForceSince(since).some((limit) => limit < weight)) {
        return;
      }
    }
    const isShortWait = kind !== "try" && waitMs !== null && waitMs < shortWaitMs;
    this.errorReported(
      error,
      isShortWait ? ["wait-timeout", "quorum-not-reached", "engine-unavailable"] : ["wait-timeout"],
    );
  }

  /** @param expectedCodes what may be told where nothing is wrong */
  errorReported(error: unknown, expectedCodes: readonly string[]): void {
    if (isLockError(error) && expectedCodes.includes(error.code)) {
      return;
    }
    if (isLockError(error) && engineFailureCodes.has(error.code)) {
      this.#history.failUnlessFaulty("refusal", String(error));
    } else {
      this.#history.fail("refusal", error instanceof Error ? String(error.stack) : String(error));
    }
  }
}

/** What an engine in trouble may be told by. */
const engineFailureCodes: ReadonlySet<string> = new Set([
  "engine-unavailable",
  "quorum-not-reached",
  "lease-lost",
  "closed",
]);
/** Who waits less may be gone before the nodes have answered. */
const shortWaitMs = 100;
