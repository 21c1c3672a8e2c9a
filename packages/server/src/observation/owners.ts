import type { Locks, LockState, ProcessHold, ProcessList, ProcessState, ProcessWait } from "holdfast";

import { grantName } from "./history.ts";
import type { LockObservation } from "./lock-observation.ts";

/** A hold of an owner. Without a directory entry only the facts of the list are known. */
export interface OwnerHold {
  readonly key: string;
  readonly kind: string;
  readonly mode?: string;
  readonly fencingToken?: string;
  readonly since?: number;
  readonly heldMs?: number;
  readonly ttlMs?: number;
  readonly renewedMs?: number;
  readonly marginMs?: number;
  readonly remainingMs?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly reason?: string;
  readonly localWaiters: number;
}

/** One owner of leases: a `Locks` of a process, or a name in the list of locks. */
interface Owner extends Omit<ProcessState, "holds" | "waits" | "seenMs"> {
  readonly seenMs?: number;
  readonly holds: readonly OwnerHold[];
  readonly waits: readonly ProcessWait[];
}

export interface Owners {
  readonly owners: readonly Owner[];
  readonly complete: boolean;
  readonly problem: string | null;
  readonly asOf: number;
}

/** All requests within this time get the same answer, so ten consoles cost as much as one. */
const sharedMs = 2_000;
/** The list and the reports of the processes may differ by a hold that is younger, because they are not read at once. */
const settledMs = 5_000;
/** An owner without an answer has at most this many holds in a reply. */
const maxHolds = 1_000;

/** The owners of all locks: the processes of the directory, and the other holders of the list. */
export class OwnerDirectory {
  readonly #locks: Locks;
  readonly #observation: LockObservation;
  #shared: { readonly at: number; readonly list: Promise<ProcessList> } | undefined;

  constructor(locks: Locks, observation: LockObservation) {
    this.#locks = locks;
    this.#observation = observation;
  }

  /** The processes of the engine. @param key only with their holds and waits of this key */
  processes(key?: string, timeoutMs?: number): Promise<ProcessList> {
    if (key !== undefined) {
      return this.#locks.admin.processes({ key, timeoutMs });
    }
    const now = performance.now();
    if (!this.#shared || now - this.#shared.at > sharedMs) {
      const list = this.#locks.admin.processes({ timeoutMs });
      this.#shared = { at: now, list };
      list.catch(() => (this.#shared = undefined));
    }
    return this.#shared.list;
  }

  /** @param isShown whether the client may see a key */
  async owners(isShown: (key: string) => boolean): Promise<Owners> {
    const [isKnown, list] = await Promise.all([this.#observation.ask(), this.processes()]);
    const known = new Set(list.processes.flatMap(({ holds }) => holds.map(grantName)));
    const answered = new Set(list.processes.flatMap((process) => (process.answered ? [process.owner] : [])));
    const isSettled = ({ key, fencingToken }: OwnerHold, owner: string): boolean =>
      (this.#observation.heldMs(key, fencingToken ?? owner) ?? 0) > settledMs;
    const others = holdsByOwner(
      this.#observation.states(),
      (hold, owner) =>
        isShown(hold.key) && !known.has(grantName(hold)) && (!answered.has(owner) || isSettled(hold, owner)),
    );
    const rows = list.processes.map((process): Owner => {
      const more = process.answered ? [] : (others.get(process.owner) ?? []);
      if (!process.answered) {
        others.delete(process.owner);
      }
      const holds = [...process.holds.map(wireHold), ...more].filter(({ key }) => isShown(key));
      const waits = process.waits.filter(({ key }) => isShown(key));
      return { ...process, holds, holdCount: Math.max(process.holdCount, holds.length), waits };
    });
    const foreign = Array.from(others, ([owner, holds]): Owner => ({
      owner,
      answered: false,
      holds: holds.slice(0, maxHolds),
      holdCount: holds.length,
      waits: [],
      waitCount: 0,
    }));
    const { complete, problem, asOf } = list;
    return { owners: [...rows, ...foreign], complete: complete && isKnown, problem, asOf };
  }
}

/** A hold as JSON. */
export function wireHold({ fencingToken, ...hold }: ProcessHold): OwnerHold {
  return { ...hold, fencingToken: fencingToken.toString() };
}

function holdsByOwner(
  states: readonly LockState[],
  isWanted: (hold: OwnerHold, owner: string) => boolean,
): Map<string, OwnerHold[]> {
  const byOwner = new Map<string, OwnerHold[]>();
  for (const { key, kind, holders } of states) {
    for (const { owner, fencingToken, permits: _permits, ...holder } of holders) {
      const { localWaiters = 0, ...facts } = holder;
      const token = fencingToken === undefined ? {} : { fencingToken: fencingToken.toString() };
      const hold: OwnerHold = { key, kind, ...token, ...facts, localWaiters };
      if (isWanted(hold, owner)) {
        byOwner.set(owner, [...(byOwner.get(owner) ?? []), hold]);
      }
    }
  }
  return byOwner;
}
