import { computed, signal, type ReadonlySignal } from "@preact/signals";

import { LockTable, type TableChanges } from "../model/lock-table.ts";
import type { Row } from "../model/row.ts";
import { share, type Sharing } from "./sharing.ts";
import { readLocks } from "./source.ts";
import { usualOf } from "./usual.ts";

/** Whether the stream is open, and when the last sign of life arrived. */
interface Connection {
  readonly isOpen: boolean;
  readonly aliveAt: number;
  /** Whether a complete list has arrived. */
  readonly isListed: boolean;
  readonly error: string;
}

interface Message {
  readonly changes?: TableChanges;
  readonly connection: Connection;
}

/** The state of the page's data, for the chip. */
export type LiveState = "live" | "paused" | "reconnecting" | "old" | "connecting";

const tickMs = 1_000;
/** Timers of a tab that was frozen are late by more than this. */
const frozenMs = 5_000;
/** The service writes at least a comment in 15 s. */
const oldMs = 20_000;

const table = new LockTable(usualOf);
const nothing: Connection = { isOpen: false, aliveAt: 0, isListed: false, error: "" };
const connection = signal<Connection>(nothing);
const version = signal(0);
const pausedRows = signal<readonly Row[] | undefined>(undefined);

/** The time for all that ages on the page. It stands still while the page is paused. */
export const now = signal(Date.now());
export const rows: ReadonlySignal<readonly Row[]> = computed(() => {
  void version.value;
  return pausedRows.value ?? table.rows;
});
export const isPaused = computed(() => pausedRows.value !== undefined);
export const isListed = computed(() => connection.value.isListed);
export const liveError = computed(() => connection.value.error);
/** How old the data are, ms. */
export const ageMs = computed(() => Math.max(0, now.value - connection.value.aliveAt));
export const liveState: ReadonlySignal<LiveState> = computed(() => {
  if (isPaused.value) return "paused";
  if (!connection.value.isOpen) return connection.value.aliveAt > 0 ? "reconnecting" : "connecting";
  return ageMs.value > oldMs ? "old" : "live";
});

export function rowOfKey(key: string): Row | undefined {
  void version.value;
  return pausedRows.value?.find((row) => row.key === key) ?? table.row(key);
}

export function togglePause(): void {
  pausedRows.value = isPaused.value ? undefined : table.rows;
  now.value = Date.now();
}

/** Reads the locks of some prefixes while the page is visible. Returns a function that ends it. */
export function startLive(prefixes: readonly string[], name: string): () => void {
  let run: Run | undefined;
  const stop = (): void => {
    run?.stop();
    run = undefined;
  };
  const update = (): void => {
    if (document.visibilityState === "visible") run ??= new Run(prefixes, name);
    else stop();
  };
  let tickedAt = Date.now();
  const timer = setInterval(() => {
    const late = Date.now() - tickedAt;
    tickedAt = Date.now();
    if (late > frozenMs) stop();
    update();
    run?.tick();
    if (!isPaused.value) now.value = Date.now();
  }, tickMs);
  const events = ["visibilitychange", "resume"] as const;
  for (const event of events) document.addEventListener(event, update);
  document.addEventListener("freeze", stop);
  update();
  return () => {
    clearInterval(timer);
    for (const event of events) document.removeEventListener(event, update);
    document.removeEventListener("freeze", stop);
    stop();
    table.clear();
    connection.value = nothing;
  };
}

/** The time in which this tab is visible: as the leader, or with the data of the leader. */
class Run {
  readonly #prefixes: readonly string[];
  readonly #sharing: Sharing<Message>;
  #isLeader = false;
  #frame = 0;

  constructor(prefixes: readonly string[], name: string) {
    this.#prefixes = prefixes;
    this.#sharing = share<Message>({
      name: `holdfast-console:${name}`,
      lead: () => this.#lead(),
      received: ({ changes, connection: state }) => {
        if (changes) table.applyChanges(changes);
        connection.value = state;
        this.#flushSoon();
      },
      asked: () => this.#post(table.everything()),
    });
  }

  stop(): void {
    this.#sharing.stop();
    cancelAnimationFrame(this.#frame);
    connection.value = { ...connection.value, isOpen: false };
  }

  tick(): void {
    if (this.#isLeader) this.#post();
  }

  #lead(): () => void {
    const stopped = new AbortController();
    this.#isLeader = true;
    readLocks(
      this.#prefixes,
      {
        event: (event) => {
          table.applyEvent(event, Date.now());
          this.#flushSoon();
        },
        page: (locks, startedAt) => {
          table.applyPage(locks, Date.now(), startedAt);
          this.#flushSoon();
        },
        listed: (keys, startedAt) => {
          table.endList(keys, startedAt);
          connection.value = { ...connection.value, isListed: true, aliveAt: Date.now() };
          this.#flushSoon();
        },
        alive: () => (connection.value = { ...connection.value, aliveAt: Date.now() }),
        connection: (isOpen, error) => {
          connection.value = { ...connection.value, isOpen, error: error?.message ?? "" };
          if (isOpen) connection.value = { ...connection.value, aliveAt: Date.now() };
        },
      },
      stopped.signal,
    );
    announce("holdfast:stream", { state: "open", leader: true });
    return () => {
      this.#isLeader = false;
      stopped.abort();
      announce("holdfast:stream", { state: "closed", leader: true });
    };
  }

  #flushSoon(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      const changes = table.takeChanges();
      if (changes === undefined) return;
      version.value += 1;
      if (!isPaused.value) now.value = Date.now();
      if (this.#isLeader) this.#post(changes);
      announce("holdfast:frame", { locks: table.size });
    });
  }

  #post(changes?: TableChanges): void {
    this.#sharing.post({ connection: connection.value, ...(changes && { changes }) });
  }
}

/** Events for tests and extensions of the browser. */
function announce(name: string, detail: object): void {
  dispatchEvent(new CustomEvent(name, { detail }));
}
