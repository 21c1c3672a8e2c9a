import type { HttpBindings } from "@hono/node-server";
import { OpenAPIHono, type z } from "@hono/zod-openapi";
import { LockError } from "holdfast";

import type { AttemptCache } from "./attempts.ts";
import type { Connections } from "./connection.ts";
import type { Engine } from "./engine.ts";
import type { LeaseIds } from "./lease-ids.ts";
import type { Leases } from "./leases.ts";
import type { Finding } from "./doctor/finding.ts";
import type { Limits, RateLimit } from "./limits.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./meter.ts";
import type { LockObservation } from "./observation/lock-observation.ts";
import type { OwnerDirectory } from "./observation/owners.ts";
import type { ServiceOptions } from "./options.ts";
import type { Principal } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import type { RefusalLog } from "./refusal-log.ts";
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
  /** The limits of one principal. */
  readonly limits: Limits;
  readonly attempts: AttemptCache;
  readonly waitLimits: WaitLimits;
  /** The open event streams. Each stream polls the engine, so their number is limited. */
  readonly streams: PrincipalLimit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly refusals: RefusalLog;
  readonly connections: Connections;
  /** Aborted when the service drains. The reason is the response to waiting requests. */
  readonly draining: AbortSignal;
  /** The longest wait for one response, ms. */
  readonly maxWaitMs: number;
  /** Refuses every request that changes a lock. */
  readonly readOnly: boolean;
  readonly hasAuthentication: boolean;
  /** The checks of the engine. */
  readonly doctor: NonNullable<ServiceOptions["doctor"]>;
  /** The risks of the present settings. */
  readonly warnings: () => readonly Finding[];
  readonly observation: LockObservation;
  readonly owners: OwnerDirectory;
}

export type App = OpenAPIHono<RouteEnv>;

/** A router that validates requests. A request that fails the validation gets `invalid` with the path of the bad value. */
export function newApp(): App {
  return new OpenAPIHono<RouteEnv>({
    defaultHook: (result) => {
      if (!result.success) {
        const [issue] = result.error.issues;
        const message = messageOf(issue, result.target === "query");
        const isOfKey = issue?.path[0] === "key" || issue?.path[0] === "keys";
        throw isOfKey
          ? new LockError(message, { code: "invalid-key" })
          : new ServiceError("invalid", message);
      }
    },
  });
}

function messageOf(issue: z.core.$ZodIssue | undefined, isQuery: boolean): string {
  if (issue === undefined) {
    return "The request is invalid";
  }
  const path = issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  return issue.code === "unrecognized_keys"
    ? `${path}unknown ${isQuery ? "query parameter" : "field"} ${issue.keys.map((name) => JSON.stringify(name)).join(", ")}`
    : `${path}${issue.message}`;
}
