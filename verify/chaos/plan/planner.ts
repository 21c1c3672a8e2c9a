import { SeededRandom } from "./chance.ts";
import type { Engine } from "./engine.ts";
import type { Bounds, ClientSetup, LatchKeys, Omission, Plan } from "./plan.ts";
import { StormPlanner } from "./storm-planner.ts";

export interface PlanOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly nodeCount: number;
  readonly without: Omission | null;
}

const calmMs = 6_000;
const stormMs = 20_000;
const quietPeriodMs = 8_000;
const bounds: Bounds = {
  settleMs: 5_000,
  quietPeriodMs: 20_000,
  residueMs: 25_000,
  memoryFactor: 1.25,
  memoryBytes: 8 * 1024 * 1024,
};

const latches: LatchKeys = { everyMs: 5_000, count: 4, ttlMs: 30_000, briefCount: 3, briefTtlMs: 500 };

const clients: readonly ClientSetup[] = [
  { handover: true, callers: 5, mayBeKilled: false },
  { handover: false, callers: 4, mayBeKilled: false },
  { handover: true, callers: 5, mayBeKilled: true },
  { handover: false, callers: 3, mayBeKilled: true },
  { handover: true, callers: 3, mayBeKilled: true },
];

/** Decides by the seed which faults occur, and when. */
export function planOf(engine: Engine, options: PlanOptions): Plan {
  const { seed, minutes, nodeCount, without } = options;
  const random = new SeededRandom(seed);
  const nodes = random.shuffled(engine.nodes(nodeCount, without));
  const cycles = Math.max(1, Math.round((minutes * 60_000 - calmMs) / (stormMs + quietPeriodMs)));
  const forMs = Math.max(3_000, Math.round((minutes * 60_000 - calmMs) / cycles - quietPeriodMs));
  const kinds = (without && engine.omissions[without]) ?? engine.faults;
  const planner = new StormPlanner({ ...engine, faults: kinds }, random, nodes, clients);
  return {
    seed,
    engine: engine.name,
    without,
    minutes,
    nodes,
    clients,
    keys: {
      hot: "hot",
      lukewarm: ["lukewarm-1", "lukewarm-2", "lukewarm-3"],
      own: clients.map((_, index) => `own-${index}`),
      readWrite: engine.hasReadWrite ? ["book-1", "book-2"] : [],
      semaphores: engine.hasSemaphores
        ? [
            { key: "permits-1", limit: 4 },
            { key: "permits-2", limit: 7 },
          ]
        : [],
      sets: ["set-1", "set-2", "set-3", "set-4"],
      reentrant: ["nested-1"],
      elections: ["leader-1"],
      latches: engine.hasLatches ? latches : null,
    },
    maxTtlMs: engine.maxTtlMs,
    tokenSpread: engine.tokenSpread,
    bounds,
    storms: Array.from({ length: cycles }, () => planner.storm(forMs)),
  };
}
