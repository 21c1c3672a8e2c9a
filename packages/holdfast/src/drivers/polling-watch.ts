import type { Driver } from "../driver.ts";
import { exists, lockState, type LockEvent, type LockState } from "../lock-state.ts";
import { pause } from "../runtime/timeout.ts";

type Target = string | { readonly prefix: string };

/** One lock in a snapshot. */
interface Seen {
  readonly state: LockState;
  /** Equal for two states that differ only in their times. */
  readonly fingerprint: string;
}

type Present = ReadonlyMap<string, Seen>;

const intervalMs = 500;
/** A poll of a prefix may read all keys of the engine, so the pause after it is this many times as long as the poll. */
const restFactor = 20;

/** The watches of one driver. Watches of the same key, or of the same prefix, share one poller. */
export class PollingWatches {
  readonly #driver: Driver;
  readonly #survives: (error: unknown) => boolean;
  readonly #pollers = new Map<string, Poller>();

  /** @param survives whether the watches continue after a poll that failed with this error */
  constructor(driver: Driver, survives: (error: unknown) => boolean = () => false) {
    this.#driver = driver;
    this.#survives = survives;
  }

  /**
   * Yields a snapshot of the locks, then their changes. A slow reader gets only the newest state of each lock.
   * Ends when the signal aborts. Rejects if the engine fails, unless the watches survive that.
   */
  async *watch(target: Target, signal: AbortSignal): AsyncGenerator<LockEvent, void, undefined> {
    const poller = this.#pollerFor(target);
    const reader = poller.join(signal);
    try {
      let known: Present | undefined;
      for (let present = await reader.next(); present; present = await reader.next()) {
        for (const event of changes(known, present)) {
          if (signal.aborted) {
            return;
          }
          yield event;
        }
        known = present;
      }
    } finally {
      reader.leave();
    }
  }

  #pollerFor(target: Target): Poller {
    const name = typeof target === "string" ? `key ${target}` : `prefix ${target.prefix}`;
    let poller = this.#pollers.get(name);
    if (poller === undefined) {
      poller = new Poller(this.#driver, target, this.#survives, () => this.#pollers.delete(name));
      this.#pollers.set(name, poller);
    }
    return poller;
  }
}

/** Polls its target while a reader waits for changes: the engines do not report the changes of other processes, or only by a setting. */
class Poller {
  readonly #driver: Driver;
  readonly #target: Target;
  readonly #survives: (error: unknown) => boolean;
  readonly #ended: () => void;
  readonly #readers = new Set<Reader>();
  readonly #ending = new AbortController();
  /** How many polls have begun. */
  #startedAt = 0;
  /** The earliest time of the next poll, on the scale of `clock.now()`. */
  #restsUntil = -Infinity;
  #isRunning = false;

  /** @param ended called once, after its last reader has ended or the engine has failed */
  constructor(driver: Driver, target: Target, survives: (error: unknown) => boolean, ended: () => void) {
    this.#driver = driver;
    this.#target = target;
    this.#survives = survives;
    this.#ended = ended;
  }

