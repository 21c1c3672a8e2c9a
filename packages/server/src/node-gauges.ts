import { channel } from "node:diagnostics_channel";

import type { NodeReader } from "holdfast/prometheus";
import { Counter, Gauge, type Registry } from "prom-client";

/** The role of each server, read at each scrape. */
export function addRoles(registry: Registry, reader: NodeReader): void {
  new Gauge({
    name: "holdfast_server_node_role",
    help: "1 for what the server says that it is; locks want a master",
    labelNames: ["server_address", "role"],
    registers: [registry],
    async collect() {
      const reported = await reader.states();
      this.reset();
      for (const { node, role } of reported) {
        if (role !== null) {
          this.set({ server_address: node, role }, 1);
        }
      }
    },
  });
}

/** Counts the library's events about servers. Returns the removal. */
export function addNodeEvents(registry: Registry): () => void {
  const events = new Counter({
    name: "holdfast_server_node_events_total",
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
