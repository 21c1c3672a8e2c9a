import { lockState, type LockStateData, type LockState } from "../../lock-state.ts";
import { holderOf } from "./problems.ts";
import type { WireLock } from "./wire.ts";

/** The library's state of a lock, from the service's JSON. */
export function lockStateOf(lock: WireLock): LockState {
  const data: LockStateData = {
    ...lock,
    limit: lock.limit ?? Infinity,
    fencingToken: lock.fencingToken === null ? null : BigInt(lock.fencingToken),
    holders: lock.holders.map((holder) => holderOf(holder) ?? { owner: "unknown" }),
    nodes: lock.nodes.map(({ fencingToken, ...node }) =>
      fencingToken === undefined ? node : { ...node, fencingToken: BigInt(fencingToken) },
    ),
  };
  return lockState(data);
}
