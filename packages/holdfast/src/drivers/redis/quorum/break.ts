import type { Electorate } from "./electorate.ts";
import type { LockKeys } from "../keys.ts";
import type { QuorumView } from "./view.ts";

/**
 * An operator's force: ends the lease with this number on every node that has it, whatever number that node gave.
 * @returns whether a majority ended it
 */
export async function breakByMajority(
  electorate: Electorate,
  view: QuorumView,
  keys: LockKeys,
  fencingToken: bigint,
  reason: string,
): Promise<boolean> {
  if (view.holder === "" || view.judgeFence(fencingToken) !== "current") {
    return false;
  }
  const candidate = electorate.candidate();
  const broken = await Promise.all(
    view.holding.map(
      ({ voter, facts }) =>
        new Promise<boolean>((resolve) => {
          const { node } = voter;
          node.perform({
            keys,
            candidate,
            args: ["breakGrant", String(facts.first ?? 0), node.channelKind, reason],
            answered: ({ value }) => {
              const [isBroken, more] = value as unknown[];
              if (Number(more) === 1) {
                // Dead waiters are left before the living: a release of what nobody holds passes over them.
                const until = electorate.now() + patienceMs;
                voter.releaser.takeBack({ key: view.key, keys, token: "-", terms: "", until, candidate });
              }
              resolve(Number(isBroken) === 1);
            },
            failed: () => {
              resolve(false);
            },
          });
        }),
    ),
  );
  return broken.filter((isBroken) => isBroken).length >= electorate.majority;
}

const patienceMs = 2_000;
