import type { Violation } from "../rules.ts";
import { endOf, heldByKey, type Held, type RunStory } from "../stories.ts";
import { tenuresByKey } from "./exclusion.ts";

/** By the order in which the grants came, of those that were valid then; and of all: larger than what was complete before the ask. */
export function tokensRise(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const [key, tenures] of tenuresByKey(run)) {
    let newest = 0n;
    for (const { token, from, to, leases } of tenures) {
      found.push(...strangers(key, leases));
      if (to <= from) {
        continue;
      }
      if (token < newest) {
        found.push({ rule: "tokens", at: from, key, text: `${token} was granted after ${newest}` });
      }
      newest = token > newest ? token : newest;
    }
  }
  for (const [key, held] of heldByKey(run)) {
    found.push(...smallerThanBefore(key, held));
  }
  return found;
}

/** One token for two leases that are neither of one attempt nor of one transfer. */
function strangers(key: string, leases: readonly Held[]): Violation[] {
  const [first, ...others] = leases.filter(({ kind }) => kind !== "adopt");
  return others
    .filter(({ attempt }) => attempt === undefined || attempt !== first?.attempt)
    .map(({ process, ask, token, grantedAt }) => ({
      rule: "tokens",
      at: grantedAt,
      key,
      text: `${process}#${ask} has the same token ${token} as ${first?.process}#${first?.ask}`,
    }));
}

function smallerThanBefore(key: string, held: readonly Held[]): Violation[] {
  const found: Violation[] = [];
  const byGrant = held.toSorted((one, other) => one.grantedAt - other.grantedAt);
  const byAsk = held.toSorted((one, other) => one.askedAt - other.askedAt);
  let newest = 0n;
  let complete = 0;
  for (const { askedAt, token, process, ask } of byAsk) {
    for (let next = byGrant[complete]; next && next.grantedAt < askedAt; next = byGrant[complete]) {
      newest = next.token > newest ? next.token : newest;
      complete += 1;
    }
    if (token < newest) {
      const text = `${process}#${ask} asked after ${newest} was granted, and got ${token}`;
      found.push({ rule: "tokens", at: askedAt, key, text });
    }
  }
  return found;
}

/**
 * A repeat that was granted while an earlier lease of the attempt was valid. Another process at a quorum may be told a larger number:
 * where the nodes have different ones it has to bring a majority to one again.
 */
export function repeatsShareTheGrant(run: RunStory): Violation[] {
  const found: Violation[] = [];
  const isQuorum = run.plan.nodes.length > 1;
  for (const [key, held] of heldByKey(run)) {
    for (const [attempt, leases] of byAttempt(held)) {
      const released = Math.min(...leases.map(({ releasingAt }) => releasingAt ?? Infinity));
      const [first, ...others] = leases.toSorted((one, other) => one.grantedAt - other.grantedAt);
      for (const other of others) {
        const wasValid = first && other.grantedAt < Math.min(endOf(first), released);
        const mayBeLarger = isQuorum && other.process !== first?.process;
        if (wasValid && (mayBeLarger ? other.token < first.token : other.token !== first.token)) {
          const text = `attempt ${attempt} was granted ${first.token}, and while that was valid ${other.token}`;
          found.push({ rule: "attempts", at: other.grantedAt, key, text });
        }
      }
    }
  }
  return found;
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
