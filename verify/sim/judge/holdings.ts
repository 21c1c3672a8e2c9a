import type { Lease } from "holdfast";

import type { Findings } from "./findings.ts";
import type { Limits } from "./limits.ts";
import { Numbers } from "./numbers.ts";
import { Runs, type Run } from "../run/grant-runs.ts";
import type { Asking } from "./queue-order.ts";
import { wallStart } from "../run/virtual-clock.ts";

/** What is watched of a lease. */
export type WatchedLease = Pick<Lease, "key" | "fencingToken" | "remainingMs" | "signal">;

/** Callers of this name may have leases on one grant: repeats of an attempt, or entries of a nest. The last release ends it. */
export interface Sharing {
  readonly name: string;
}

/** One lease, from its grant until its caller gives it back. It counts while its client's own clocks say so. */
export interface Held {
  readonly client: number;
  readonly lease: WatchedLease;
  readonly since: number;
  readonly weight: number;
  readonly ttlMs: number;
  readonly sharing: Sharing | undefined;
  readonly run: Run;
  /** So much room there was at the most when it was granted: those before it and it have no more. */
  readonly room: number;
}

/** What may be asked of an engine. */
export interface Judges {
  readonly isQuorum: boolean;
  /** When the only server forgot what it had granted until then; -Infinity: it did not. */
  readonly forgotAt: () => number;
  readonly numbersForgottenAt: readonly number[];
}

/** Of one key: who holds it, as somebody sees it who knows the true time. */
export class Holdings {
  readonly held: Set<Held> = new Set();
  /** Writers whose downgrade is under way: neither lease counts for its client, but the servers have the grant. */
  readonly downgrading: Set<Held> = new Set();
  readonly #findings: Findings;
  readonly #limits: Limits;
  readonly #forgotAt: () => number;
  readonly #isQuorum: boolean;
  readonly #numbersForgottenAt: readonly number[];
  /** All leases that there were. */
  readonly #known = new WeakMap<WatchedLease, Held>();
  readonly #runs = new Runs();
  readonly #numbers = new Numbers();
  /** When an attempt was first asked for: its grant may be as old. */
  readonly #firstAsked = new Map<string, number>();
  /** The grants that several have a lease on, and those of them that were given back. */
  readonly #named = new Set<string>();
  readonly #over = new Map<string, number>();

  constructor(findings: Findings, limits: Limits, judges: Judges) {
    this.#findings = findings;
    this.#limits = limits;
    this.#forgotAt = judges.forgotAt;
    this.#isQuorum = judges.isQuorum;
    this.#numbersForgottenAt = judges.numbersForgottenAt;
  }

  /** Somebody asks by the name of an attempt. */
  asked(name: string, since: number): void {
    this.#firstAsked.set(name, this.#firstAsked.get(name) ?? since);
  }

