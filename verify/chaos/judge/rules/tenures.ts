import type { Moment } from "../history.ts";
import type { Plan } from "../../plan/plan.ts";
import { endOf, heldByKey, type Break, type Held, type RunStory } from "../attempts.ts";

/** A grant, and all leases that stand on it: of repeats of an attempt, of who adopted it, of who entered again. */
export interface Tenure {
  readonly key: string;
  readonly token: bigint;
  /** How much of the key's {@link capacityOf} it takes. */
  readonly weight: number;
  readonly leases: readonly Held[];
  readonly from: Moment;
  /** Not after `from`: it was over before its holder knew of it. */
  readonly to: Moment;
}

/** Hand-over in memory gives the numbers of one grant, at most so many. */
const longestRun = 64n;

/** Whether the two tokens may be of one grant, as hand-over in memory gives them. */
export function isOneRun(one: bigint, other: bigint): boolean {
  return one - other <= longestRun && other - one <= longestRun;
}

/** Of a read-write lock: more than there are readers, and a writer takes all of it. */
const allReaders = 1_000_000;

/** What holders of the key may weigh together: 1, but of a read-write lock and of a semaphore. */
export function capacityOf({ keys }: Plan, key: string): number {
  if (keys.readWrite.includes(key)) {
    return allReaders;
  }
  return keys.semaphores.find((semaphore) => semaphore.key === key)?.limit ?? 1;
}

/** Whether it excludes everybody else. */
export function isExclusive({ as }: Held): boolean {
  return as !== "read" && as !== "semaphore";
}

/** Whether holders of it may be beside each other. */
export function mayBeShared(plan: Plan, key: string): boolean {
  return capacityOf(plan, key) > 1;
}

function weightOf({ as, permits }: Held): number {
  return as === "write" ? allReaders : permits;
}

/** Sorted by when they began. */
export function tenuresByKey(run: RunStory): Map<string, Tenure[]> {
  const byKey = new Map<string, Tenure[]>();
  for (const [key, held] of heldByKey(run)) {
    const breaks = run.breaks.filter((broken) => broken.key === key);
    const tenures = grantsOf(held).map((leases) => tenureOf(key, leases));
    excuse(tenures, breaks, run.plan.keys.readWrite.includes(key) ? 0n : longestRun);
    byKey.set(
      key,
      tenures.sort((one, other) => one.from - other.from),
    );
  }
  return byKey;
}

/** Those that have one token. Readers of a quorum may have the token of other readers. */
function grantsOf(held: readonly Held[]): Held[][] {
  const grants: Held[][] = [];
  const byToken = new Map<bigint, Held[]>();
  for (const lease of held.toSorted((one, other) => one.grantedAt - other.grantedAt)) {
    const { token, as } = lease;
    const leases = (as === "read" ? undefined : byToken.get(token)) ?? [];
    if (leases.length === 0) {
      grants.push(leases);
    }
    leases.push(lease);
    if (as !== "read") {
      byToken.set(token, leases);
    }
  }
  return grants;
}

/**
 * Leases of one attempt, or of one owner that entered again, are one grant: the last release ends it. After a transfer it goes on with
 * who adopted it. A writer that is downgraded is a reader from then on, which is a tenure of its own.
 */
function tenureOf(key: string, leases: readonly Held[]): Tenure {
  const { token, as } = leases[0] as Held;
  const isCounted = as === "reentrant" || leases.every(({ attempt }) => attempt !== undefined);
  const ending = isCounted ? Math.max : Math.min;
  const released = ending(...leases.map(({ releasingAt }) => releasingAt ?? Infinity));
  return {
    key,
    token,
    weight: weightOf(leases[0] as Held),
    leases,
    from: Math.min(...leases.map((lease) => (lease.kind === "downgrade" ? lease.askedAt : lease.grantedAt))),
    to: Math.min(released, Math.max(...leases.map(endOf))),
  };
}

/**
 * From the moment that an operator begins to break a lock its holder's validity is not judged: it learns of it by a message, as do
 * those of its process that it was handed to.
 */
function excuse(tenures: Tenure[], breaks: readonly Break[], run: bigint): void {
  for (const { at, token } of breaks) {
    const broken = tenures.filter((tenure) => tenure.token === token);
    const processes = new Set(broken.flatMap(({ leases }) => leases.map(({ process }) => process)));
    for (const [index, tenure] of tenures.entries()) {
      const isNear = tenure.token - token <= run && token - tenure.token <= run;
      if (isNear && tenure.to > at && tenure.leases.some(({ process }) => processes.has(process))) {
        tenures[index] = { ...tenure, to: at };
      }
    }
  }
}
