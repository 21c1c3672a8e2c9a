import { createRoute, z } from "@hono/zod-openapi";

import { newApp, type App, type ServiceContext } from "./context.ts";
import { wireHold } from "./observation/owners.ts";
import { authorize, canReadAny, hasScope } from "./principal.ts";
import { json, noQuery, problems } from "./responses.ts";
import { fencingToken, keySchema } from "./schemas.ts";

const kind = z.enum(["mutex", "read-write", "semaphore", "latch"]);
const holdSchema = z.object({
  key: keySchema,
  kind,
  mode: z.enum(["read", "write"]).optional(),
  permits: z.number().optional(),
  owner: z.string().optional(),
  fencingToken: fencingToken.optional(),
  since: z.number().optional(),
  heldMs: z.number().optional(),
  ttlMs: z.number().optional(),
  renewedMs: z
    .number()
    .optional()
    .openapi({ description: "The time since the last confirmed renewal, or since the grant" }),
  marginMs: z
    .number()
    .optional()
    .openapi({ description: "The time until the process gives the lease up without a further renewal" }),
  remainingMs: z.number().optional().openapi({ description: "Of a holder without an answer: its TTL" }),
  labels: z.record(z.string(), z.string()).optional(),
  reason: z.string().optional(),
  localWaiters: z.number().openapi({ description: "Callers that wait in the memory of the process" }),
});
const waitSchema = z.object({ key: keySchema, kind, count: z.number(), oldestMs: z.number() });
const processSchema = z
  .object({
    owner: z.string(),
    host: z.string().optional(),
    pid: z.number().optional(),
    version: z.string().optional(),
    instance: z.number().optional(),
    answered: z.boolean().openapi({ description: "false: no answer in time, or no client of this library" }),
    seenMs: z.number().optional().openapi({ description: "The time since the last sign of life" }),
    lagMs: z.number().optional().openapi({ description: "How late a timer of the process ran" }),
    holds: z.array(holdSchema).openapi({ description: "The first of `holdCount`" }),
    holdCount: z.number(),
    waits: z.array(waitSchema).openapi({ description: "The longest of `waitCount`" }),
    waitCount: z.number(),
  })
  .openapi("Process");
const listed = {
  complete: z.boolean().openapi({ description: "Whether every registered process has answered" }),
  problem: z.string().nullable().openapi({ description: "Why processes could not be asked" }),
  asOf: z.number(),
};
const ownersSchema = z.object({ owners: z.array(processSchema), ...listed }).openapi("Owners");
const processesSchema = z
  .object({ processes: z.array(processSchema), scope: z.enum(["engine", "process"]), ...listed })
  .openapi("Processes");
const observed = {
  knownSince: z.number().openapi({
    description:
      "Since when this instance has watched the locks. It stops 5 minutes after the last request, and forgets",
  }),
  asOf: z.number().openapi({ description: "The time of the reply, by the clock of this instance" }),
};
const historySchema = z
  .object({
    ...observed,
    lostLastHour: z.number().openapi({
      description: "Holds that expired in the last hour, as far as this instance has seen, at most 1 000",
    }),
    holds: z.array(
      z.object({
        key: keySchema,
        owner: z.string(),
        fencingToken: fencingToken.optional(),
        since: z.number(),
        until: z.number().nullable(),
        end: z
          .enum(["released", "expired", "broken", "unknown"])
          .optional()
          .openapi({ description: "Absent: the hold lasts. unknown: released or expired" }),
        break: z
          .object({
            principal: z.string().openapi({ description: "The operator" }),
            reason: z.string(),
          })
          .optional()
          .openapi({
            description: "Of a broken hold. Absent: the engine keeps no audit, or no longer has the record",
          }),
        reason: z.string().optional(),
      }),
    ),
  })
  .openapi("History");
const distribution = z.object({ count: z.number(), p50Ms: z.number(), p99Ms: z.number() });
const contentionSchema = z
  .object({
    ...observed,
    keys: z.array(
      z.object({
        key: keySchema,
        waiting: z.number(),
        oldestMs: z.number().optional(),
        waits: distribution,
        holds: distribution,
        recent: z
          .array(z.number())
          .openapi({ description: "The most waiters in each 10 s of the last 10 minutes" }),
      }),
    ),
  })
  .openapi("Contention");
const holdTimesSchema = z
  .object({
    ...observed,
    keys: z.array(z.object({ key: keySchema, count: z.number(), p50Ms: z.number(), p95Ms: z.number() })),
  })
  .openapi("HoldTimes");

