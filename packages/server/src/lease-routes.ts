import { createRoute, z } from "@hono/zod-openapi";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { isLockError, type HolderInfo } from "holdfast";
import type { LeaseParts, WireAcquire, WireLease, WireProblem } from "holdfast/http";
import type { Context } from "hono";

import { body, json, noQuery, problems } from "./responses.ts";
import { ClientDisconnected, type Connection } from "./connection.ts";
import { EventStream } from "./event-stream.ts";
import { holdWhileConnected } from "./held-by-connection.ts";
import { newApp, type App, type RouteEnv, type ServiceContext } from "./context.ts";
import { problemOf } from "./problems.ts";
import { authorize } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import { commandOf, holderInfoOf } from "./acquire-command.ts";
import type { AcquireCommand, Requester } from "./acquire-leases.ts";
import {
  acquireSchema,
  leaseIdParam,
  leaseSchema,
  problemSchema,
  releasedSchema,
  renewManySchema,
  renewSchema,
} from "./schemas.ts";

/** The routes under `/v1/leases`: acquire, renew, release, downgrade. */
export function leaseRoutes(context: ServiceContext): App {
  const app = newApp();
  acquireRoute(app, context);
  renewRoute(app, context);
  releaseRoute(app, context);
  return app;
}

/** The reply to a request with `Accept: text/event-stream`, or with `hold=connection`. */
const eventStream = {
  description:
    "Server-sent events, the data of each as JSON. `waiting`: the request is in the queue (`keys`). `granted`: a `Lease`. " +
    "`problem`: a `Problem`, the end. With `hold=connection` also `lost`: a `Problem`, and `draining`: the service ends, and the " +
    "lock stays held for `validMs`",
  content: { "text/event-stream": { schema: z.string() } },
};

function acquireRoute(app: App, context: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/leases",
      operationId: "acquireLease",
      tags: ["leases"],
      summary:
        "Acquire: try, wait for the answer, or follow the wait as events (`Accept: text/event-stream`)",
      request: {
        body: body(acquireSchema),
        query: z.strictObject({
          hold: z.literal("connection").optional().openapi({
            description:
              "The lock is held while the connection is open: the service renews it, and releases it at the close. A stream",
          }),
        }),
      },
      responses: { 200: eventStream, 201: json(leaseSchema, "The lease"), ...problems },
    }),
    (c) => acquire(context, c, c.req.valid("json")) as Promise<never>, // onError sends problems, and streams have no type
  );
}

function renewRoute(app: App, context: ServiceContext): void {
  const { leases } = context;
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/leases/{leaseId}",
      operationId: "getLease",
      tags: ["leases"],
      summary: "The state of a lease, without an extension",
      request: { params: leaseIdParam, query: noQuery },
      responses: { 200: json(leaseSchema, "It is"), ...problems },
    }),
    async (c) =>
      c.json(await leases.findLease(await partsOf(context, c, c.req.valid("param").leaseId)), 200, noStore),
  );

  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/leases/{leaseId}/renew",
      operationId: "renewLease",
      tags: ["leases"],
      summary: "Extend a lease to `ttlMs` from now, by default the lease's own TTL",
      request: { params: leaseIdParam, query: noQuery, body: body(renewSchema) },
      responses: { 200: json(leaseSchema, "The extended lease"), ...problems },
    }),
    async (c) => {
      const parts = await partsOf(context, c, c.req.valid("param").leaseId);
      const { ttlMs = parts.ttlMs, ...values } = c.req.valid("json");
      const info = Object.keys(values).length > 0 ? holderInfoOf(values) : undefined;
      return c.json(await renewed(context, c, parts, ttlMs, info), 200, noStore);
    },
  );

  renewManyRoute(app, context);
}

