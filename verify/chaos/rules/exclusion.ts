import type { Violation } from "../rules.ts";
import { endOf, heldByKey, type Held, type RunStory } from "../stories.ts";
import type { Moment } from "../history.ts";

/** A grant, and all leases that stand on it: of repeats of an attempt, and of who adopted it. */
export interface Tenure {
  readonly key: string;
  readonly token: bigint;
  readonly leases: readonly Held[];
  readonly from: Moment;
  /** Not after `from`: it was over before its holder knew of it. */
  readonly to: Moment;
}

/** Hand-over in memory gives the numbers of one grant, at most so many. */
const longestRun = 64n;

/** Sorted by when they began; whose time does not overlap is in the order of the tokens. */
export function excludes(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const tenures of tenuresByKey(run).values()) {
    let last: Tenure | undefined;
    for (const tenure of tenures) {
      if (tenure.to <= tenure.from) {
        continue;
      }
      if (last && tenure.from < last.to) {
        found.push({
          rule: "exclusion",
          at: tenure.from,
          key: tenure.key,
          text: `${told(tenure)} while ${told(last)} was valid for ${(last.to - tenure.from).toFixed(3)} ms more`,
        });
      }
      last = last && last.to > tenure.to ? last : tenure;
    }
  }
  return found;
}

export function tenuresByKey(run: RunStory): Map<string, Tenure[]> {
  const byKey = new Map<string, Tenure[]>();
  for (const [key, held] of heldByKey(run)) {
    const breaks = run.breaks.filter((broken) => broken.key === key);
    const tenures = grantsOf(held).map((leases) => tenureOf(key, leases));
    excuse(tenures, breaks);
    byKey.set(
      key,
      tenures.sort((one, other) => one.from - other.from),
    );
  }
  return byKey;
}

/** Those that have one token; and those of one attempt, whose tokens another rule compares. */
function grantsOf(held: readonly Held[]): Held[][] {
  const grants: Held[][] = [];
  const byToken = new Map<bigint, Held[]>();
  const byAttempt = new Map<string, Held[]>();
  for (const lease of held.toSorted((one, other) => one.grantedAt - other.grantedAt)) {
    const { token, attempt } = lease;
    const earlier = attempt === undefined ? undefined : byAttempt.get(attempt);
    const isGoingOn = earlier?.some((other) => mayShare(lease, other)) === true;
    const leases = byToken.get(token) ?? (isGoingOn ? earlier : undefined) ?? [];
    if (leases.length === 0) {
      grants.push(leases);
    }
    leases.push(lease);
    byToken.set(token, leases);
    if (attempt !== undefined) {
      byAttempt.set(attempt, leases);
    }
  }
  return grants;
}

/**
 * Of one attempt: granted while the other was held, or asked for before the other's release was answered. That release may have come
 * to the servers behind the repeat, and then ended it too.
 */
function mayShare({ askedAt, grantedAt }: Held, other: Held): boolean {
  const isReleased = other.releasingAt !== undefined;
  return grantedAt < endOf(other) || (isReleased && askedAt < (other.releasedAt ?? Infinity));
}

/** Leases of one attempt are one grant: the first release ends it for all. After a transfer it goes on with who adopted it. */
function tenureOf(key: string, leases: readonly Held[]): Tenure {
  const token = (leases[0] as Held).token;
  const released = Math.min(...leases.map(({ releasingAt }) => releasingAt ?? Infinity));
  return {
    key,
    token,
    leases,
    from: Math.min(...leases.map(({ grantedAt }) => grantedAt)),
    to: Math.min(released, Math.max(...leases.map(endOf))),
  };
}

/**
 * From the moment that an operator begins to break a lock its holder's validity is not judged: it learns of it by a message, as do
 * those of its process that it was handed to.
 */
function excuse(tenures: Tenure[], breaks: readonly { readonly at: Moment; readonly token: bigint }[]): void {
  const byToken = new Map(tenures.map((tenure) => [tenure.token, tenure]));
  for (const { at, token } of breaks) {
    const processes = new Set(byToken.get(token)?.leases.map(({ process }) => process) ?? []);
    for (const [index, tenure] of tenures.entries()) {
      const isNear = tenure.token - token <= longestRun && token - tenure.token <= longestRun;
      if (isNear && tenure.to > at && tenure.leases.some(({ process }) => processes.has(process))) {
        tenures[index] = { ...tenure, to: at };
      }
    }
  }
}

function told({ leases, token }: Tenure): string {
  const holders = leases.map(({ process, ask }) => `${process}#${ask}`);
  return `${holders.join(" and ")} (${token})`;
}
