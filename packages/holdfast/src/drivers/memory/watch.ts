import { exists, type LockEvent, type LockState } from "../../lock-state.ts";

export type WatchTarget = string | { readonly prefix: string };

/** The source of the states that watchers receive. */
export interface WatchSource {
  heldKeys(prefix: string): string[];
  state(key: string): LockState;
}

interface WatchSubscription {
  readonly target: WatchTarget;
  /** Changed keys that are not reported yet. Several changes of a key before its report become one event with the newest state. */
  readonly pending: Set<string>;
  wake: () => void;
}

/** Reports changes to all watchers. A slow reader costs at most one entry for each key. */
export class WatchHub {
  readonly #source: WatchSource;
  readonly #watchers = new Set<WatchSubscription>();
  #closed = false;

  constructor(source: WatchSource) {
    this.#source = source;
  }

  /** Ends when `signal` aborts, or at {@link close}. */
  async *watch(target: WatchTarget, signal: AbortSignal): AsyncGenerator<LockEvent, void, void> {
    const atStart = typeof target === "string" ? [target] : this.#source.heldKeys(target.prefix);
    const watcher: WatchSubscription = { target, pending: new Set(atStart), wake: () => undefined };
    const wake = (): void => watcher.wake();
    const reporter = new ChangeReporter(
      this.#source,
      typeof target === "string" ? target : undefined,
      atStart,
    );
    this.#watchers.add(watcher);
    signal.addEventListener("abort", wake);
    try {
      while (!signal.aborted && !this.#closed) {
        const [key] = watcher.pending;
        if (key === undefined) {
          await new Promise<void>((resolve) => (watcher.wake = resolve));
          continue;
        }
        watcher.pending.delete(key);
        const event = reporter.report(key);
        if (event !== undefined) {
          yield event;
        }
      }
    } finally {
      signal.removeEventListener("abort", wake);
      this.#watchers.delete(watcher);
    }
  }

  changed(key: string): void {
    for (const watcher of this.#watchers) {
      const { target } = watcher;
      if (typeof target === "string" ? key === target : key.startsWith(target.prefix)) {
        watcher.pending.add(key);
        watcher.wake();
      }
    }
  }

  close(): void {
    this.#closed = true;
    for (const watcher of this.#watchers) {
      watcher.wake();
    }
  }
}

/** Turns changed keys into the events of one watcher. It remembers which keys were reported as held. */
class ChangeReporter {
  readonly #source: WatchSource;
  readonly #only: string | undefined;
  readonly #snapshots: Set<string>;
  readonly #reportedHeld = new Set<string>();

  /** @param only the key of a watch of one key, whose snapshot is reported even if the key is free */
  constructor(source: WatchSource, only: string | undefined, snapshots: readonly string[]) {
    this.#source = source;
    this.#only = only;
    this.#snapshots = new Set(snapshots);
  }

  report(key: string): LockEvent | undefined {
    const state = this.#source.state(key);
    const held = exists(state);
    const wasHeld = this.#reportedHeld.delete(key);
    if (held) {
      this.#reportedHeld.add(key);
    }
    if (this.#snapshots.delete(key) && (held || key === this.#only)) {
      return { type: "snapshot", key, state };
    }
    if (held) {
      return { type: "changed", key, state };
    }
    return wasHeld ? { type: "gone", key, state } : undefined;
  }
}
