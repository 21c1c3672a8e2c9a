import { createRoute, z } from "@hono/zod-openapi";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { LeaseParts, WireAcquire, WireLease, WireOwner, WireRenew } from "holdfast/http";
import type { Context } from "hono";
import type { HolderInfo } from "holdfast";

import { body, json, problems } from "./responses.ts";
import { ClientDisconnected, type Connection } from "./connection.ts";
import { EventStream } from "./event-stream.ts";
import { holdWhileConnected } from "./held-by-connection.ts";
import { newApp, type App, type RouteEnv, type ServiceContext } from "./context.ts";
import { problemOf } from "./problems.ts";
import { authorize } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import type { AcquireCommand, Requester } from "./acquire-leases.ts";
import {
  acquireSchema,
  leaseIdParam,
  leaseSchema,
  releasedSchema,
  renewManySchema,
  renewSchema,
} from "./schemas.ts";

/** `POST /v1/leases` and what becomes of a lease. */
export function leaseRoutes(context: ServiceContext): App {
  const app = newApp();
  acquireRoute(app, context);
  renewRoute(app, context);
  releaseRoute(app, context);
  return app;
}

function acquireRoute(app: App, context: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/leases",
      summary:
        "Acquire: try, wait for the answer, or follow the wait as events (`Accept: text/event-stream`)",
      request: {
        body: body(acquireSchema),
        query: z.object({
          hold: z.literal("connection").optional().openapi({
            description:
              "It is held for as long as the connection is: renewed here, released when it closes. A stream",
          }),
        }),
      },
      responses: { 201: json(leaseSchema, "The lease"), ...problems },
    }),
    (c) => acquire(context, c, c.req.valid("json")) as Promise<never>, // problems are told by onError, streams have no type
  );
}

function renewRoute(app: App, context: ServiceContext): void {
  const { leases } = context;
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/leases/{leaseId}",
      summary: "Whether it is still held; never extends it",
      request: { params: leaseIdParam },
      responses: { 200: json(leaseSchema, "It is"), ...problems },
    }),
    async (c) =>
      c.json(await leases.findLease(await partsOf(context, c, c.req.valid("param").leaseId)), 200, noStore),
  );

  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/leases/{leaseId}/renew",
      summary: "Prolong it to `ttlMs` from now, by default its own",
      request: { params: leaseIdParam, body: body(renewSchema) },
      responses: { 200: json(leaseSchema, "It goes on"), ...problems },
    }),
    async (c) => {
      const parts = await partsOf(context, c, c.req.valid("param").leaseId);
      const { ttlMs = parts.ttlMs, ...values } = c.req.valid("json");
      const info = Object.keys(values).length > 0 ? holderInfoOf(values) : undefined;
      return c.json(await leases.renew(parts, ttlMs, info), 200, noStore);
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
      summary: "Release it",
      request: { params: leaseIdParam },
      responses: { 200: json(releasedSchema, "It is not held any more"), ...problems },
    }),
    async (c) =>
      c.json(
        { released: await leases.release(await partsOf(context, c, c.req.valid("param").leaseId)) },
        200,
        noStore,
      ),
  );

  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/leases/{leaseId}/downgrade",
      summary: "Of a writer: go on as a reader",
      request: { params: leaseIdParam },
      responses: {
        200: json(releasedSchema, "It reads now; `released` false: it had been lost"),
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
      summary: "Prolong many leases; each has an answer of its own, in their order",
      request: { body: body(renewManySchema) },
      responses: { 200: { description: "A lease, or a problem, for each" }, ...problems },
    }),
    async (c) => {
      const body = c.req.valid("json").leases;
      let grants = 0;
      const results = await Promise.all(
        body.map(async ({ leaseId, ttlMs }) => {
          try {
            const parts = await partsOf(context, c, leaseId);
            grants += parts.grants.length;
            if (grants > maxRenewed) {
              throw new ServiceError(
                "invalid",
                `Expected one request to renew ${maxRenewed} keys at the most`,
              );
            }
            return await context.leases.renew(parts, ttlMs ?? parts.ttlMs);
          } catch (error) {
            return problemOf(error);
          }
        }),
      );
      return c.json({ leases: results }, 200, noStore);
    },
  );
}

/** Keys that one request may renew. */
const maxRenewed = 1_000;

const noStore = { "cache-control": "no-store" };

function acquire(context: ServiceContext, c: Context<RouteEnv>, body: WireAcquire): Promise<Response> {
  if (context.draining.aborted) {
    throw context.draining.reason as Error;
  }
  const command = commandOf(c, body);
  authorize(c.var.principal, "lock:acquire", command.keys);
  const wantsEvents = c.req.header("accept")?.includes("text/event-stream") === true;
  const connection = context.connections.open(c.env.outgoing);
  if (c.req.query("hold") === "connection") {
    if (command.attemptId !== undefined) {
      throw new ServiceError("invalid", "What is held by a connection ends with it: its attempt has no name");
    }
    return holdWhileConnected(context.leases, command, connection, c.env.outgoing);
  }
  return wantsEvents
    ? acquireWithEvents(context, c, command, connection)
    : acquireWithResponse(context, c, command, connection);
}

/** Holds the answer back for as long as the caller, and we, want to wait. */
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
          .catch(() => undefined); // the wait ends by itself
      },
    };
    const lease = await leaseFor(context, command, requester, connection);
    await open().send("granted", lease);
  } catch (error) {
    if (!(error instanceof ClientDisconnected)) {
      await open()
        .send("problem", problemOf(error))
        .catch(() => undefined);
    }
  }
  stream?.end();
  return RESPONSE_ALREADY_SENT;
}

/** What does not reach its client is given back; that of a named attempt where it reached none of its requests. */
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

/** @throws {ServiceError} */
function commandOf(c: Context<RouteEnv>, body: WireAcquire): AcquireCommand {
  const {
    key,
    keys,
    mode = "exclusive",
    limit,
    permits = 1,
    ttlMs = 30_000,
    waitMs = 0,
    claimMs,
    attemptId,
  } = body;
  if ((key === undefined) === (keys === undefined)) {
    throw new ServiceError("invalid", "Expected either `key` or `keys`");
  }
  if ((mode === "semaphore") !== (limit !== undefined)) {
    throw new ServiceError("invalid", "Expected `limit` for a semaphore, and for nothing else");
  }
  const { name } = c.var.principal;
  const info = holderInfoOf(body);
  return {
    keys: Array.from(new Set(keys ?? [key as string])).sort(),
    mode,
    limit: limit ?? 1,
    permits,
    ttlMs,
    waitMs,
    claimMs,
    principal: name,
    // Nobody can meet, or take, another one's attempt by its name.
    attemptId: attemptId === undefined ? undefined : `${name.length}:${name}:${attemptId}`,
    info: {
      ...info,
      owner: info.owner ?? `${name.slice(0, 128)}@${c.env.incoming.socket.remoteAddress ?? "unknown"}`,
    },
  };
}

function holderInfoOf({ owner, reason, labels }: Omit<WireRenew, "ttlMs">): HolderInfo {
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

/**
 * A request with a bad lease id counts in the rate limit, although renewals and releases do not.
 * @throws {ServiceError} for a lease id that is none of this service, or has a key that the principal may not acquire
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
    await rate?.count(principal.name);
    throw error;
  }
}
