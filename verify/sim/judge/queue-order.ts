import type { Findings } from "./findings.ts";

/** One caller that asks for a key. */
export interface Asking {
  readonly client: number;
  readonly keys: readonly string[];
  /** How much of the key's room it wants. */
  readonly weight: number;
  /** It shares the key with others, each by a grant of its own. */
  readonly isShared: boolean;
  readonly ttlMs: number;
  readonly since: number;
  /** Its place in the queue may be that of so early an arrival: see {@link Turns}. */
  readonly placedFrom: number;
  /** Or of so late a one. */
  readonly placedTo: number;
  /** A fault since then may have cost it its place: since the first of its client's own line that stands before it asked. */
  readonly judgedSince: number;
  /** Of two that ask at the same moment the smaller one was first. */
  readonly serial: number;
  /** It stands in its client's own line, as an attempt and a request for several keys do too, which may come there again. */
  readonly isInLine: boolean;
  /** It stands there once, so nobody overtakes it. */
  readonly standsInLine: boolean;
  /** Of a semaphore: it may wait in memory, where others of its client with as many permits came before it. */
  readonly mayWaitInMemory: boolean;
  /** Since when it has been the first of those; Infinity: it is not. */
  leadsSince: number;
  /** It has a place of its own in the queue by now: it waits, has no name, and its client is known to the servers. */
  hasPlace: boolean;
  /** It once wanted more than there was, or another has what it wants: until it asks again it is in no queue. */
  isOut: boolean;
  /** Until when it wants to wait: then it leaves the queue, and asks who has the lock before it answers. */
  readonly until: number;
  /** Its deadline at the servers is an estimate too, and may be that early. */
  readonly placeEndsFrom: number;
  wasGranted: boolean;
  isOver: boolean;
}

interface Suspicion {
  readonly asking: Asking;
  readonly earlier: Asking;
  readonly how: string;
  /** When it is known whether it is true. */
  readonly dueAt: number;
}

/** By how much a later arrival may go before an earlier one at the servers, ms: see {@link Turns}. */
export const toleranceMs = 30;
/** By how much the median of a majority's clocks may be behind that of all, ms. @param offsetsMs of each from the true time */
export function strangersAheadMs(offsetsMs: readonly number[]): number {
  const sorted = [...offsetsMs].sort((one, other) => one - other);
  return medianOf(sorted) - medianOf(sorted.slice(0, Math.floor(sorted.length / 2) + 1));
}

function medianOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

/** How often in a row a lease may be handed over inside a process while others wait. */
const longestRun = 16;

/**
 * Of one key: whether those who wait are served in turn.
 *
 * Inside one client's line nobody is overtaken, whatever happens. Between clients the place in the queue is the time of arrival by
 * the servers' clocks, which each client knows within half a round trip, and who is still on the way to a free lock has no place yet;
 * both are below 5 ms each way here, at each of the two. On a quorum a client's first place is by the clocks of a majority, where the
 * others have not told their time yet: as much earlier as that is behind the clocks of all (see {@link strangersAheadMs}). Since a
 * client's last answer its clock and the servers' have drifted apart. So where
 * nothing goes wrong nobody who came `toleranceMs` later is granted first, but by a hand-over inside a process, and that `longestRun`
 * times in a row at the most. Of a semaphore only the first of a client's line is sure to stand at the servers.
 */
export class Turns {
  readonly #findings: Findings;
  readonly #key: string;
  readonly #isQuiet: (client: number, since: number) => boolean;
  readonly #asking = new Set<Asking>();
  readonly #suspicions: Suspicion[] = [];

  /** @param isQuiet whether nothing goes wrong for a client since then */
  constructor(findings: Findings, key: string, isQuiet: (client: number, since: number) => boolean) {
    this.#findings = findings;
    this.#key = key;
    this.#isQuiet = isQuiet;
  }

  begin(asking: Asking): void {
    this.#asking.add(asking);
    this.#findLeaders();
  }

  end(asking: Asking): void {
    asking.isOver = true;
    this.#asking.delete(asking);
    this.#findLeaders();
  }

