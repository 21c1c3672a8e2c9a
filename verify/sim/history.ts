import type { Lease } from "holdfast";

import type { Weather } from "./schedule.ts";

interface Held {
  readonly client: number;
  readonly lease: Lease;
  readonly since: number;
}

/** Who waits for a key and who holds it, as somebody sees it who knows the true time; and what is wrong with that. */
class KeyHistory {
  /** Those that their callers have not given back. A lease counts while its client's own clocks say so. */
  readonly held: Set<Held> = new Set();
  readonly waiting: Set<{ readonly client: number }> = new Set();
  newest = 0n;
  freeSince: number | undefined;
}

/** Watches the leases of one world, and finds what must never happen. */
export class History {
  readonly failures: string[] = [];
  /** How many leases there were. */
  grants = 0;
  #patienceMs = Infinity;
  readonly #keys = new Map<string, KeyHistory>();
  readonly #now: () => number;
  readonly #isFlawless: boolean;

  constructor(now: () => number, weather: Weather) {
    this.#now = now;
    this.#isFlawless = weather === "calm" || weather === "duel";
  }

  /** @returns to be called when the waiting is over */
  waits(client: number, key: string): () => void {
    const { waiting } = this.#of(key);
    const waiter = { client };
    waiting.add(waiter);
    return () => {
      waiting.delete(waiter);
    };
  }

  granted(client: number, lease: Lease): void {
    const history = this.#of(lease.key);
    const { fencingToken } = lease;
    this.grants += 1;
    if (fencingToken <= history.newest) {
      this.fail(
        `client ${client} was granted ${lease.key} with the number ${fencingToken} after ${history.newest}`,
      );
    }
    history.newest = fencingToken > history.newest ? fencingToken : history.newest;
    history.held.add({ client, lease, since: this.#now() });
    history.freeSince = undefined;
    this.look();
  }

  /** Its caller gives it back now. */
  released(lease: Lease): void {
    const { held } = this.#of(lease.key);
    for (const one of held) {
      if (one.lease === lease) {
        held.delete(one);
      }
    }
  }

  /** A client never does anything again: it waits for nothing, and what it holds ends by itself. */
  gone(client: number): void {
    for (const { waiting } of this.#keys.values()) {
      for (const waiter of waiting) {
        if (waiter.client === client) {
          waiting.delete(waiter);
        }
      }
    }
  }

  /** What a caller was told that it must not be told where nothing went wrong. */
  complain(what: string): void {
    if (this.#isFlawless) {
      this.fail(what);
    }
  }

  /** From now on nobody may wait longer for a free lock. */
  expect(patienceMs: number): void {
    this.#patienceMs = patienceMs;
    for (const history of this.#keys.values()) {
      history.freeSince = undefined;
    }
  }

  fail(what: string): void {
    this.failures.push(`at ${this.#now().toFixed(3)} ms: ${what}`);
  }

  /** After everything that happens. */
  look(): void {
    for (const [key, history] of this.#keys) {
      const valid = [...history.held].filter(({ lease }) => lease.remainingMs() > 0);
      if (valid.length > 1) {
        const holders = valid.map(
          ({ client, lease, since }) => `client ${client} since ${since.toFixed(3)} (${lease.fencingToken})`,
        );
        this.fail(`${key} is held by ${holders.join(" and ")}`);
      }
      if (valid.length > 0 || history.waiting.size === 0) {
        history.freeSince = undefined;
        continue;
      }
      history.freeSince ??= this.#now();
      const freeForMs = this.#now() - history.freeSince;
      if (freeForMs > this.#patienceMs) {
        this.fail(`${key} has been free for ${freeForMs.toFixed(0)} ms with ${history.waiting.size} waiting`);
        history.freeSince = undefined;
      }
    }
  }

  #of(key: string): KeyHistory {
    let history = this.#keys.get(key);
    if (!history) {
      history = new KeyHistory();
      this.#keys.set(key, history);
    }
    return history;
  }
}
