import type { Lease } from "holdfast";

import { Exit, exitCodes } from "../exit.ts";

/**
 * The environment of the command: the own environment (with `TRACEPARENT`, if set) and the lease. `HOLDFAST_LEASE_VALID_UNTIL` is the
 * end as of the start, in milliseconds since the epoch. Later renewals do not change the variable.
 */
export function environmentOf(lease: Lease, outer: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return {
    ...outer,
    HOLDFAST_LOCK_HELD: "1",
    HOLDFAST_LOCK_KEY: lease.key,
    HOLDFAST_LOCK_KEYS: JSON.stringify([...new Set([...heldAround(outer), ...lease.keys])]),
    HOLDFAST_FENCING_TOKEN: lease.fencingToken.toString(),
    HOLDFAST_FENCING_TOKENS: JSON.stringify(
      Object.fromEntries([...lease.fencingTokens].map(([key, token]) => [key, token.toString()])),
    ),
    HOLDFAST_LEASE_VALID_UNTIL: String(Math.floor(Date.now() + lease.remainingMs())),
  };
}

/**
 * Refuses a `run` inside a `run` of the same key, because the inner one would wait for itself.
 * @throws {Exit} 64
 */
export function refuseNested(keys: readonly string[], outer: NodeJS.ProcessEnv = process.env): void {
  const key = keys.find((one) => heldAround(outer).includes(one));
  if (key !== undefined) {
    throw new Exit(
      exitCodes.usage,
      `self-deadlock: this process already runs under the lock "${key}" and would wait for itself; if that lock is on another engine, unset HOLDFAST_LOCK_HELD`,
    );
  }
}

function heldAround(outer: NodeJS.ProcessEnv): readonly string[] {
  if (outer["HOLDFAST_LOCK_HELD"] !== "1") {
    return [];
  }
  const innermost = outer["HOLDFAST_LOCK_KEY"];
  return [...listed(outer["HOLDFAST_LOCK_KEYS"]), ...(innermost === undefined ? [] : [innermost])];
}

function listed(text: string | undefined): readonly string[] {
  try {
    const keys: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(keys) ? keys.filter((key) => typeof key === "string") : [];
  } catch {
    return [];
  }
}
