import { Dice } from "./dice.ts";
import { faultsOf } from "./plan-faults.ts";
import { kindDice, kindOf, ofKind } from "./plan-kinds.ts";
import { sleepDice, sleepsOf } from "./plan-sleeps.ts";
import { latchDice, latchSteps, orLatch } from "./plan-latches.ts";
import { repeatDice, repeatsOf, workOf } from "./plan-work.ts";
import type { ClientSetup, Engine, NodeSetup, Schedule, Step, Weather } from "./schedule.ts";

/** What happens, all of it decided by the seed. */
export function scheduleOf(seed: number): Schedule {
  const dice = new Dice(seed);
  const plain = frameOf(seed, dice);
  const steps: Step[] = workOf(plain, dice);
  if (plain.weather === "storm") {
    steps.push(...faultsOf(plain, dice));
  }
  const ownDice = kindDice(seed);
  const latches = latchDice(seed);
  const frame = { ...plain, ...orLatch(kindOf(plain.engine, plain.weather, ownDice), plain, latches) };
  const ofItsKind =
    frame.kind === "latch" ? latchSteps(steps, frame, latches) : ofKind(steps, frame, ownDice);
  const all = [
    ...ofItsKind,
    ...repeatsOf(ofItsKind, repeatDice(seed)),
    ...sleepsOf(ofItsKind, frame, sleepDice(seed)),
  ];
  return { ...frame, steps: all.sort((one, other) => one.at - other.at) };
}

/** All of a schedule but its steps. */
export type Frame = Omit<Schedule, "steps">;

function frameOf(seed: number, dice: Dice): Frame {
  const engine = dice.weigh<Engine>([
    ["quorum", 60],
    ["server", 25],
    ["memory", 15],
  ]);
  const weather = dice.weigh(climates[engine]);
  const maxTtlMs = weather === "storm" ? dice.pick([600, 1_000, 2_000, 4_000]) : 4_500;
  const peaceAt =
    weather === "storm" ? dice.whole(3_000, 12_000) : weather === "unheard" ? 12_000 : calmForMs;
  const isClockFair = weather !== "storm" || dice.chance(0.3);
  const [nodeDrift, clientDrift] = isClockFair ? ([0, 0] as const) : dice.pick(drifts);
  const nodes = nodesOf(engine, nodeDrift, dice);
  return {
    seed,
    engine,
    kind: "mutex",
    weather,
    nodes,
    clients: clientsOf(engine, nodes.length, clientDrift, dice),
    maxTtlMs,
    claimMs: Math.min(maxTtlMs, dice.pick(weather === "unheard" ? longClaimsMs : claimsMs)),
    nodeTimeoutMs: dice.pick([20, 50]),
    peaceAt,
  };
}

const climates: Readonly<Record<Engine, readonly (readonly [Weather, number])[]>> = {
  quorum: [
    ["storm", 60],
    ["calm", 18],
    ["deaf", 7],
    ["unheard", 7],
    ["duel", 8],
  ],
  server: [
    ["storm", 60],
    ["calm", 25],
    ["unheard", 15],
  ],
  memory: [
    ["storm", 50],
    ["calm", 50],
  ],
};

const calmForMs = 3_000;

const claimsMs = [150, 400, 1_000];
/** A grant that nobody is told of is to be found by its waiter who asks again, before it is over. */
const longClaimsMs = [1_000, 3_000];

/** Of nodes and of clients: less than a lock allows for, in sum. */
const drifts = [
  [0, 0.0099],
  [0.0099, 0],
  [0.0049, 0.0049],
] as const;

function nodesOf(engine: Engine, drift: number, dice: Dice): NodeSetup[] {
  const count = engine === "quorum" ? dice.pick([3, 3, 4, 5]) : engine === "server" ? 1 : 0;
  return Array.from({ length: count }, () => ({
    offsetMs: drift === 0 ? dice.between(-95, 95) : dice.between(-250, 250),
    rate: 1 + dice.extreme(drift),
    durable: dice.chance(0.15),
  }));
}

function clientsOf(engine: Engine, nodeCount: number, drift: number, dice: Dice): ClientSetup[] {
  const count = dice.whole(2, 5);
  const farMs = dice.pick([0.5, 2, 5]);
  const areNeighbours = engine !== "memory" && dice.chance(0.15);
  return Array.from({ length: count }, (_, index): ClientSetup => {
    const delays = (lowMs: number): number[] =>
      Array.from({ length: nodeCount }, (__, node) =>
        node === index % nodeCount ? 0.1 : dice.between(lowMs, farMs),
      );
    return {
      process: engine === "memory" || (areNeighbours && index === count - 1) ? 0 : index,
      offsetMs: dice.between(-3_000, 3_000),
      rate: 1 + dice.extreme(drift),
      handover: dice.chance(0.6),
      delaysMs: delays(0.2),
      messageDelaysMs: delays(0.1),
    };
  });
}
