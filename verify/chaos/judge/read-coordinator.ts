import { handledBy } from "./record-handlers.ts";
import type { ConductorRecord, Moment } from "./history.ts";
import type { RunStory } from "./attempts.ts";

/** @returns what reads the conductor's records, after those of the clients */
export function readConductor(run: RunStory): (record: ConductorRecord) => void {
  /** By node. */
  const startedAt = new Map<number, Moment>();
  return handledBy<ConductorRecord>({
    phase: ({ at, phase, round }) => {
      const last = run.phases.at(-1);
      if (last) {
        last.to = at;
      }
      run.phases.push({ phase, round, from: at, to: run.endedAt });
    },
    fault: ({ at, number, kind, target }) => {
      run.faults.push({ number, kind, target, from: at, to: run.endedAt });
    },
    over: ({ at, number }) => {
      const fault = run.faults.findLast((other) => other.number === number);
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
    server: ({ at, node, state, run: name }) => {
      const last = run.serverRuns.findLast((other) => other.node === node);
      if (state === "up") {
        run.serverRuns.push({ node, name, since: startedAt.get(node) ?? 0, to: Infinity });
      } else if (state === "starting") {
        startedAt.set(node, at);
      } else if (last) {
        last.to = at;
      }
    },
    failover: (record) => {
      run.failovers.push(record);
    },
    left: (record) => {
      run.left.push(record);
    },
    restless: (record) => {
      run.restless.push(record);
    },
    scripts: ({ at, count }) => {
      run.scripts.push({ at, count });
    },
    clean: () => undefined,
  });
}
