import { handledBy } from "./record-handlers.ts";
import type { CoordinatorRecord, Instant } from "./history.ts";
import type { RunHistory } from "./attempts.ts";

/** @returns the reader of the coordinator's records. It runs after the readers of the clients. */
export function readCoordinator(run: RunHistory): (record: CoordinatorRecord) => void {
  /** The start of the last run of each node. */
  const startedAt = new Map<number, Instant>();
  /** The nodes whose last run ended with every grant on its disk. */
  const endedDurable = new Map<number, boolean>();
  return handledBy<CoordinatorRecord>({
    phase: ({ at, phase, round }) => {
      const last = run.phases.at(-1);
      if (last) {
        last.to = at;
      }
      run.phases.push({ phase, round, from: at, to: run.endedAt });
    },
    fault: ({ at, faultId, kind, target }) => {
      run.faults.push({ faultId, kind, target, from: at, to: run.endedAt });
    },
    "fault-ended": ({ at, faultId }) => {
      const fault = run.faults.findLast((other) => other.faultId === faultId);
      if (fault) {
        fault.to = at;
      }
    },
    killed: ({ at, process: name }) => {
      const killed = run.processes.get(name);
      if (killed) {
        killed.killedAt = at;
      }
    },
    crashed: ({ at, process: name, how }) => {
      const crashed = run.processes.get(name);
      if (crashed) {
        crashed.crashed = { at, how };
      }
    },
    server: ({ at, node, state, run: name, durable }) => {
      const last = run.serverRuns.findLast((other) => other.node === node);
      if (state === "up") {
        const earlier = durable && endedDurable.get(node) === true ? last : undefined;
        run.serverRuns.push({ node, name, since: startedAt.get(node) ?? 0, to: Infinity, durable, earlier });
      } else if (state === "starting") {
        startedAt.set(node, at);
      } else if (last) {
        endedDurable.set(node, durable);
        last.to = at;
      }
    },
    failover: (record) => {
      run.failovers.push(record);
    },
    residue: (record) => {
      run.residue.push(record);
    },
    "not-quiescent": (record) => {
      run.notQuiescent.push(record);
    },
    scripts: ({ at, count }) => {
      run.scripts.push({ at, count });
    },
    clean: () => undefined,
  });
}
