import type { WireAcquire, WireOwner, WireRenew } from "holdfast/http";
import type { Context } from "hono";
import type { HolderInfo } from "holdfast";

import type { AcquireCommand } from "./acquire-leases.ts";
import type { RouteEnv } from "./context.ts";
import { ServiceError } from "./refusal.ts";

/** The default of the library too. */
const defaultWaitMs = 10_000;

/** Reads the body of an acquire request. @throws {ServiceError} `invalid` */
export function commandOf(c: Context<RouteEnv>, body: WireAcquire): AcquireCommand {
  const {
    key,
    keys,
    mode = "exclusive",
    limit,
    permits = 1,
    ttlMs = 30_000,
    waitMs = defaultWaitMs,
    claimMs,
    attemptId,
  } = body;
  if ((key === undefined) === (keys === undefined)) {
    throw new ServiceError("invalid", "Expected either `key` or `keys`");
  }
  if ((mode === "semaphore") !== (limit !== undefined)) {
    throw new ServiceError("invalid", "Expected `limit` for a semaphore, and for nothing else");
  }
  const { name, quota } = c.var.principal;
  const info = holderInfoOf(body);
  return {
    keys: Array.from(new Set(keys ?? [key as string])).sort(),
    mode,
    limit: limit ?? 1,
    permits,
    ttlMs,
    waitMs,
    claimMs,
    quota,
    // The principal's name is part of the attempt's name, so no principal can join another principal's attempt.
    attemptId: attemptId === undefined ? undefined : `${name.length}:${name}:${attemptId}`,
    info: {
      ...info,
      owner: info.owner ?? `${name.slice(0, 128)}@${c.env.incoming.socket.remoteAddress ?? "unknown"}`,
    },
  };
}

/** The metadata that the body names. */
export function holderInfoOf({ owner, reason, labels }: Omit<WireRenew, "ttlMs">): HolderInfo {
  return {
    ...(owner !== undefined && { owner: ownerOf(owner) }),
    ...(reason !== undefined && { reason }),
    ...(labels !== undefined && { labels }),
  };
}

function ownerOf(owner: WireOwner): string {
  if (typeof owner === "string") {
    return owner;
  }
  const { name, host, pid } = owner;
  return `${name}${host === undefined ? "" : `@${host}`}${pid === undefined ? "" : `:${pid}`}`;
}
