import type { Operation } from "../protocol/operation.ts";
import { clientIdOf } from "../protocol/token.ts";

/** A clone may repeat these operations without harm, because each attempt counts once. */
const latchOperations = new Set(["countDown", "waitLatch", "leaveLatchQueue"]);

/** Whether a token of the operation is one of these client IDs. In an operation of a quorum the token follows the proposed fence. */
export function hasTokenOf(
  clientIds: ReadonlySet<string>,
  { args: [name = "", ...rest] }: Operation,
): boolean {
  const isOf = (arg: string): boolean => clientIds.has(clientIdOf(arg) ?? "");
  return !latchOperations.has(name) && rest.slice(0, 2).some(isOf);
}
