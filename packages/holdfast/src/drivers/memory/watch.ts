import { isThere, type LockEvent, type LockState } from "../../lock-state.ts";

export type WatchTarget = string | { readonly prefix: string };

/** Where watchers find what they tell. */
export interface Watched {
  heldKeys(prefix: string): string[];
  state(key: string): LockState;
}

interface Watcher {
  readonly target: WatchTarget;
  /** Keys to tell of. A key that changes again before it was told is told once, with its newest state. */
  readonly untold: Set<string>;
  wake: () => void;
}

/** Tells of changes to whoever watches; a slow reader costs no more than one entry for each key. */
export class Watchers {
  readonly #watched: Watched;
  readonly #watchers = new Set<Watcher>();
  #closed = false;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  /** Ends when `signal` aborts, or at {@link close}. */
  async *watch(target: WatchTarget, signal: AbortSignal): AsyncGenerator<LockEvent, void, void> {
    const atStart = typeof target === "string" ? [target] : this.#watched.heldKeys(target.prefix);
    const watcher: Watcher = { target, untold: new Set(atStart), wake: () => undefined };
    const wake = (): void => watcher.wake();
    const teller = new Teller(this.#watched, typeof target === "string" ? target : undefined, atStart);
    this.#watchers.add(watcher);
    signal.addEventListener("abort", wake);
    try {
      while (!signal.aborted && !this.#closed) {
        const [key] = watcher.untold;
        if (key === undefined) {
          await new Promise<void>((resolve) => (watcher.wake = resolve));
          continue;
        }
        watcher.untold.delete(key);
        const event = teller.tell(key);
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
        watcher.untold.add(key);
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

/** From a key to the event that its reader, who remembers what was told, needs. */
class Teller {
  readonly #watched: Watched;
  readonly #only: string | undefined;
  readonly #snapshots: Set<string>;
  readonly #toldHeld = new Set<string>();

  /** @param only the key of a watch of one key: its snapshot is told even if it is free */
  constructor(watched: Watched, only: string | undefined, snapshots: readonly string[]) {
    this.#watched = watched;
    this.#only = only;
    this.#snapshots = new Set(snapshots);
  }

  tell(key: string): LockEvent | undefined {
    const state = this.#watched.state(key);
    const held = isThere(state);
    const wasHeld = this.#toldHeld.delete(key);
    if (held) {
      this.#toldHeld.add(key);
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
