import type { Step } from "../model/explorer/model.ts";
import type { TracedOperation } from "../sim/run/traced-redis.ts";

/** The rules of the model that an operation may be. */
export const rulesOf: Readonly<Record<string, readonly string[]>> = {
  acquire: ["acquire"],
  refill: ["refill"],
  yield: ["yield", "acquire"],
  release: ["release"],
  extend: ["extend"],
  breakGrant: ["break"],
};

/** The steps of a client, unobserved by servers, that may precede an operation of the client at a node. */
type UnobservedStep = (step: Step, a: number, node: number) => boolean;

const timeSteps = new Set(["vote expires", "quarantine ends"]);

function endsLease({ rule }: Step): boolean {
  return rule === "release lease";
}

const startsRequest: UnobservedStep = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && (rule === "start" || (rule === "resend" && where === node));
const receivesGrant: UnobservedStep = ({ rule, attempt }, a) => attempt === a && rule === "grant";

/** The client receives a notification about its vote on the node: a grant, or an inquiry for another waiter. */
const receivesMessage: UnobservedStep = ({ rule, attempt, node: where }, a, node) =>
  attempt === a && where === node && (rule === "grant" || rule === "inquiry");

/** The attempt gets a majority, after the lease of another attempt has ended. */
export const becomesHolder: UnobservedStep = (step, a, node) =>
  receivesGrant(step, a, node) || endsLease(step) || timeSteps.has(step.rule);

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