  /** @returns how often it was handed over inside its process: 0, the engine granted it */
  granted(asking: Asking, lease: WatchedLease, sharing?: Sharing): number {
    const { client, isShared, weight } = asking;
    const { fencingToken } = lease;
    const handedOn = this.#handedOn(asking, lease);
    // A repeat is told of an older grant, and a grant that is handed on was asked for by its first owner.
    const since = handedOn?.since ?? this.#firstAsked.get(sharing?.name ?? "") ?? asking.since;
    // Who hears of a grant when an operator has ended it already learns that behind it.
    const isBroken = this.#runs.isBroken(fencingToken, isShared) || handedOn?.isBroken === true;
    if (!isBroken) {
      this.#checkNumber(asking, lease, sharing, since);
    }
    this.#numbers.told(fencingToken, weight, this.#findings.now);
    const run = this.#runs.granted(client, fencingToken, {
      handedOn,
      isShared,
      isBroken,
      since: asking.since,
    });
    this.#checkSharing(asking, lease, sharing);
    const { now } = this.#findings;
    const room = this.#mostRoom(since);
    this.#keep({ client, lease, since: now, weight, ttlMs: asking.ttlMs, sharing, run, room });
    return handedOn ? Number(fencingToken - run.first) : 0;
  }

  /** Of those who share the key only a grant that its last owner gave back: another one may have the next number by chance. */
  #handedOn({ client, isShared }: Asking, { fencingToken }: WatchedLease): Run | undefined {
    const isHeld = (run: Run): boolean =>
      [...this.held].some((one) => one.run === run && one.lease.remainingMs() > 0);
    const run = this.#runs.handedOn(client, fencingToken, isShared);
    return run && isShared && isHeld(run) ? undefined : run;
  }

  #checkNumber(asking: Asking, lease: WatchedLease, sharing: Sharing | undefined, since: number): void {
    const { client, isShared, weight } = asking;
    const { fencingToken } = lease;
    const wrong = isShared
      ? this.#numbers.wrong(
          fencingToken,
          { weight, since },
          this.#mostRoom(0),
          this.#isQuorum && weight === 1,
        )
      : this.#runs.wrong(fencingToken);
    // What the server granted before it forgot may be told behind what it granted since.
    const mayBeLate = since < this.#forgotAt() && fencingToken > this.#numbers.largestBefore(since);
    if (wrong === undefined || this.#named.has(grantOf(sharing, lease))) {
      return;
    } else if (mayBeLate || this.#mayBeForgotten()) {
      this.#findings.excuse("fencing: a server forgot its numbers");
    } else {
      this.#findings.add(
        "fencing",
        `client ${client} was granted ${lease.key} with the number ${fencingToken} ${wrong}`,
      );
    }
  }

  /** The largest number was told ahead of the time, and a node that may have been the only one to know it lost it since. */
  #mayBeForgotten(): boolean {
    const { largest } = this.#numbers;
    const { now } = this.#findings;
    const isAhead = largest !== undefined && largest.largest > BigInt(Math.ceil((wallStart + now) * 1_000));
    return isAhead && this.#numbersForgottenAt.some((at) => at > largest.at && at < now);
  }

  /** A grant that the last of its owners gave back is never shared again. */
  #checkSharing(asking: Asking, lease: WatchedLease, sharing: Sharing | undefined): void {
    if (sharing) {
      const overSince = this.#over.get(grantOf(sharing, lease));
      this.#named.add(grantOf(sharing, lease));
      if (overSince !== undefined && overSince < asking.since) {
        this.#findings.add(
          "nesting",
          `client ${asking.client} is let into ${lease.fencingToken} again, which it gave back`,
        );
      }
    }
  }

  /** Taken over from another client: the same grant. */
  adopted(client: number, lease: WatchedLease, given: bigint, terms: Pick<Held, "weight" | "ttlMs">): void {
    if (lease.fencingToken !== given) {
      this.#findings.add("fencing", `client ${client} adopted ${given} and has ${lease.fencingToken}`);
    }
    this.#keep({ ...this.#onSameGrant(client, lease), ...terms });
  }

  /** A writer asks to become a reader. */
  startsDowngrade(writer: WatchedLease): void {
    const own = this.#known.get(writer);
    if (own) {
      this.held.delete(own);
      this.downgrading.add(own);
    }
  }

  /** A downgrade has an answer. */
  endsDowngrade(writer: WatchedLease): void {
    const own = this.#known.get(writer);
    if (own) {
      this.downgrading.delete(own);
    }
  }

  /** A writer is a reader from now on, on the same grant. */
  downgraded(client: number, lease: WatchedLease, writer: WatchedLease): void {
    if (lease.fencingToken !== writer.fencingToken) {
      this.#findings.add("fencing", `${writer.fencingToken} became the reader ${lease.fencingToken}`);
    }
    const ttlMs = this.#known.get(writer)?.ttlMs ?? 0;
    this.#keep({ ...this.#onSameGrant(client, lease), weight: 1, ttlMs });
  }

  /** Its caller gives it back now. */
  released(lease: WatchedLease): void {
    const own = this.#known.get(lease);
    if (!own) {
      return;
    }
    this.held.delete(own);
    const others = own.sharing ? [...this.held].filter((one) => isSameGrant(one, own)) : [];
    if (own.sharing && others.length === 0) {
      this.#over.set(grantOf(own.sharing, lease), this.#findings.now);
    }
  }

  /** An operator has named the number. */
  isBroken(fencingToken: bigint, isShared: boolean): boolean {
    return this.#runs.isBroken(fencingToken, isShared);
  }

  /** An operator ends the grant with that number, which is that client's. */
  breaks(fencingToken: bigint, client: number, isShared: boolean): void {
    this.#runs.breaks(
      fencingToken,
      client,
      Array.from(this.held, ({ run }) => run),
      isShared,
    );
  }

  /** Its grant is no older. */
  since(lease: WatchedLease): number {
    return this.#known.get(lease)?.run.since ?? 0;
  }

  /** Whether somebody thinks that he holds it. */
  get isHeld(): boolean {
    return this.used > 0;
  }

  /** How much room those take who think that they hold it. */
  get used(): number {
    return this.#valid(() => true).reduce((sum, { weight }) => sum + weight, 0);
  }

  look(): void {
    if (this.held.size < 2) {
      return;
    }
    const all = this.#valid(({ run }) => !run.isBroken);
    const valid = all
      .filter(({ run }) => run.since >= this.#forgotAt())
      .sort((one, other) => (one.lease.fencingToken < other.lease.fencingToken ? -1 : 1));
    if (valid.length < all.length) {
      this.#findings.excuse("exclusion: the only server forgot the grant");
    }
    let used = 0;
    for (const [index, one] of valid.entries()) {
      used += one.weight;
      if (used > one.room) {
        const holders = valid.slice(0, index + 1).map(toldOf);
        this.#findings.add("exclusion", `${one.lease.key} is held by ${holders.join(" and ")}`);
        return;
      }
    }
  }

  #valid(counts: (one: Held) => boolean): Held[] {
    const valid: Held[] = [];
    for (const one of this.held) {
      if (counts(one) && one.lease.remainingMs() > 0 && !valid.some((other) => isSameGrant(one, other))) {
        valid.push(one);
      }
    }
    return valid;
  }

  #mostRoom(since: number): number {
    return Math.max(...this.#limits.since(since));
  }

  #onSameGrant(client: number, lease: WatchedLease): Omit<Held, "weight" | "ttlMs"> {
    const run = this.#runs.of(client, lease.fencingToken);
    const room = this.#mostRoom(0);
    return { client, lease, since: this.#findings.now, sharing: undefined, run, room };
  }

  #keep(held: Held): void {
    this.#known.set(held.lease, held);
    this.held.add(held);
  }
}

function toldOf({ client, lease, since, weight }: Held): string {
  const share = weight < 2 ** 31 ? `, ${weight}` : "";
  return `client ${client} since ${since.toFixed(3)} (${lease.fencingToken}${share})`;
}

function grantOf(sharing: Sharing | undefined, { fencingToken }: WatchedLease): string {
  return `${sharing?.name} ${fencingToken}`;
}

function isSameGrant(one: Held, other: Held): boolean {
  return (
    one.sharing !== undefined &&
    one.sharing.name === other.sharing?.name &&
    one.lease.fencingToken === other.lease.fencingToken
  );
}
