import type { Lease, LeaseLostError } from "holdfast";
import { expect } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { holders, type QuorumNode } from "../../support/quorum-servers.ts";

/** Waits until each of the nodes has the lock with this token. */
export async function awaitHeldOnAll(
  nodes: readonly QuorumNode[],
  key: string,
  token: string | null | undefined,
): Promise<void> {
  expect(token).toBeTypeOf("string");
  await waitUntil(
    async () => (await holders(nodes, key)).every((holder) => holder === token),
    "all nodes have the grant",
  );
}

export function lossReasonOf({ signal }: Lease): string {
  return (signal.reason as LeaseLostError).reason;
}
