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
type UnobservedStep = (step: Step, a: number, node: number) => boolean;

const timeSteps = new Set(["vote expires", "quarantine ends"]);

function isEnd({ rule }: Step): boolean {
  return rule === "release lease";
}

const startsRequest: UnobservedStep = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && (rule === "start" || (rule === "resend" && where === node));
const receivesGrant: UnobservedStep = ({ rule, attempt }, a) => attempt === a && rule === "grant";

/** Of its vote there, and of who asks for it. */
const receivesMessage: UnobservedStep = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && where === node && (rule === "grant" || rule === "inquiry");

/** It has heard of a majority, and another's lease is over by then. */
export const becomesHolder: UnobservedStep = (step, a, node) =>
  receivesGrant(step, a, node) || isEnd(step) || timeSteps.has(step.rule);

export const unobservedBefore: Readonly<Record<string, UnobservedStep>> = {
  acquire: startsRequest,
  refill: (step, a, node) =>
    becomesHolder(step, a, node) ||
    (step.rule === "start refill" && step.attempt === a && step.node === node),
  yield: (step, a, node) =>
    receivesMessage(step, a, node) || startsRequest(step, a, node) || timeSteps.has(step.rule),
  release: (step, a) =>
    step.attempt === a && (step.rule === "start" || step.rule === "release lease" || step.rule === "cancel"),
  extend: (step, a, node) =>
    becomesHolder(step, a, node) || (step.rule === "start extension" && step.attempt === a),
};

export function hasNoEffect({ name, isTry, reply }: TracedOperation): boolean {
  const status = Array.isArray(reply) ? (reply[0] as unknown) : reply;
  switch (name) {
    case "verify":
    case "inspect":
    case "raiseFence":
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
