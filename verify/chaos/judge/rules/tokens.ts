import type { Violation } from "../rules.ts";
import { endOf, heldByKey, type Held, type RunStory } from "../attempts.ts";
import { isAcross, isOfForgotten } from "./failovers.ts";
import { isExclusive, isOneRun, mayBeShared, tenuresByKey, type Tenure } from "./tenures.ts";

/**
 * By the order in which the grants came, of those that were valid then, each but those that were beside it; and of all: larger than
 * what was complete before the ask.
 */
export function tokensRise(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const [key, tenures] of tenuresByKey(run)) {
    found.push(...fallen(run, key, tenures), ...tenures.flatMap(({ leases }) => strangers(key, leases)));
  }
  for (const [key, held] of heldByKey(run)) {
    const isShared = mayBeShared(run.plan, key);
    found.push(...smallerThanBefore(run, key, isShared ? firstOnes(run, held) : held));
    if (isShared) {
      found.push(...alike(run, key, held));
    }
  }
  return found;
}

/** A holder that excludes others has a larger token than all before it, and one that does not than all of these before it. */
function fallen(run: RunStory, key: string, tenures: readonly Tenure[]): Violation[] {
  const found: Violation[] = [];
  let newest = { token: 0n, from: 0 };
  let newestExclusive = newest;
  for (const tenure of tenures.filter(({ from, to }) => to > from)) {
    const { token, from } = tenure;
    const lease = tenure.leases[0] as Held;
    const excludes = isExclusive(lease);
    const bound = excludes ? newest : newestExclusive;
    if (token < bound.token && !isOfForgotten(run, key, lease, bound.from)) {
      found.push({ rule: "tokens", at: from, key, text: `${token} was granted after ${bound.token}` });
    }
    newest = token > newest.token ? tenure : newest;
    newestExclusive = excludes && token > newestExclusive.token ? tenure : newestExclusive;
  }
  return found;
}

/** One token for two leases that are neither of one attempt, nor of one transfer, nor of one owner that entered again. */
function strangers(key: string, leases: readonly Held[]): Violation[] {
  const [first, ...others] = leases.filter(({ kind }) => kind !== "adopt");
  return others
    .filter(
      ({ attempt, nest }) =>
        (attempt ?? nest) === undefined || (attempt ?? nest) !== (first?.attempt ?? first?.nest),
    )
    .map((other) => sameToken(key, other, first as Held));
}

/** The same of a lock that several may hold, whose tenures need not have different tokens. */
function alike(run: RunStory, key: string, held: readonly Held[]): Violation[] {
  const isQuorum = run.plan.engine === "redlock";
  const found: Violation[] = [];
  const byToken = new Map<bigint, Held>();
  for (const lease of held.toSorted((one, other) => one.grantedAt - other.grantedAt)) {
    const other = byToken.get(lease.token);
    byToken.set(lease.token, lease);
    if (lease.kind === "downgrade") {
      if (other?.downgradedAt === undefined || other.process !== lease.process) {
        const text = `${lease.process}#${lease.ask} was no writer with its token ${lease.token}`;
        found.push({ rule: "tokens", at: lease.grantedAt, key, text });
      }
    } else if (other && lease.as === "read" && !isOneGrant(lease, other)) {
      const mayBeAlike = isQuorum && other.as === "read" && lease.askedAt < endOf(other);
      if (!mayBeAlike) {
        found.push(sameToken(key, lease, other));
      }
    }
  }
  return found;
}

function isOneGrant(lease: Held, { attempt }: Held): boolean {
  return lease.kind === "adopt" || (attempt !== undefined && attempt === lease.attempt);
}

function sameToken(key: string, { process, ask, token, grantedAt }: Held, other: Held): Violation {
  const text = `${process}#${ask} has the same token ${token} as ${other.process}#${other.ask}`;
  return { rule: "tokens", at: grantedAt, key, text };
}

/**
 * Grants by themselves: without those that go on with another, beside which others may have been granted meanwhile. An attempt may
 * have been granted as soon as it was first asked for.
 */
