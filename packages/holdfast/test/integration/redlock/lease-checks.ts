import type { Lease, LeaseLostError } from "holdfast";
import { expect } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { holders, type QuorumNode } from "../../support/quorum-servers.ts";

/** It is on each of them, by the same token. */
export async function awaitHeldOnAll(
  nodes: readonly QuorumNode[],
  key: string,
  token: string | null | undefined,
): Promise<void> {
  expect(token).toBeTypeOf("string");
  await waitUntil(async () => (await holders(nodes, key)).every((holder) => holder === token), "all have it");
}

export function lossReasonOf({ signal }: Lease): string {
  return (signal.reason as LeaseLostError).reason;
}
