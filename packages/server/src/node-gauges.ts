import { channel } from "node:diagnostics_channel";
import { monitorEventLoopDelay } from "node:perf_hooks";

import type { NodeState } from "holdfast";
import { Counter, Gauge, type Registry } from "prom-client";

/** The age up to which one reply of the servers serves all gauges, ms. */
const freshMs = 1_000;

/** Gauges of the engine's servers, read at each scrape. */
export function addNodeGauges(registry: Registry, nodes: () => Promise<NodeState[]>): void {
  let asked: { readonly at: number; readonly states: Promise<NodeState[]> } | undefined;
  const states = (): Promise<NodeState[]> => {
    if (!asked || performance.now() - asked.at > freshMs) {
      asked = { at: performance.now(), states: nodes().catch(() => []) };
    }
    return asked.states;
  };
  const add = (name: string, help: string, valueOf: (state: NodeState) => number | null): void => {
    new Gauge({
      name,
      help,
      labelNames: ["server_address"],
      registers: [registry],
      async collect() {
        const reported = await states();
        this.reset();
        for (const state of reported) {
          const value = valueOf(state);
          if (value !== null) {
            this.set({ server_address: state.node }, value);
          }
        }
      },
    });
  };
  add("lock_node_up", "1: the server is reachable, and its votes count", ({ reachable, quarantine }) =>
    reachable && quarantine === null ? 1 : 0,
  );
  add("lock_node_clock_offset_seconds", "The server's clock minus the service's clock", ({ clockOffsetMs }) =>
    inSeconds(clockOffsetMs),
  );
  add("lock_node_uptime_seconds", "Time since the server's start", ({ uptimeMs }) => inSeconds(uptimeMs));
  addRoles(registry, states);
  addRestarts(registry, states);
}

function addRoles(registry: Registry, states: () => Promise<NodeState[]>): void {
  new Gauge({
    name: "lock_node_role",
    help: "1 for what the server says that it is; locks want a master",
    labelNames: ["server_address", "role"],
    registers: [registry],
    async collect() {
      const reported = await states();
      this.reset();
      for (const { node, role } of reported) {
        if (role !== null) {
          this.set({ server_address: node, role }, 1);
        }
      }
    },
  });
}

/** A restarted server has another run id. Of several restarts between two scrapes, one is counted. */
function addRestarts(registry: Registry, states: () => Promise<NodeState[]>): void {
  const ids = new Map<string, string>();
  new Counter({
    name: "lock_node_restarts_total",
    help: "Restarts of the server since the start of the service",
    labelNames: ["server_address"],
    registers: [registry],
    async collect() {
      for (const { node, runId } of await states()) {
        if (runId !== null) {
          const isAnother = ids.has(node) && ids.get(node) !== runId;
          ids.set(node, runId);
          this.inc({ server_address: node }, isAnother ? 1 : 0);
        }
      }
    },
  });
}

/** Counts the library's events about servers. Returns the removal. */
export function addNodeEvents(registry: Registry): () => void {
  const events = new Counter({
    name: "lock_node_events_total",
    help: "Events of the server, such as connection-failed, restarted, may-have-forgotten, evicts",
    labelNames: ["server_address", "event"],
    registers: [registry],
  });
  const count = (message: unknown): void => {
    const { node, event } = message as { node: string; event: string };
    events.inc({ server_address: node, event });
  };
  channel("holdfast:node").subscribe(count);
  return () => {
    channel("holdfast:node").unsubscribe(count);
  };
}

/** Measures the lateness of timers, because a service with a blocked event loop renews late. Returns the removal. */
export function addTimerLag(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  new Gauge({
    name: "lock_timer_lag_seconds",
    help: "99th percentile of the delay of the event loop since it was last asked for",
    registers: [registry],
    collect() {
      const lag = delay.percentile(99) / 1e9;
      this.set(Number.isFinite(lag) ? lag : 0);
      delay.reset();
    },
  });
  return () => {
    delay.disable();
  };
}

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}