  #findLeaders(): void {
    const led = new Set<string>();
    for (const asking of this.#asking) {
      const line = `${asking.client} ${asking.weight}`;
      if (asking.mayWaitInMemory && !led.has(line)) {
        led.add(line);
        asking.leadsSince = Math.min(asking.leadsSince, this.#findings.now);
      }
    }
  }

  gone(client: number): void {
    for (const asking of this.#asking) {
      if (asking.client === client) {
        this.end(asking);
      }
    }
  }

  /**
   * An operator ends the grant of that client: its local queue waited for that lease, without a place at the servers. On a quorum the
   * grant may be the votes of a request that waits for the majority. Without them the request has no place.
   */
  broken(client: number, holdsLease: boolean): void {
    for (const asking of this.#asking) {
      if (asking.client === client && (asking.standsInLine || !holdsLease)) {
        asking.hasPlace = false;
      }
    }
  }

  /** There is less room from now on: who wants more is out of the queue. */
  narrowed(limit: number): void {
    for (const asking of this.#asking) {
      asking.isOut ||= asking.weight > limit;
    }
  }

  /** Who waits. */
  get waiting(): ReadonlySet<Asking> {
    return this.#asking;
  }

  /** @param handovers how often its grant was handed over in memory */
  granted(asking: Asking, handovers: number): void {
    const mayPass = handovers > 0 && handovers <= longestRun;
    for (const earlier of this.#asking) {
      const how = this.#overtakes(asking, earlier, mayPass);
      if (how !== undefined && earlier !== asking) {
        // Those who share it may be let in together, and are told by messages of their own.
        const dueAt = this.#findings.now + (asking.isShared ? toleranceMs : 0);
        this.#suspicions.push({ asking, earlier, how, dueAt });
      }
    }
  }

  /** Who is overtaken is so only if he still waits when that moment has passed: who was frozen times out late, behind others. */
  look(): void {
    const { now } = this.#findings;
    while (this.#suspicions.length > 0 && (this.#suspicions[0] as Suspicion).dueAt < now) {
      const { asking, earlier, how } = this.#suspicions.shift() as Suspicion;
      if (!earlier.isOver && !(asking.isShared && now >= earlier.until)) {
        this.#findings.add(
          "order",
          `client ${asking.client}, who asks for ${this.#key} since ${asking.since.toFixed(3)}, is granted ${how} client ${earlier.client}, who waits since ${earlier.since.toFixed(3)}`,
        );
      }
    }
  }

  #overtakes(asking: Asking, earlier: Asking, mayPass: boolean): string | undefined {
    if (this.#findings.now >= earlier.until) {
      return undefined;
    }
    if (asking.client === earlier.client && asking.standsInLine && earlier.standsInLine) {
      return earlier.serial < asking.serial ? "in the same line before" : undefined;
    }
    if (mayPass || !hasPlaceAt(this.#findings.now, earlier) || !isEarlier(earlier, asking)) {
      return undefined;
    }
    // A place is an estimate of the servers' clocks, and a client that a fault keeps from its turn loses it.
    const isJudged = [asking, earlier].every(({ client }) => this.#isQuiet(client, earlier.judgedSince));
    return isJudged ? "before" : this.#findings.excuse("order: a fault disturbs one of the two");
  }
}

function hasPlaceAt(now: number, asking: Asking): boolean {
  const { hasPlace, isOut, placeEndsFrom, mayWaitInMemory, leadsSince } = asking;
  const mayBeOnTheWay = mayWaitInMemory && now < leadsSince + toleranceMs;
  return hasPlace && !mayBeOnTheWay && !isOut && now < placeEndsFrom;
}

/** Those of one client have their places in the order in which they came, but where each asks the servers by itself. */
function isEarlier(earlier: Asking, asking: Asking): boolean {
  return asking.client === earlier.client && !asking.isShared
    ? earlier.serial < asking.serial
    : earlier.placedTo + toleranceMs < asking.placedFrom;
}
