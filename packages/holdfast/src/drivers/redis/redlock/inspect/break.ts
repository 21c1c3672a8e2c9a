import { QuorumError, type NodeVote } from "../../../../errors.ts";
import { messageOf, refusalBy } from "../../server/errors.ts";
import type { LockKeys } from "../../protocol/keys.ts";
import { withCandidate } from "../../protocol/operation.ts";
import type { Electorate } from "../node-set.ts";
import type { QuorumView } from "./lock-view.ts";

/** How long dead waiters are passed over for, ms: after that somebody's poll does it. */
const patienceMs = 2_000;

/**
 * An operator's force: ends the lease with this number on every node that has it, whatever number that node gave.
 * @returns whether it was the present one; rejects with a `QuorumError` where it could not be ended on a majority
 */
export async function breakByMajority(
  electorate: Electorate,
  view: QuorumView,
  keys: LockKeys,
  fencingToken: bigint,
  reason: string,
): Promise<boolean> {
  const grants = view.grantsOf(fencingToken);
  if (!grants) {
    return false;
  }
  const { key } = view;
  const candidate = electorate.candidate();
  const votes = await Promise.all(
    grants.map(
      ({ voter, name: grant }) =>
        new Promise<NodeVote>((resolve) => {
          const { node, name } = voter;
          const failed = (error: unknown): void => {
            resolve({ node: name, vote: "error", latencyMs: null, reason: messageOf(error) });
          };
          node.perform({
            keys,
            args: withCandidate(["breakGrant", grant, node.channelKind, reason], candidate),
            answered: ({ value }) => {
              const [isBroken, more] = value as unknown[];
              if (isBroken === "error") {
                failed(refusalBy(String(more)));
                return;
              }
              if (Number(more) === 1) {
                // Dead waiters are left before the living: a release of what nobody holds passes over them.
                const until = electorate.now() + patienceMs;
                voter.releaser.takeBack({ key, keys, token: "-", terms: "", until, candidate });
              }
              resolve({
                node: name,
                vote: Number(isBroken) === 1 ? "granted" : "held",
                latencyMs: null,
                reason: null,
              });
            },
            failed,
          });
        }),
    ),
  );
  const broken = votes.filter(({ vote }) => vote === "granted").length;
  const unknown = votes.filter(({ vote }) => vote === "error").length;
  if (broken < electorate.majority && broken + unknown >= electorate.majority) {
    throw new QuorumError({ key, votes, outcome: "unknown", retryable: true });
  }
  return broken >= electorate.majority;
}
