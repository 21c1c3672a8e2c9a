import { getEventListeners } from "node:events";

import { isLockError, type Latch } from "holdfast";

import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import { Judge } from "../judge/judge.ts";
import type { Call, LatchHistory, View } from "../judge/latch-history.ts";
import type { MemorySight } from "../judge/latch-snapshot.ts";
import type { Await, CountDown } from "../plan/schedule.ts";

/** How often an attempt is repeated whose outcome is unknown: by its name, as the same. */
const mostRepeats = 3;
const repeatAfterMs = 50;
/** In peace latches may end meanwhile; the next one is opened then. */
const mostRounds = 5;

/** One key: what watches over it, and where it is in memory. */
export interface WatchedLatch {
  readonly history: LatchHistory;
  readonly memory: MemorySight | undefined;
}

type Ending = "done" | "over" | "failed";

/** The programs that count down, and those that wait. */
export class LatchCallers {
  readonly #history: History;
  readonly #judge: Judge;
  readonly #count: number;
  readonly #watched: ReadonlyMap<string, WatchedLatch>;
  readonly #trace: (line: string) => void;
  readonly #views = new Map<string, { readonly latch: Latch; readonly view: View }>();
  #unnamed = 0;

  constructor(
    history: History,
    count: number,
    watched: ReadonlyMap<string, WatchedLatch>,
    trace: (line: string) => void,
  ) {
    this.#history = history;
    this.#judge = new Judge(history);
    this.#count = count;
    this.#watched = watched;
    this.#trace = trace;
  }

  async call(client: Client, step: CountDown | Await): Promise<Ending> {
    client.uses.add(step);
    try {
      return await (step.kind === "await" ? this.#wait(client, step) : this.#countDown(client, step));
    } finally {
      client.uses.delete(step);
    }
  }

  /** Everybody counts down by the names that everybody has, so that who waits is let go. */
  async open(client: Client, key: string, ttlMs: number): Promise<void> {
    let isOpen = false;
    for (let turn = 0; turn < mostRounds && !isOpen; turn += 1) {
      const about = { client: client.index, key, ttlMs, round: peace + turn };
      const counting = Array.from({ length: this.#count }, (_, index) =>
        this.call(client, { kind: "count down", ...about, attemptId: `peace ${turn}, ${index}` }),
      );
      const endings = await Promise.all(counting);
      const isCounted = endings.every((ending) => ending === "done");
      isOpen = isCounted && (await this.call(client, { kind: "await", ...about, waitMs: null })) === "done";
    }
  }

  async #countDown(client: Client, step: CountDown): Promise<Ending> {
    const { attemptId } = step;
    let ending: Ending = "failed";
    for (
      let tries = 0;
      ending === "failed" && tries <= (attemptId === undefined ? 0 : mostRepeats);
      tries += 1
    ) {
      if (tries > 0) {
        await client.pause(repeatAfterMs);
      }
      const attempt = attemptId ?? `call ${(this.#unnamed += 1)}`;
      ending = await this.#ask(client, step, attempt, async (latch, call) => {
        const left = await latch.countDown(attemptId === undefined ? {} : { attemptId });
        this.#trace(`client ${client.index} counted ${step.key} down to ${left}`);
        this.#historyOf(step).counted(call, left);
      });
    }
    return ending;
  }

  async #wait(client: Client, step: Await): Promise<Ending> {
    const { abortMs, waitMs } = step;
    const { clock } = client.process;
    const controller = new AbortController();
    const { signal } = controller;
    const timer =
      abortMs === undefined
        ? undefined
        : clock.setTimer(() => {
            controller.abort(impatience);
          }, abortMs);
    const ending = await this.#ask(client, step, undefined, async (latch, call) => {
      await latch.wait({ waitMs: waitMs ?? Infinity, signal });
      this.#trace(`client ${client.index} was let go by ${step.key}`);
      this.#historyOf(step).opened(call);
    });
    clock.clearTimer(timer);
    if (getEventListeners(signal, "abort").length > 0) {
      this.#history.fail("leftovers", `client ${client.index} left a listener on a caller's signal`);
    }
    return ending;
  }

  async #ask(
    client: Client,
    step: CountDown | Await,
    attempt: string | undefined,
    ask: (latch: Latch, call: Call) => Promise<void>,
  ): Promise<Ending> {
    const { latch, view } = this.#viewOf(client, step);
    const history = this.#historyOf(step);
    const call = history.asks(view, attempt);
    this.#history.operations += 1;
    this.#watched.get(step.key)?.memory?.touch(view, attempt);
    try {
      await ask(latch, call);
      this.#history.grants += 1;
      return "done";
    } catch (error) {
      this.#trace(`client ${client.index} was refused ${step.key}: ${String(error)}`);
      if (isLockError(error, "latch-expired")) {
        history.expired(call);
        return "over";
      }
      history.refused(call);
      if (error !== impatience) {
        this.#judge.told(error, step.kind === "await" ? usualOf(step) : []);
      }
      return "failed";
    }
  }

  #viewOf(client: Client, { key, round, ttlMs }: CountDown | Await): { latch: Latch; view: View } {
    const name = `${client.index} ${key} ${round}`;
    let found = this.#views.get(name);
    if (!found) {
      const count = this.#count;
      const since = this.#history.findings.now;
      const view: View = { client: client.index, count, ttlMs, since, lives: undefined };
      found = { latch: client.locks.latch(key, { count, ttlMs }), view };
      this.#views.set(name, found);
    }
    return found;
  }

  #historyOf({ key }: { readonly key: string }): LatchHistory {
    return (this.#watched.get(key) as WatchedLatch).history;
  }
}

/** Rounds that no schedule has. */
const peace = 1_000;
const impatience = new Error("the caller lost its patience");
/** Who waits less may be gone before the server has answered. */
const hastyMs = 100;

function usualOf({ waitMs }: Await): readonly string[] {
  if (waitMs === null) {
    return [];
  }
  return waitMs < hastyMs ? ["wait-timeout", "engine-unavailable"] : ["wait-timeout"];
}
