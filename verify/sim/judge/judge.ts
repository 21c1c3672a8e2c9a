import { isLockError } from "holdfast";

import type { History } from "./history.ts";
import type { Use } from "../plan/schedule.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** The error that the callback of a `withLock` throws. */
export const workFailure: Error = new Error("the work failed");

/** Checks the errors that callers get. */
export class CallJudge {
  readonly #history: History;

  constructor(history: History) {
    this.#history = history;
  }

  /** An acquire failed with this error. */
  refused(error: unknown, { kind, key, waitMs, ending }: Use, request: WaitingRequest): void {
    const { since, weight } = request;
    if (ending === "throw" && error === workFailure) {
      return;
    }
    if (isLockError(error, "limit-mismatch")) {
      const { limits } = this.#history.keyHistory(key);
      // The judge does not know which limit the request named. While the limit never changed, every request named that limit.
      if (limits.hasChanged || limits.inForceSince(since).some((limit) => limit < weight)) {
        return;
      }
    }
    if (isLockError(error, "kind-mismatch")) {
      // A fault may leave a queue entry or a grant of the other kind, and a kept grant ends by the clock of its client.
      const wasSince = this.#history.isFaultFree ? since - keptLongerMs : 0;
      if (this.#history.keyHistory(key).wasOfOtherKind(request, wasSince)) {
        return;
      }
    }
    const isShortWait = kind !== "try" && waitMs !== null && waitMs < shortWaitMs;
    this.errorReported(
      error,
      isShortWait
        ? ["wait-timeout", "quorum-not-reached", "engine-unavailable"]
        : ["wait-timeout", ...this.#history.refusalCodes],
    );
  }

  /** @param expectedCodes the codes that are correct even without a fault */
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

/** The codes that report a failure of the engine. */
const engineFailureCodes: ReadonlySet<string> = new Set([
  "engine-unavailable",
  "quorum-not-reached",
  "lease-lost",
  "closed",
]);
/** How much longer a grant may be kept than by the fastest clock, ms. */
const keptLongerMs = 100;
/** A shorter wait may end before the nodes have replied, ms. */
const shortWaitMs = 100;