/** The processes that use the locks, and the observations of this instance. */
export function observationRoutes(context: ServiceContext): App {
  const app = newApp();
  ownersRoute(app, context);
  processesRoute(app, context);
  historyRoute(app, context);
  holdTimesRoute(app, context);
  contentionRoute(app, context);
  return app;
}

function ownersRoute(app: App, { owners }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/owners",
      operationId: "listOwners",
      tags: ["locks"],
      summary: "The owners of locks: the processes with this library, and the other holders",
      request: { query: noQuery },
      responses: {
        200: json(ownersSchema, "The owners, with the keys that the client may read"),
        ...problems,
      },
    }),
    async (c) => {
      const { principal } = c.var;
      const isOfAll = canReadAny(principal);
      const list = await owners.owners((key) => hasScope(principal, "lock:read", key));
      const shown = list.owners.filter(({ holds, waits }) => isOfAll || holds.length + waits.length > 0);
      const counted = shown.map((owner) =>
        isOfAll ? owner : { ...owner, holdCount: owner.holds.length, waitCount: owner.waits.length },
      );
      return c.json({ ...list, owners: counted }, 200);
    },
  );
}

function processesRoute(app: App, { owners }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/processes",
      operationId: "listProcesses",
      tags: ["locks"],
      summary: "The processes with this library, or those that hold or wait for one key",
      request: {
        query: z.strictObject({
          key: keySchema.optional(),
          timeoutMs: z.coerce.number().int().min(10).max(5_000).optional(),
        }),
      },
      responses: { 200: json(processesSchema, "The processes"), ...problems },
    }),
    async (c) => {
      const { principal } = c.var;
      const { key, timeoutMs } = c.req.valid("query");
      authorize(principal, "lock:read", [key ?? ""]);
      const list = await owners.processes(key, timeoutMs);
      const isOfAll = canReadAny(principal); // a process without an answer may use other keys only
      const concerned = list.processes.filter(
        ({ holdCount, waitCount, answered }) =>
          key === undefined || (!answered && isOfAll) || holdCount + waitCount > 0,
      );
      const processes = concerned.map((process) => ({ ...process, holds: process.holds.map(wireHold) }));
      return c.json({ ...list, processes }, 200);
    },
  );
}

function historyRoute(app: App, { observation }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/history",
      operationId: "getHistory",
      tags: ["locks"],
      summary: "The last 50 holds of a lock that this instance has seen; without `key` the last 50 ends",
      request: { query: z.strictObject({ key: keySchema.optional() }) },
      responses: { 200: json(historySchema, "The holds"), ...problems },
    }),
    async (c) => {
      const { principal } = c.var;
      const { key } = c.req.valid("query");
      if (key !== undefined) {
        authorize(principal, "lock:read", [key]);
      }
      await observation.askForEnds();
      const isShown = (each: string): boolean =>
        key === undefined ? hasScope(principal, "lock:read", each) : each === key;
      const holds = key === undefined ? observation.ends(isShown) : observation.history(key);
      const lostLastHour = observation.lostInLastHour(isShown);
      return c.json({ ...timesOf(observation), lostLastHour, holds }, 200);
    },
  );
}

function holdTimesRoute(app: App, { observation }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/hold-times",
      operationId: "getHoldTimes",
      tags: ["locks"],
      summary: "How long the released holds of a key lasted, for keys with at least 5 of them in the history",
      request: { query: noQuery },
      responses: { 200: json(holdTimesSchema, "The keys that the client may read"), ...problems },
    }),
    async (c) => {
      const { principal } = c.var;
      await observation.askForEnds();
      const keys = observation.holdTimes((key) => hasScope(principal, "lock:read", key));
      return c.json({ ...timesOf(observation), keys }, 200);
    },
  );
}

function contentionRoute(app: App, { observation }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/contention",
      operationId: "getContention",
      tags: ["locks"],
      summary: "The keys with the most waiting time in the last 10 minutes, at most 20",
      request: { query: noQuery },
      responses: { 200: json(contentionSchema, "The keys that the client may read"), ...problems },
    }),
    async (c) => {
      const { principal } = c.var;
      await observation.ask();
      const keys = observation.contention((key) => hasScope(principal, "lock:read", key));
      return c.json({ ...timesOf(observation), keys }, 200);
    },
  );
}

function timesOf({ knownSince }: ServiceContext["observation"]): { knownSince: number; asOf: number } {
  return { knownSince, asOf: Date.now() };
}