function releaseRoute(app: App, context: ServiceContext): void {
  const { leases } = context;
  app.openapi(
    createRoute({
      method: "delete",
      path: "/v1/leases/{leaseId}",
      operationId: "releaseLease",
      tags: ["leases"],
      summary: "Release it",
      request: { params: leaseIdParam, query: noQuery },
      responses: { 200: json(releasedSchema, "The lock is no longer held by this lease"), ...problems },
    }),
    async (c) => {
      const { quota } = c.var.principal;
      const parts = await partsOf(context, c, c.req.valid("param").leaseId);
      if (!leases.isKnown(parts)) {
        await context.rate?.admitDoubtful(quota);
      }
      const released = await leases.release(parts);
      if (!released) {
        await context.rate?.countInVain(quota);
      }
      return c.json({ released }, 200, noStore);
    },
  );

  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/leases/{leaseId}/downgrade",
      operationId: "downgradeLease",
      tags: ["leases"],
      summary: "Downgrade a write lease to a read lease",
      request: { params: leaseIdParam, query: noQuery },
      responses: {
        200: json(releasedSchema, "The lease is a read lease now; `released` false: the lease had been lost"),
        ...problems,
      },
    }),
    async (c) =>
      c.json(
        { released: await leases.downgrade(await partsOf(context, c, c.req.valid("param").leaseId)) },
        200,
        noStore,
      ),
  );
}

function renewManyRoute(app: App, context: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/renew",
      operationId: "renewLeases",
      tags: ["leases"],
      summary: "Extend many leases; the response has one result for each, in the same order",
      request: { query: noQuery, body: body(renewManySchema) },
      responses: {
        200: json(
          z.object({ leases: z.array(z.union([leaseSchema, problemSchema])) }),
          "A lease, or a problem, for each",
        ),
        ...problems,
      },
    }),
    async (c) => {
      const body = c.req.valid("json").leases;
      const renewals = new Map<string, Promise<WireLease | WireProblem>>();
      let keys = 0;
      const lanes: Promise<unknown>[] = [];
      let unknown = 0;
      const renew = async (leaseId: string, ttlMs: number | undefined): Promise<WireLease> => {
        const parts = await partsOf(context, c, leaseId);
        keys += parts.grants.length;
        if (keys > maxRenewed) {
          throw new ServiceError("invalid", `Expected one request to renew at most ${maxRenewed} keys`);
        }
        const send = (): Promise<WireLease> => renewed(context, c, parts, ttlMs ?? parts.ttlMs);
        if (context.leases.isKnown(parts)) {
          return send();
        }
        // Leases that other instances granted, or that have ended, are renewed a few at a time, so that those in vain are limited.
        const lane = (unknown += 1) % maxUnknown;
        const own = (lanes[lane] ?? Promise.resolve()).then(send);
        lanes[lane] = own.catch(() => undefined);
        return own;
      };
      const refused = (error: unknown): WireProblem => {
        const problem = problemOf(error);
        context.refusals.report(c, problem);
        return problem;
      };
      const results = await Promise.all(
        body.map(({ leaseId, ttlMs }) => {
          const renewal = renewals.get(leaseId) ?? renew(leaseId, ttlMs).catch(refused);
          renewals.set(leaseId, renewal);
          return renewal;
        }),
      );
      return c.json({ leases: results }, 200, noStore);
    },
  );
}

/** The limit of keys in one renewal request. */
const maxRenewed = 1_000;
/** How many leases that this instance does not know are renewed at once. */
const maxUnknown = 20;

const noStore = { "cache-control": "no-store" };

function acquire(context: ServiceContext, c: Context<RouteEnv>, body: WireAcquire): Promise<Response> {
  if (context.draining.aborted) {
    throw context.draining.reason as Error;
  }
  const command = commandOf(c, body);
  authorize(c.var.principal, "lock:acquire", command.keys);
  const wantsEvents = c.req.header("accept")?.includes("text/event-stream") === true;
  const connection = context.connections.open(c);
  if (c.req.query("hold") === "connection") {
    if (command.attemptId !== undefined) {
      throw new ServiceError(
        "invalid",
        "Expected no `attemptId` with `hold=connection`, because the lock ends with the connection",
      );
    }
    return holdWhileConnected(context, c, command, connection);
  }
  return wantsEvents
    ? acquireWithEvents(context, c, command, connection)
    : acquireWithResponse(context, c, command, connection);
}