function firstOnes(run: RunStory, held: readonly Held[]): Held[] {
  const askedAt = new Map<string, number>();
  for (const { attempt, askedAt: at } of run.stories) {
    if (attempt !== undefined) {
      askedAt.set(attempt, Math.min(at, askedAt.get(attempt) ?? Infinity));
    }
  }
  const attempts = new Set<string>();
  return held
    .toSorted((one, other) => one.grantedAt - other.grantedAt)
    .filter(({ kind, attempt }) => {
      const isFirst = attempt === undefined || !attempts.has(attempt);
      attempts.add(attempt ?? "");
      return isFirst && kind !== "adopt" && kind !== "downgrade";
    })
    .filter((lease) => !isHandedOver(lease, held))
    .map((lease) => ({ ...lease, askedAt: askedAt.get(lease.attempt ?? "") ?? lease.askedAt }));
}

/** A lease of a semaphore that its process passed on in memory, beside which others may have been granted meanwhile. */
function isHandedOver({ as, process, token, grantedAt }: Held, held: readonly Held[]): boolean {
  return held.some(
    (other) =>
      as === "semaphore" &&
      other.as === as &&
      other.process === process &&
      other.token === token - 1n &&
      (other.releasingAt ?? Infinity) <= grantedAt,
  );
}

function smallerThanBefore(run: RunStory, key: string, held: readonly Held[]): Violation[] {
  const found: Violation[] = [];
  const isShared = mayBeShared(run.plan, key); // not equal either: who is beside others may not be told apart by its tenure
  const byGrant = held.toSorted((one, other) => one.grantedAt - other.grantedAt);
  const byAsk = held.toSorted((one, other) => one.askedAt - other.askedAt);
  let newest: Pick<Held, "token" | "grantedAt"> = { token: 0n, grantedAt: 0 };
  let complete = 0;
  for (const lease of byAsk) {
    const { askedAt, token, process, ask } = lease;
    for (let next = byGrant[complete]; next && next.grantedAt < askedAt; next = byGrant[complete]) {
      newest = next.token > newest.token ? next : newest;
      complete += 1;
    }
    const isSmaller = token < newest.token || (isShared && token === newest.token);
    if (isSmaller && !isOfForgotten(run, key, lease, newest.grantedAt)) {
      const text = `${process}#${ask} asked after ${newest.token} was granted, and got ${token}`;
      found.push({ rule: "tokens", at: askedAt, key, text });
    }
  }
  return found;
}

/** A repeat that was granted while an earlier lease of the attempt was valid, in the same process. */
export function repeatsShareTheGrant(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const [key, held] of heldByKey(run)) {
    for (const [attempt, leases] of byAttempt(held)) {
      const [first, ...others] = leases.toSorted((one, other) => one.grantedAt - other.grantedAt);
      for (const other of others) {
        const wasValid =
          first &&
          other.grantedAt < Math.min(endOf(first), brokenAt(run, first)) &&
          !isAcross(run, key, first.grantedAt, other.grantedAt);
        if (wasValid && other.token !== first.token) {
          const text = `attempt ${attempt} was granted ${first.token}, and while that was valid ${other.token}`;
          found.push({ rule: "attempts", at: other.grantedAt, key, text });
        }
      }
    }
  }
  return found;
}

/** When an operator began to end the grant by force, of which its holder may learn late. */
function brokenAt({ breaks }: RunStory, { key, token }: Held): number {
  const own = breaks.filter((broken) => broken.key === key && isOneRun(broken.token, token));
  return Math.min(...own.map(({ at }) => at));
}

function byAttempt(held: readonly Held[]): Map<string, Held[]> {
  const attempts = new Map<string, Held[]>();
  for (const lease of held) {
    if (lease.attempt !== undefined) {
      attempts.set(lease.attempt, [...(attempts.get(lease.attempt) ?? []), lease]);
    }
  }
  return attempts;
}
