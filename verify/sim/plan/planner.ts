import { SeededRandom } from "./dice.ts";
import { drawRestartGuard, durabilityRandom, withDurability } from "./plan-durability.ts";
import { planFaults } from "./plan-faults.ts";
import { kindRandom, drawKind, withKind } from "./plan-kinds.ts";
import { pauseRandom, planPauses, planSleeps, sleepRandom } from "./plan-sleeps.ts";
import { fullMemoryRandom, withFullMemory } from "./plan-full-memory.ts";
import { holdRandom, withShortestHolds } from "./plan-holds.ts";
import { planTransfers, transferRandom } from "./plan-transfers.ts";
import { planReorders, reorderRandom } from "./plan-reorders.ts";
import { latchRandom, latchSteps, drawLatch } from "./plan-latches.ts";
import { repeatRandom, planRepeats, planWork } from "./plan-work.ts";
import type {
  ClientSetup,
  Engine,
  NodeSetup,
  Schedule,
  ScheduleFrame,
  Step,
  FaultScenario,
} from "./schedule.ts";

/** Plans the schedule of a seed. The seed determines every step. */
export function planSchedule(seed: number): Schedule {
  const random = new SeededRandom(seed);
  const baseFrame = planFrame(seed, random);
  const steps: Step[] = planWork(baseFrame, random);
  if (baseFrame.scenario === "storm") {
    steps.push(...planFaults(baseFrame, random));
  }
  const ownRandom = kindRandom(seed);
  const latches = latchRandom(seed);
  const durability = durabilityRandom(seed);
  const frame = {
    ...baseFrame,
    ...drawRestartGuard(baseFrame, durability),
    ...drawLatch(drawKind(baseFrame.engine, baseFrame.scenario, ownRandom), baseFrame, latches),
  };
  const kindSteps = withShortestHolds(
    frame.kind === "latch" ? latchSteps(steps, frame, latches) : withKind(steps, frame, ownRandom),
    frame,
    holdRandom(seed),
  );
  const reorders = planReorders(frame, reorderRandom(seed));
  const merged = [
    ...reorders,
    ...kindSteps,
    ...planRepeats(kindSteps, repeatRandom(seed)),
    ...planSleeps(kindSteps, frame, sleepRandom(seed)),
    ...planPauses(frame, pauseRandom(seed)),
    ...planTransfers(frame, transferRandom(seed)),
  ];
  const durable = withDurability(merged, frame, durability);
  const scenario = reorders.length > 0 ? "reordered" : frame.scenario;
  const full = withFullMemory(durable, { ...frame, scenario }, fullMemoryRandom(seed));
  const ordered = [...full.steps].sort((one, other) => one.at - other.at);
  return { ...frame, scenario, ...full.frame, steps: ordered };
}

function planFrame(seed: number, random: SeededRandom): ScheduleFrame {
  const engine = random.weighted<Engine>([
    ["quorum", 60],
    ["server", 25],
    ["memory", 15],
  ]);
  const scenario = random.weighted(scenarioWeights[engine]);
  const maxTtlMs = scenario === "storm" ? random.pick([600, 1_000, 2_000, 4_000]) : 4_500;
  const quietAt =
    scenario === "storm"
      ? random.integer(3_000, 12_000)
      : scenario === "lost-notifications"
        ? 12_000
        : faultFreeForMs;
  const isClockFair = scenario !== "storm" || random.happens(0.3);
  const [nodeDrift, clientDrift] = isClockFair ? ([0, 0] as const) : random.pick(drifts);
  const nodes = planNodes(engine, nodeDrift, random);
  return {
    seed,
    engine,
    kind: "mutex",
    scenario,
    nodes,
    clients: planClients(engine, nodes.length, clientDrift, random),
    maxTtlMs,
    claimMs: Math.min(
      maxTtlMs,
      random.pick(scenario === "lost-notifications" ? longClaimWindowsMs : claimWindowsMs),
    ),
    nodeTimeoutMs: random.pick([20, 50]),
    quietAt,
  };
}

const scenarioWeights: Readonly<Record<Engine, readonly (readonly [FaultScenario, number])[]>> = {
  quorum: [
    ["storm", 60],
    ["calm", 18],
    ["lost-inquiries", 7],
    ["lost-notifications", 7],
    ["contention", 8],
  ],
  server: [
    ["storm", 60],
    ["calm", 25],
    ["lost-notifications", 15],
  ],
  memory: [
    ["storm", 50],
    ["calm", 50],
  ],
};

const faultFreeForMs = 3_000;

const claimWindowsMs = [150, 400, 1_000];
/** The waiter must find a grant without a notification by its poll, before the claim expires. */
const longClaimWindowsMs = [1_000, 3_000];

/** The drift of nodes and of clients. The sum is below the drift that a lock allows. */
const drifts = [
  [0, 0.0099],
  [0.0099, 0],
  [0.0049, 0.0049],
] as const;

function planNodes(engine: Engine, drift: number, random: SeededRandom): NodeSetup[] {
  const count = engine === "quorum" ? random.pick([3, 3, 4, 5]) : engine === "server" ? 1 : 0;
  return Array.from({ length: count }, () => ({
    offsetMs: drift === 0 ? random.between(-95, 95) : random.between(-250, 250),
    rate: 1 + random.upTo(drift),
    durable: random.happens(0.15),
  }));
}

function planClients(engine: Engine, nodeCount: number, drift: number, random: SeededRandom): ClientSetup[] {
  const count = random.integer(2, 5);
  const farMs = random.pick([0.5, 2, 5]);
  const shareProcess = engine !== "memory" && random.happens(0.15);
  return Array.from({ length: count }, (_, index): ClientSetup => {
    const delays = (lowMs: number): number[] =>
      Array.from({ length: nodeCount }, (__, node) =>
        node === index % nodeCount ? 0.1 : random.between(lowMs, farMs),
      );
    return {
      process: engine === "memory" || (shareProcess && index === count - 1) ? 0 : index,
      offsetMs: random.between(-3_000, 3_000),
      rate: 1 + random.upTo(drift),
      handover: random.happens(0.6),
      delaysMs: delays(0.2),
      messageDelaysMs: delays(0.1),
    };
  });
}
