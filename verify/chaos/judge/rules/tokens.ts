import { FencingNumbers, type NumberProblem } from "../../../judge/fencing-numbers.ts";
import type { Violation } from "../rule.ts";
import { usableUntil, grantedByKey, type GrantedAttempt, type RunHistory } from "../attempts.ts";
import { crossesFailover, wasLostInFailover } from "./failovers.ts";
import { capacityOf, isSameGrantRun, mayBeShared, intervalsByKey, type HoldInterval } from "./tenures.ts";

/** Checks the token of each grant against those of which callers learned before. A lease that continues a grant has its token. */
export function checkFencingTokens(run: RunHistory): Violation[] {
  const firstRequests = firstRequestsOf(run);
  return Array.from(intervalsByKey(run)).flatMap(([key, intervals]) => {
    const tokens = new KeyTokens(run, key, firstRequests);
    return intervals
      .flatMap((interval) => interval.leases.map((lease) => ({ lease, interval })))
      .filter(({ lease }) => lease.token > 0n) // the rule `multi-lock` reports a lease without a token
      .sort((one, other) => one.lease.grantedAt - other.lease.grantedAt)
      .flatMap(({ lease, interval }) => {
        const problem = tokens.granted(lease, interval);
        const { process, requestId, token, grantedAt } = lease;
        const text = `${process}#${requestId} got the token ${token}, ${problem?.text}`;
        return problem && !wasLostInFailover(run, key, lease, problem.at)
          ? [{ rule: "tokens" as const, at: grantedAt, key, text }]
          : [];
      });
  });
}

class KeyTokens {
  readonly #isQuorum: boolean;
  readonly #capacity: number;
  readonly #isShared: boolean;
  readonly #firstRequests: ReadonlyMap<string, number>;
  readonly #numbers = new FencingNumbers();
  readonly #byToken = new Map<bigint, GrantedAttempt>();

  constructor({ plan }: RunHistory, key: string, firstRequests: ReadonlyMap<string, number>) {
    this.#isQuorum = plan.engine === "redlock";
    this.#capacity = capacityOf(plan, key);
    this.#isShared = mayBeShared(plan, key);
    this.#firstRequests = firstRequests;
  }

  /** @returns what is wrong with the token of the next lease; undefined: nothing */
  granted(lease: GrantedAttempt, { to, weight }: HoldInterval): NumberProblem | undefined {
    const { token, kind, grantedAt } = lease;
    const other = this.#byToken.get(token);
    const isContinued = kind === "adopt" || (other ? continues(lease, other) : this.#isHandedOver(lease));
    // A lease that had expired before its holder knew it excludes no other, and a downgraded writer has excluded them before.
    const wasValid = Math.min(to, usableUntil(lease)) > grantedAt;
    const capacity = wasValid && kind !== "downgrade" ? this.#capacity : Infinity;
    const problem = isContinued
      ? (this.#staleProblem(lease) ?? this.#numbers.excludedProblemOf(token, weight, capacity))
      : kind === "downgrade"
        ? { text: "which its process did not have as a writer", at: Infinity }
        : this.#newProblem(lease, weight, capacity);
    this.#byToken.set(token, lease);
    this.#numbers.reported(token, weight, grantedAt);
    return problem;
  }

  #newProblem(
    { token, lockKind, attemptId = "", requestedAt }: GrantedAttempt,
    weight: number,
    capacity: number,
  ): NumberProblem | undefined {
    // Beside other holders an attempt may have been granted long before its repeat reports the grant.
    const since = (this.#isShared ? this.#firstRequests.get(attemptId) : undefined) ?? requestedAt;
    const mayBeEqual = this.#isQuorum && lockKind === "read";
    return this.#numbers.problemOf(token, { since, weight }, capacity, mayBeEqual);
  }

  /** Other grants may come between the leases on one grant only if holders share the key. */
  #staleProblem({ token, requestedAt }: GrantedAttempt): NumberProblem | undefined {
    const { number, at } = this.#numbers.largestBefore(requestedAt);
    return this.#isShared || token >= number
      ? undefined
      : { text: `requested after ${number} had been reported`, at };
  }

  /** A lease of a semaphore that its process handed over in memory. Other grants may come between. */
  #isHandedOver({ lockKind, process, token, grantedAt }: GrantedAttempt): boolean {
    const before = this.#byToken.get(token - 1n);
    const isReleased = (before?.releasingAt ?? Infinity) <= grantedAt;
    return lockKind === "semaphore" && before?.process === process && isReleased;
  }
}

/** Whether a lease continues the grant of another lease with its token: after a downgrade, as a repeat, or as a nested entry. */
function continues(
  { kind, process, attemptId, reentrantHold }: GrantedAttempt,
  other: GrantedAttempt,
): boolean {
  if (kind === "downgrade") {
    return other.downgradedAt !== undefined && other.process === process;
  }
  const shared = attemptId ?? reentrantHold;
  return shared !== undefined && shared === (other.attemptId ?? other.reentrantHold);
}

/** When each attempt was first requested. It may have been granted then. */
function firstRequestsOf({ attempts }: RunHistory): ReadonlyMap<string, number> {
  const requestedAt = new Map<string, number>();
  for (const { attemptId, requestedAt: at } of attempts) {
    if (attemptId !== undefined) {
      requestedAt.set(attemptId, Math.min(at, requestedAt.get(attemptId) ?? Infinity));
    }
  }
  return requestedAt;
}

/** A repeat that was granted while an earlier lease of the attempt was valid, in the same process. */
export function checkRepeatedAttempts(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const [key, held] of grantedByKey(run)) {
    for (const [attempt, leases] of byAttempt(held)) {
      const [first, ...others] = leases.toSorted((one, other) => one.grantedAt - other.grantedAt);
      for (const other of others) {
        const wasValid =
          first &&
          other.grantedAt < Math.min(usableUntil(first), brokenAt(run, first)) &&
          !crossesFailover(run, key, first.grantedAt, other.grantedAt);
        if (wasValid && other.token !== first.token) {
          const text = `attempt ${attempt} was granted ${first.token}, and while that was valid ${other.token}`;
          found.push({ rule: "attempts", at: other.grantedAt, key, text });
        }
      }
    }
  }
  return found;
}

/** When an operator started to end the grant by force. Its holder may learn about the break late. */
function brokenAt({ breaks, plan }: RunHistory, { key, token }: GrantedAttempt): number {
  const own = breaks.filter((broken) => broken.key === key && isSameGrantRun(plan, broken.token, token));
  return Math.min(...own.map(({ at }) => at));
}

function byAttempt(held: readonly GrantedAttempt[]): Map<string, GrantedAttempt[]> {
  const attempts = new Map<string, GrantedAttempt[]>();
  for (const lease of held) {
    if (lease.attemptId !== undefined) {
      attempts.set(lease.attemptId, [...(attempts.get(lease.attemptId) ?? []), lease]);
    }
  }
  return attempts;
}
