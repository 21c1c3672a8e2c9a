// oxlint-disable-next-line no-restricted-imports -- the delay of the real event loop is measured here, and no time is read
import { monitorEventLoopDelay } from "node:perf_hooks";

import type { NodeState } from "../lock-state.ts";
import { systemClock } from "../runtime/clock.ts";
import type { Observation, Recorder } from "./recorder.ts";

/** The age up to which one reply of the servers serves all instruments, ms. */
const freshMs = 1_000;

/** The states of servers, as `Locks` have them. */
export interface NodeSource {
  readonly admin: { nodes(): Promise<NodeState[]> };
}

/** Reads the states of the servers at each collection, once for all instruments. A server of several sources is reported once. */
export class NodeReader {
  readonly #sources: readonly NodeSource[];
  #asked: { readonly at: number; readonly states: Promise<readonly NodeState[]> } | undefined;

  constructor(sources: readonly NodeSource[]) {
    this.#sources = sources;
  }

  states(): Promise<readonly NodeState[]> {
    const now = systemClock.now();
    if (!this.#asked || now - this.#asked.at > freshMs) {
      this.#asked = { at: now, states: this.#read() };
    }
    return this.#asked.states;
  }

  /** One observation for each server with a value. */
  async read(valueOf: (state: NodeState) => number | null): Promise<readonly Observation[]> {
    return (await this.states()).flatMap((state) => {
      const value = valueOf(state);
      return value === null ? [] : [{ value, attributes: { "server.address": state.node } }];
    });
  }

  async #read(): Promise<readonly NodeState[]> {
    const replies = await Promise.all(this.#sources.map((source) => source.admin.nodes().catch(() => [])));
    return [...new Map(replies.flat().map((state) => [state.node, state])).values()];
  }
}

/** Observes the servers of the sources. */
export function observeNodes(recorder: Recorder, reader: NodeReader): void {
  recorder.observe("holdfast.node.up", () =>
    reader.read(({ reachable, quarantine }) => (reachable && quarantine === null ? 1 : 0)),
  );
  recorder.observe("holdfast.node.clock.offset", () =>
    reader.read(({ clockOffsetMs }) => inSeconds(clockOffsetMs)),
  );
  recorder.observe("holdfast.node.uptime", () => reader.read(({ uptimeMs }) => inSeconds(uptimeMs)));
  const restarts = new RestartCounter();
  recorder.observe("holdfast.node.restarts", () => reader.read((state) => restarts.countedFor(state)));
}

/** Observes the lateness of timers, because a process with a blocked event loop renews late. @returns ends the measurement */
export function observeTimerLag(recorder: Recorder): () => void {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  recorder.observe("holdfast.timer.lag", () => {
    const lag = delay.percentile(99) / 1e9;
    delay.reset();
    return [{ value: Number.isFinite(lag) ? lag : 0, attributes: {} }];
  });
  return () => void delay.disable();
}

/** A restarted server has another run id. Of several restarts between two collections, one is counted. */
class RestartCounter {
  readonly #known = new Map<string, { runId: string; restarts: number }>();

  countedFor({ node, runId }: NodeState): number | null {
    const known = this.#known.get(node);
    if (runId === null) {
      return known?.restarts ?? null;
    }
    const restarts = known === undefined ? 0 : known.restarts + (known.runId === runId ? 0 : 1);
    this.#known.set(node, { runId, restarts });
    return restarts;
  }
}

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}
