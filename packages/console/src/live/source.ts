import { ApiError, get, openStream } from "../api/client.ts";
import { chunksOf, eventsOf } from "../api/sse.ts";
import type { Lock, LockEvent, LockPage } from "../api/types.ts";
import { wait } from "./wait.ts";

/** The consumer of a source. */
export interface SourceTarget {
  event(event: LockEvent): void;
  page(locks: readonly Lock[], startedAt: number): void;
  listed(keys: ReadonlySet<string>, startedAt: number): void;
  /** Any sign of life of the stream. */
  alive(): void;
  connection(isOpen: boolean, error?: ApiError): void;
}

const shortestListIntervalMs = 2_000;
/** A list scans the keys of the engine, so the pause after it is this many times as long as the list took. */
const listRestFactor = 20;
/** The service writes at least a comment in 15 s. */
const mostSilenceMs = 40_000;
const longestBackoffMs = 10_000;

/**
 * Reads the locks of some prefixes until the signal aborts. The stream reports changes at once, and not renewals. Complete lists at a
 * slower pace report renewals, and correct the rest.
 */
export function readLocks(prefixes: readonly string[], target: SourceTarget, signal: AbortSignal): void {
  const lists = new ListLoop(prefixes, target, signal);
  for (const prefix of prefixes) void readStream(prefix, target, signal, () => lists.hurry());
  void lists.run();
}

/** Never rejects. */
async function readStream(
  prefix: string,
  target: SourceTarget,
  signal: AbortSignal,
  opened: () => void,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      await readConnection(prefix, target, signal, () => {
        failures = 0;
        opened();
      });
      target.connection(false);
    } catch (error) {
      if (signal.aborted) return;
      target.connection(false, error instanceof ApiError ? error : undefined);
    }
    await wait(Math.min(longestBackoffMs, 500 * 2 ** failures) * (0.5 + Math.random() / 2), signal);
  }
}

async function readConnection(
  prefix: string,
  target: SourceTarget,
  outer: AbortSignal,
  opened: () => void,
): Promise<void> {
  const connection = new AbortController();
  const signal = AbortSignal.any([outer, connection.signal]);
  let receivedAt = performance.now();
  const watchdog = setInterval(() => {
    if (performance.now() - receivedAt > mostSilenceMs) connection.abort();
  }, 1_000);
  try {
    const { body } = await openStream("v1/events", { prefix }, signal);
    target.connection(true);
    opened();
    if (body === null) return;
    for await (const { name, data } of eventsOf(chunksOf(body))) {
      receivedAt = performance.now();
      target.alive();
      if (name === "draining" || name === "problem") return;
      if (name !== "") target.event(JSON.parse(data) as LockEvent);
    }
  } finally {
    clearInterval(watchdog);
    connection.abort();
  }
}

class ListLoop {
  readonly #prefixes: readonly string[];
  readonly #target: SourceTarget;
  readonly #signal: AbortSignal;
  #resting = new AbortController();

  constructor(prefixes: readonly string[], target: SourceTarget, signal: AbortSignal) {
    this.#prefixes = prefixes;
    this.#target = target;
    this.#signal = signal;
  }

  /** Ends the present pause, because a stream was opened again. */
  hurry(): void {
    this.#resting.abort();
  }

  /** Never rejects. */
  async run(): Promise<void> {
    for (let failures = 0; !this.#signal.aborted;) {
      const begun = performance.now();
      this.#resting = new AbortController();
      try {
        await this.#list();
        failures = 0;
      } catch (error) {
        if (this.#signal.aborted) return;
        failures += 1;
        if (error instanceof ApiError) this.#target.connection(false, error);
      }
      const rest = failures > 0 ? Math.min(longestBackoffMs, 1_000 * 2 ** failures) : shortestListIntervalMs;
      const took = performance.now() - begun;
      await wait(
        Math.max(rest, listRestFactor * took),
        AbortSignal.any([this.#signal, this.#resting.signal]),
      );
    }
  }

  async #list(): Promise<void> {
    const startedAt = Date.now();
    const keys = new Set<string>();
    for (const prefix of this.#prefixes) {
      let cursor: string | undefined;
      do {
        const query = { ...(prefix !== "" && { prefix }), limit: "1000", cursor };
        const page: LockPage = await get<LockPage>("v1/locks", query, this.#signal);
        for (const { key } of page.locks) keys.add(key);
        this.#target.page(page.locks, startedAt);
        cursor = page.cursor ?? undefined;
      } while (cursor !== undefined);
    }
    this.#target.listed(keys, startedAt);
  }
}