  /** The first snapshot of a reader is of a poll that begins after the reader has joined. */
  join(signal: AbortSignal): Reader {
    const reader = new Reader(this.#startedAt, signal, {
      waits: () => {
        if (!this.#isRunning) {
          void this.#run();
        }
      },
      left: () => {
        if (this.#readers.delete(reader) && this.#readers.size === 0) {
          this.#end();
        }
      },
    });
    this.#readers.add(reader);
    return reader;
  }

  /** Never rejects. A failure rejects the readers. */
  async #run(): Promise<void> {
    const { clock } = this.#driver;
    this.#isRunning = true;
    try {
      while (this.#hasWaitingReader()) {
        const restMs = this.#restsUntil - clock.now();
        if (restMs > 0) {
          await pause(this.#driver.clock, restMs, true, this.#ending.signal);
        } else {
          await this.#poll().catch((error: unknown) => {
            if (!this.#survives(error)) {
              throw error;
            }
            this.#restsUntil = clock.now() + intervalMs;
          });
        }
      }
    } catch (error) {
      this.#end();
      for (const reader of this.#readers) {
        reader.fail(error);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  async #poll(): Promise<void> {
    const { clock } = this.#driver;
    const begun = clock.now();
    this.#startedAt += 1;
    const present = await pollOnce(this.#driver, this.#target, this.#ending.signal);
    const tookMs = typeof this.#target === "string" ? 0 : clock.now() - begun;
    this.#restsUntil = clock.now() + Math.max(intervalMs, restFactor * tookMs);
    for (const reader of this.#readers) {
      reader.seen(this.#startedAt, present);
    }
  }

  #hasWaitingReader(): boolean {
    return Array.from(this.#readers).some(({ isWaiting }) => isWaiting);
  }

  #end(): void {
    if (!this.#ending.signal.aborted) {
      this.#ending.abort();
      this.#ended();
    }
  }
}

interface ReaderHost {
  waits(): void;
  left(): void;
}

/** One watch at its own speed. The next snapshot replaces an unread one. */
class Reader {
  readonly #since: number;
  readonly #signal: AbortSignal;
  readonly #host: ReaderHost;
  #unread: Present | undefined;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  /** @param since the number of the last poll that began before this reader joined. The reader ignores its snapshot. */
  constructor(since: number, signal: AbortSignal, host: ReaderHost) {
    this.#since = since;
    this.#signal = signal;
    this.#host = host;
    signal.addEventListener("abort", this.leave);
  }

  get isWaiting(): boolean {
    return this.#wake !== undefined;
  }

  /** Resolves with the newest unread snapshot. Undefined after the signal has aborted. */
  async next(): Promise<Present | undefined> {
    while (!this.#signal.aborted) {
      if (this.#failure) {
        throw this.#failure.error;
      }
      const present = this.#unread;
      if (present) {
        this.#unread = undefined;
        return present;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#host.waits();
      });
    }
    return undefined;
  }

  seen(poll: number, present: Present): void {
    if (poll > this.#since) {
      this.#unread = present;
      this.#woken();
    }
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#woken();
  }

  /** Ends the watch. Also called when the signal aborts, even while the consumer is busy. */
  readonly leave = (): void => {
    this.#signal.removeEventListener("abort", this.leave);
    this.#host.left();
    this.#woken();
  };

  #woken(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

async function pollOnce(driver: Driver, target: Target, signal: AbortSignal): Promise<Present> {
  const present = new Map<string, Seen>();
  const add = (state: LockState): void => {
    present.set(state.key, { state, fingerprint: fingerprintOf(state) });
  };
  if (typeof target === "string") {
    add(await driver.inspect(target));
    return present;
  }
  let cursor: string | null = null;
  do {
    const page: { locks: LockState[]; cursor: string | null } = await driver.list({
      prefix: target.prefix,
      cursor,
      limit: 1000,
      signal,
    });
    page.locks.forEach(add);
    cursor = page.cursor;
  } while (cursor !== null);
  return present;
}

function* changes(known: Present | undefined, present: Present): Generator<LockEvent> {
  for (const [key, { state, fingerprint }] of present) {
    const before = known?.get(key);
    if (!known) {
      yield { type: "snapshot", key, state };
    } else if (before?.fingerprint !== fingerprint) {
      const wasReleased = before !== undefined && exists(before.state) && !exists(state);
      yield { type: wasReleased ? "gone" : "changed", key, state };
    }
  }
  for (const [key, { state }] of known ?? []) {
    if (!present.has(key)) {
      const { remaining: _, ...rest } = state;
      yield { type: "gone", key, state: lockState({ ...rest, holders: [], remainingMs: null }) };
    }
  }
}

const ignored: ReadonlySet<string> = new Set([
  "heldMs",
  "nodes",
  "oldestWaitMs",
  "remainingMs",
  "since",
  "waitedMs",
]);

/** The state without its times and the replies of nodes, which change without an event. */
function fingerprintOf(state: LockState): string {
  return JSON.stringify(state, (name, value: unknown) =>
    ignored.has(name) ? undefined : typeof value === "bigint" ? String(value) : value,
  );
}
