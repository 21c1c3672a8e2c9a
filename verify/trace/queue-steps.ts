import type { Step } from "../model/explorer/model.ts";
import type { TracedOperation } from "../sim/run/traced-redis.ts";

/** Which steps of the model an operation may be. */
export const rulesOf: Readonly<Record<string, readonly string[]>> = {
  acquire: ["acquire"],
  refill: ["refill"],
  yield: ["yield", "acquire"],
  release: ["release"],
  extend: ["extend"],
  breakGrant: ["break"],
};

/** What a client has done and heard before an operation of its own reaches a node, and no server sees. */
type Unseen = (step: Step, a: number, node: number) => boolean;

const passesWithTime = new Set(["vote expires", "quarantine ends"]);

function isEnd({ rule }: Step): boolean {
  return rule === "give back";
}

const asks: Unseen = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && (rule === "start" || (rule === "ask again" && where === node));
const hears: Unseen = ({ rule, attempt }, a) => attempt === a && rule === "grant";

/** Of its vote there, and of who asks for it. */
const hearsOf: Unseen = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && where === node && (rule === "grant" || rule === "inquiry");

/** It has heard of a majority, and another's lease is over by then. */
export const holds: Unseen = (step, a, node) =>
  hears(step, a, node) || isEnd(step) || passesWithTime.has(step.rule);

export const unseenBefore: Readonly<Record<string, Unseen>> = {
  acquire: asks,
  refill: (step, a, node) =>
    holds(step, a, node) || (step.rule === "fill" && step.attempt === a && step.node === node),
  yield: (step, a, node) => hearsOf(step, a, node) || asks(step, a, node) || passesWithTime.has(step.rule),
  release: (step, a) =>
    step.attempt === a && (step.rule === "start" || step.rule === "give back" || step.rule === "cancel"),
  extend: (step, a, node) => holds(step, a, node) || (step.rule === "prolong" && step.attempt === a),
};

export function isWithoutEffect({ name, isTry, answer }: TracedOperation): boolean {
  const status = Array.isArray(answer) ? (answer[0] as unknown) : answer;
  switch (name) {
    case "verify":
    case "inspect":
    case "agree":
      return true;
    case "refill":
    case "breakGrant":
      return Number(status) !== 1;
    default:
      return (
        status === "error" || Number(status) === 4 || Number(status) === 2 || (isTry && Number(status) === 0)
      );
  }
}
