import { createRoute, z } from "@hono/zod-openapi";
import type { LockState } from "holdfast";
import type { WireLock } from "holdfast/http";

import { body, json, noQuery, problems } from "./responses.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import { authorize, hasScope } from "./principal.ts";
import { fencingToken, holderSchema, keySchema } from "./schemas.ts";

const waiterSchema = z
  .object({
    owner: z.string(),
    position: z.number(),
    since: z.number().optional().openapi({ description: "The start of the wait, ms since 1970" }),
    waitedMs: z
      .number()
      .optional()
      .openapi({ description: "How long it has waited, by the engine's clock; absent: not known" }),
  })
  .openapi("Waiter");

const lockSchema = z
  .object({
    key: keySchema,
    kind: z.enum(["mutex", "read-write", "semaphore", "latch"]),
    limit: z
      .number()
      .nullable()
      .openapi({ description: "The number of permits; null: any number of readers" }),
    remaining: z.number().optional(),
    holders: z.array(holderSchema),
    waiters: z.array(waiterSchema).openapi({ description: "The first 100, in order" }),
    waiterCount: z
      .number()
      .openapi({ description: "Waiting callers: the engine's waiters and the holder's `localWaiters`" }),
    oldestWaitMs: z
      .number()
      .optional()
      .openapi({ description: "The longest known wait; absent: no caller waits, or no wait is known" }),
    remainingMs: z.number().nullable(),
    fencingToken: fencingToken.nullable(),
    nodes: z.array(z.object({ node: z.string(), held: z.boolean().nullable() })),
  })
  .openapi("Lock");

const listQuery = z.strictObject({
  prefix: z.string().max(512).optional(),
  state: z.enum(["held", "contended"]).optional().openapi({ description: "contended: held, with waiters" }),
  owner: z.string().optional().openapi({ description: "Only locks of this owner" }),
  limit: z.coerce.number().int().min(1).max(1000).optional(),
  cursor: z.string().max(1024).optional(),
});

/** The state of locks, and the operations of an operator. */
export function lockRoutes(context: ServiceContext): App {
  const app = newApp();
  listRoute(app, context);
  inspectRoute(app, context);
  setLimitRoute(app, context);
  checkFenceRoute(app, context);
  return app;
}

function listRoute(app: App, { engine: { locks }, connections }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/locks",
      operationId: "listLocks",
      tags: ["locks"],
      summary:
        "Held locks, in pages. A page may be shorter than `limit`, or empty. The last page has `cursor` null",
      request: { query: listQuery },
      responses: {
        200: json(z.object({ locks: z.array(lockSchema), cursor: z.string().nullable() }), "A page"),
        ...problems,
      },
    }),
    async (c) => {
      const { state, owner, ...page } = c.req.valid("query");
      authorize(c.var.principal, "lock:read", [page.prefix ?? ""]);
      const listed = await locks.admin.list({ ...page, signal: connections.open(c).closed });
      const shown = listed.locks.filter(
        (lock) =>
          hasScope(c.var.principal, "lock:read", lock.key) && // a second line, in case an engine lists other keys than were asked for
          (state !== "contended" || lock.waiterCount > 0) &&
          (owner === undefined || lock.holders.some((holder) => holder.owner === owner)),
      );
      return c.json({ locks: shown.map(wireLock), cursor: listed.cursor }, 200);
    },
  );
}

function inspectRoute(app: App, { engine, waitLimits }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/lock",
      operationId: "inspectLock",
      tags: ["locks"],
      summary: "One lock: its holders, and its waiters in order",
      request: { query: z.strictObject({ key: keySchema }) },
      responses: { 200: json(lockSchema, "The state of the lock, held or free"), ...problems },
    }),
    async (c) => {
      const { key } = c.req.valid("query");
      authorize(c.var.principal, "lock:read", [key]);
      return c.json(waitLimits.named(wireLock(await engine.locks.inspect(key)), engine.owner), 200);
    },
  );
}

function setLimitRoute(app: App, { engine: { locks } }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/lock/limit",
      operationId: "setLimit",
      tags: ["locks"],
      summary: "Set the limit of a semaphore; present holders keep their permits",
      request: { query: noQuery, body: body(z.strictObject({ key: keySchema, limit: z.number().int() })) },
      responses: { 200: json(z.object({ limit: z.number() }), "The new limit"), ...problems },
    }),
    async (c) => {
      const { key, limit } = c.req.valid("json");
      authorize(c.var.principal, "lock:acquire", [key]);
      await locks.semaphore(key, { limit }).setLimit(limit);
      return c.json({ limit }, 200);
    },
  );
}

function checkFenceRoute(app: App, { engine: { locks }, metrics }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/fence/check",
      operationId: "checkFence",
      tags: ["locks"],
      summary:
        "Whether the lease with this fencing token holds the key now: `current` if it does, `stale` if it does not. " +
        "`unknown`: the engine cannot say, as another process may hand the lease on in memory",
      request: { query: noQuery, body: body(z.strictObject({ key: keySchema, fencingToken })) },
      responses: {
        200: json(z.object({ fence: z.enum(["current", "stale", "unknown"]) }), "The answer"),
        ...problems,
      },
    }),
    async (c) => {
      const { key, fencingToken: seen } = c.req.valid("json");
      authorize(c.var.principal, "lock:read", [key]);
      const fence = await locks.checkFence(key, BigInt(seen));
      metrics.fenceChecked(key, fence);
      return c.json({ fence }, 200);
    },
  );
}

/** The wire form: fencing tokens as text, and an infinite limit as null. */
export function wireLock(state: LockState): WireLock {
  return state.toJSON() as WireLock;
}
