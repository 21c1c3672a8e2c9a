import { getEventListeners } from "node:events";
import { isLockError, type Latch } from "holdfast";

import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import { CallJudge } from "../judge/judge.ts";
import type { LatchCall, LatchHandle, LatchHistory } from "../judge/latch-history.ts";
import type { MemoryLatchObserver } from "../judge/latch-watch.ts";
import type { Await, CountDown } from "../plan/schedule.ts";

/** How often an attempt with an unknown outcome is repeated, with the same `attemptId`. */
const maxRepeats = 3;
const repeatAfterMs = 50;
/** How many latches a client tries to open in the quiet period, because a latch may expire before it is open. */
const maxRounds = 5;

/** The judge of one latch, and the expected state of a latch in memory. */
export interface WatchedLatch {
  readonly history: LatchHistory;
  readonly memory: MemoryLatchObserver | undefined;
}

type CallResult = "done" | "expired" | "failed";

/** The programs that count latches down, and the programs that wait for latches. */
export class LatchCallers {
  readonly #history: History;
  readonly #judge: CallJudge;
  readonly #count: number;
  readonly #watched: ReadonlyMap<string, WatchedLatch>;
  readonly #trace: (line: string) => void;
  readonly #handles = new Map<string, { readonly latch: Latch; readonly view: LatchHandle }>();
  #unnamedAttempts = 0;

  constructor(
    history: History,
    count: number,
    watched: ReadonlyMap<string, WatchedLatch>,
    trace: (line: string) => void,
  ) {
    this.#history = history;
    this.#judge = new CallJudge(history);
    this.#count = count;
    this.#watched = watched;
    this.#trace = trace;
  }

  async call(client: Client, step: CountDown | Await): Promise<CallResult> {
    client.uses.add(step);
    try {
      return await (step.kind === "await" ? this.#wait(client, step) : this.#countDown(client, step));
    } finally {
      client.uses.delete(step);
    }
  }

  /** Every client counts down with the same attempts, so that all waits return. */
  async open(client: Client, key: string, ttlMs: number): Promise<void> {
    let isOpen = false;
    for (let turn = 0; turn < maxRounds && !isOpen; turn += 1) {
      const call = { client: client.index, key, ttlMs, round: quietRound + turn };
      const counting = Array.from({ length: this.#count }, (_, index) =>
        this.call(client, { kind: "count down", ...call, attemptId: `peace ${turn}, ${index}` }),
      );
      const results = await Promise.all(counting);
      const isCounted = results.every((result) => result === "done");
      isOpen = isCounted && (await this.call(client, { kind: "await", ...call, waitMs: null })) === "done";
    }
  }

  async #countDown(client: Client, step: CountDown): Promise<CallResult> {
    const { attemptId } = step;
    let result: CallResult = "failed";
    for (
      let tries = 0;
      result === "failed" && tries <= (attemptId === undefined ? 0 : maxRepeats);
      tries += 1
    ) {
      if (tries > 0) {
        await client.pause(repeatAfterMs);
      }
      const attempt = attemptId ?? `call ${(this.#unnamedAttempts += 1)}`;
      result = await this.#runCall(client, step, attempt, async (latch, call) => {
        const remaining = await latch.countDown(attemptId === undefined ? {} : { attemptId });
        this.#trace(`client ${client.index} counted ${step.key} down to ${remaining}`);
        this.#historyOf(step).counted(call, remaining);
      });
    }
    return result;
  }

  async #wait(client: Client, step: Await): Promise<CallResult> {
    const { abortMs, waitMs } = step;
    const { clock } = client.process;
    const controller = new AbortController();
    const { signal } = controller;
    const timer =
      abortMs === undefined
        ? undefined
        : clock.setTimer(() => {
            controller.abort(abortReason);
          }, abortMs);
    const result = await this.#runCall(client, step, undefined, async (latch, call) => {
      await latch.wait({ waitMs: waitMs ?? Infinity, signal });
      this.#trace(`client ${client.index} was let go by ${step.key}`);
      this.#historyOf(step).opened(call);
    });
    clock.clearTimer(timer);
    if (getEventListeners(signal, "abort").length > 0) {
      this.#history.fail("residue", `client ${client.index} left a listener on a caller's signal`);
    }
    return result;
  }

  async #runCall(
    client: Client,
    step: CountDown | Await,
    attempt: string | undefined,
    run: (latch: Latch, call: LatchCall) => Promise<void>,
  ): Promise<CallResult> {
    const { latch, view: handle } = this.#handleFor(client, step);
    const history = this.#historyOf(step);
    const call = history.callStarted(handle, attempt);
    this.#history.operations += 1;
    this.#watched.get(step.key)?.memory?.call(handle, attempt);
    try {
      await run(latch, call);
      this.#history.grants += 1;
      return "done";
    } catch (error) {
      this.#trace(`client ${client.index} was refused ${step.key}: ${String(error)}`);
      if (isLockError(error, "latch-expired")) {
        history.expired(call);
        return "expired";
      }
      history.refused(call);
      if (error !== abortReason) {
        this.#judge.errorReported(error, step.kind === "await" ? expectedCodes(step) : []);
      }
      return "failed";
    }
  }

  #handleFor(client: Client, { key, round, ttlMs }: CountDown | Await): { latch: Latch; view: LatchHandle } {
    const name = `${client.index} ${key} ${round}`;
    let found = this.#handles.get(name);
    if (!found) {
      const count = this.#count;
      const firstUsedAt = this.#history.findings.now;
      const handle: LatchHandle = { client: client.index, count, ttlMs, firstUsedAt, generations: undefined };
      found = { latch: client.locks.latch(key, { count, ttlMs }), view: handle };
      this.#handles.set(name, found);
    }
    return found;
  }

  #historyOf({ key }: { readonly key: string }): LatchHistory {
    return (this.#watched.get(key) as WatchedLatch).history;
  }
}

/** The first round that no schedule uses. */
const quietRound = 1_000;
const abortReason = new Error("the caller lost its patience");
/** A shorter wait may end before the server has replied, ms. */
const shortWaitMs = 100;

function expectedCodes({ waitMs }: Await): readonly string[] {
  if (waitMs === null) {
    return [];
  }
  return waitMs < shortWaitMs ? ["wait-timeout", "engine-unavailable"] : ["wait-timeout"];
}
