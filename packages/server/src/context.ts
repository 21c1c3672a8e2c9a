import type { HttpBindings } from "@hono/node-server";
import { OpenAPIHono } from "@hono/zod-openapi";

import type { AttemptCache } from "./attempts.ts";
import type { Connections } from "./connection.ts";
import type { Engine } from "./engine.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { RateLimit } from "./limits.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./meter.ts";
import type { Principal } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import type { PrincipalLimit, WaitLimits } from "./waits.ts";

/** The context of a request: its connection, log and principal. */
export interface RouteEnv {
  Bindings: HttpBindings;
  Variables: { principal: Principal };
}

/** The state that all routes share. */
export interface ServiceContext {
  readonly engine: Engine;
  readonly leases: Leases;
  readonly leaseIds: LeaseIds;
  /** Undefined: no rate limit. */
  readonly rate: RateLimit | undefined;
  readonly attempts: AttemptCache;
  readonly waitLimits: WaitLimits;
  /** The open event streams. Each stream polls the engine, so their number is limited. */
  readonly streams: PrincipalLimit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly connections: Connections;
  /** Aborted when the service drains. The reason is the response to waiting requests. */
  readonly draining: AbortSignal;
  /** The longest wait for one response, ms. */
  readonly maxWaitMs: number;
}

export type App = OpenAPIHono<RouteEnv>;

/** A router that validates requests. A request that fails the validation gets `invalid` with the path of the bad value. */
export function newApp(): App {
  return new OpenAPIHono<RouteEnv>({
    defaultHook: (result) => {
      if (!result.success) {
        const { path, message } = result.error.issues[0] ?? { path: [], message: "the value is invalid" };
        throw new ServiceError("invalid", path.length > 0 ? `${path.join(".")}: ${message}` : message);
      }
    },
  });
}
