import {
  isFault,
  isLatchAction,
  isUse,
  type Await,
  type ClientSetup,
  type CountDown,
  type Schedule,
  type Step,
} from "../plan/schedule.ts";

/** Schedules with one simplification each, the largest simplifications first. */
export function* shrinkSteps(schedule: Schedule): Generator<Schedule> {
  yield* withFewerClients(schedule);
  yield* withFewerNodes(schedule);
  yield* withSimplerSetup(schedule);
  yield* withSimplerClients(schedule);
  yield* withSimplerSteps(schedule);
}

function* withFewerClients(schedule: Schedule): Generator<Schedule> {
  const { clients, steps } = schedule;
  for (let removed = clients.length - 1; removed >= 0 && clients.length > 1; removed -= 1) {
    const isNeeded = steps.some(
      (step) =>
        ("client" in step && step.client === removed) ||
        (isUse(step) && typeof step.ending === "object" && step.ending.transferTo === removed),
    );
    if (!isNeeded) {
      const renumber = (client: number): number => (client > removed ? client - 1 : client);
      yield {
        ...schedule,
        clients: clients
          .filter((_, index) => index !== removed)
          .map((setup, index) => ({
            ...setup,
            process: setup.process === removed ? index : renumber(setup.process),
          })),
        steps: steps.map((step) => renumbered(step, renumber)),
      };
    }
  }
}

function renumbered(step: Step, renumber: (client: number) => number): Step {
  const moved = "client" in step ? { ...step, client: renumber(step.client) } : step;
  return isUse(moved) && typeof moved.ending === "object"
    ? { ...moved, ending: { ...moved.ending, transferTo: renumber(moved.ending.transferTo) } }
    : moved;
}

/** Removes the last node if no fault concerns it, and if the nodes that may lose data stay a minority. */
function* withFewerNodes(schedule: Schedule): Generator<Schedule> {
  const { nodes, clients, steps } = schedule;
  const last = nodes.length - 1;
  const unreliable = new Set(
    steps.map((step) => (step.kind === "restart node" || step.kind === "step node" ? step.node : -1)),
  );
  unreliable.delete(-1);
  const isNeeded = steps.some((step) => isFault(step) && "node" in step && step.node === last);
  if (nodes.length > 3 && !isNeeded && unreliable.size < last / 2) {
    yield {
      ...schedule,
      nodes: nodes.slice(0, last),
      clients: clients.map((client) => ({
        ...client,
        delaysMs: client.delaysMs.slice(0, last),
        messageDelaysMs: client.messageDelaysMs.slice(0, last),
      })),
    };
  }
}

function* withSimplerSetup(schedule: Schedule): Generator<Schedule> {
  const plain = { offsetMs: 0, rate: 1, durable: false };
  if (schedule.nodes.some((node) => differs(node, plain))) {
    yield { ...schedule, nodes: schedule.nodes.map(() => plain) };
    for (const [index, node] of schedule.nodes.entries()) {
      if (differs(node, plain)) {
        yield { ...schedule, nodes: schedule.nodes.with(index, plain) };
      }
    }
  }
  const lastAt = Math.max(0, ...schedule.steps.map(({ at }) => at));
  const quietAt = Math.ceil(lastAt / 100 + 1) * 100;
  if (quietAt < schedule.quietAt) {
    yield { ...schedule, quietAt };
  }
}

function* withSimplerClients(schedule: Schedule): Generator<Schedule> {
  for (const [index, client] of schedule.clients.entries()) {
    const even: Partial<ClientSetup> = {
      delaysMs: client.delaysMs.map(() => 0.5),
      messageDelaysMs: client.messageDelaysMs.map(() => 0.5),
    };
    for (const plainer of [even, { offsetMs: 0, rate: 1 }, { process: index }, { handover: false }]) {
      const isBound = "process" in plainer && sharesProcesses(schedule);
      if (!isBound && differs(client, { ...client, ...plainer })) {
        yield { ...schedule, clients: schedule.clients.with(index, { ...client, ...plainer }) };
      }
    }
  }
}

/** With the engine `memory` all clients share one process. */
function sharesProcesses({ engine }: Schedule): boolean {
  return engine === "memory";
}

function* withSimplerSteps(schedule: Schedule): Generator<Schedule> {
  for (const [index, step] of schedule.steps.entries()) {
    for (const plainer of simplerSteps(step)) {
      if (differs(step, plainer)) {
        const steps = schedule.steps.with(index, plainer);
        yield { ...schedule, steps: steps.sort((one, other) => one.at - other.at) };
      }
    }
  }
}

function* simplerSteps(step: Step): Generator<Step> {
  if (isUse(step)) {
    for (const name of ["extendAtMs", "abortMs", "maxHoldMs", "attemptId", "ending"] as const) {
      const { [name]: remaining, ...rest } = step;
      if (remaining !== undefined) {
        yield rest as Step;
      }
    }
    yield { ...step, waitMs: null };
    yield { ...step, holdMs: 0 };
    yield { ...step, renew: false };
    yield { ...step, holdMs: Math.round(step.holdMs) };
  }
  if (isLatchAction(step)) {
    yield withoutOptions(step);
    yield { ...step, round: 0 };
  }
  yield { ...step, at: Math.round(step.at / 100) * 100 };
  yield { ...step, at: Math.round(step.at) };
  if ("forMs" in step) {
    yield { ...step, forMs: Math.round(step.forMs) };
  }
}

/** The call without its `attemptId`, or without its abort. */
function withoutOptions(step: (CountDown | Await) & Step): Step {
  if (step.kind === "await") {
    const { abortMs: _, ...rest } = step;
    return rest;
  }
  const { attemptId: _, ...rest } = step;
  return rest;
}

function differs(one: object, other: object): boolean {
  return JSON.stringify(one) !== JSON.stringify(other);
}