/** Delays the response for `waitMs`, at most `maxWaitMs`. */
async function acquireWithResponse(
  context: ServiceContext,
  c: Context<RouteEnv>,
  command: AcquireCommand,
  connection: Connection,
): Promise<Response> {
  const waitMs = Math.min(command.waitMs, context.maxWaitMs);
  const requester = { closed: connection.closed, onQueued: () => undefined };
  const lease = await leaseFor(context, { ...command, waitMs }, requester, connection);
  return c.json(lease, 201, noStore);
}

async function acquireWithEvents(
  context: ServiceContext,
  c: Context<RouteEnv>,
  command: AcquireCommand,
  connection: Connection,
): Promise<Response> {
  let stream: EventStream | undefined;
  const open = (): EventStream => (stream ??= new EventStream(c.env.outgoing));
  try {
    const requester: Requester = {
      get closed() {
        return connection.closed;
      },
      onQueued: () => {
        open()
          .send("waiting", { keys: command.keys })
          .catch(() => undefined); // the wait reports its own failure
      },
    };
    const lease = await leaseFor(context, command, requester, connection);
    await open().send("granted", lease);
  } catch (error) {
    if (!(error instanceof ClientDisconnected)) {
      const problem = problemOf(error);
      context.refusals.report(c, problem);
      await open()
        .send("problem", problem)
        .catch(() => undefined);
    }
  }
  stream?.end();
  return RESPONSE_ALREADY_SENT;
}

/** Releases the lease if the response does not reach the client. A named attempt's lease is released if no response reached a client. */
async function leaseFor(
  context: ServiceContext,
  command: AcquireCommand,
  requester: Requester,
  connection: Connection,
): Promise<WireLease> {
  const { attemptId, keys, mode, permits } = command;
  if (attemptId !== undefined) {
    return context.attempts.acquire(
      JSON.stringify([attemptId, mode, permits, ...keys]),
      command,
      requester,
      connection,
    );
  }
  const lease = await context.leases.acquire(command, requester);
  connection.onUndelivered(() => {
    context.leases.releaseUndelivered(context.leaseIds.read(lease.leaseId));
  });
  return lease;
}

/** Renews a lease. A renewal in vain is counted: of a lease that has ended, or whose last renewal was a moment ago. */
async function renewed(
  { leases, rate }: ServiceContext,
  c: Context<RouteEnv>,
  parts: LeaseParts,
  ttlMs: number,
  info?: HolderInfo,
): Promise<WireLease> {
  const { quota } = c.var.principal;
  if (leases.isRenewedEarly(parts)) {
    await rate?.countEarly(quota);
  } else if (!leases.isKnown(parts)) {
    await rate?.admitDoubtful(quota);
  }
  try {
    return await leases.renew(parts, ttlMs, quota, info);
  } catch (error) {
    if (isLockError(error, "lease-lost")) {
      await rate?.countInVain(quota);
    }
    throw error;
  }
}

/**
 * A renewal or release with a bad lease id is in vain.
 * @throws {ServiceError} for a lease id of another service, or with a key that the principal may not acquire
 */
async function partsOf(
  { leaseIds, rate }: ServiceContext,
  c: Context<RouteEnv>,
  leaseId: string,
): Promise<LeaseParts> {
  const { principal } = c.var;
  try {
    const parts = leaseIds.read(leaseId);
    authorize(principal, "lock:acquire", parts.grants.map(({ key }) => key)); // prettier-ignore
    return parts;
  } catch (error) {
    await rate?.admitDoubtful(principal.quota);
    await rate?.countInVain(principal.quota);
    throw error;
  }
}
