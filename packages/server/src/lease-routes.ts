import { createRoute, z } from "@hono/zod-openapi";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { LeaseParts, WireAcquire, WireLease, WireOwner, WireRenew } from "holdfast/http";
import type { Context } from "hono";
import type { Words } from "holdfast";

import { body, json, problems } from "./responses.ts";
import { ClientGone, type Connection } from "./connection.ts";
import { EventStream } from "./event-stream.ts";
import { holdByConnection } from "./held-by-connection.ts";
import { newApp, type App, type Env, type House } from "./context.ts";
import { problemOf } from "./problems.ts";
import { require } from "./principal.ts";
import { Refusal } from "./refusal.ts";
import type { Ask, Asker } from "./acquire-leases.ts";
import {
  acquireSchema,
  leaseIdParam,
  leaseSchema,
  releasedSchema,
  renewManySchema,
  renewSchema,
} from "./schemas.ts";

/** `POST /v1/leases` and what becomes of a lease. */
export function leaseRoutes(house: House): App {
  const app = newApp();
  toAcquire(app, house);
  toKeep(app, house);
  toEnd(app, house);
  return app;
}

function toAcquire(app: App, house: House): void {
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
    (c) => acquire(house, c, c.req.valid("json")) as Promise<never>, // problems are told by onError, streams have no type
  );
}

function toKeep(app: App, house: House): void {
  const { leases } = house;
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/leases/{leaseId}",
      summary: "Whether it is still held; never extends it",
      request: { params: leaseIdParam },
      responses: { 200: json(leaseSchema, "It is"), ...problems },
    }),
    async (c) =>
      c.json(await leases.look(await partsOf(house, c, c.req.valid("param").leaseId)), 200, noStore),
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
      const parts = await partsOf(house, c, c.req.valid("param").leaseId);
      const { ttlMs = parts.ttlMs, ...told } = c.req.valid("json");
      const words = Object.keys(told).length > 0 ? wordsOf(told) : undefined;
      return c.json(await leases.renew(parts, ttlMs, words), 200, noStore);
    },
  );

  toRenewMany(app, house);
}

function toEnd(app: App, house: House): void {
  const { leases } = house;
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
        { released: await leases.release(await partsOf(house, c, c.req.valid("param").leaseId)) },
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
        { released: await leases.downgrade(await partsOf(house, c, c.req.valid("param").leaseId)) },
        200,
        noStore,
      ),
  );
}

function toRenewMany(app: App, house: House): void {
  app.openapi(
    createRoute({
      method: "post",
      path: "/v1/renew",
      summary: "Prolong many leases; each has an answer of its own, in their order",
      request: { body: body(renewManySchema) },
      responses: { 200: { description: "A lease, or a problem, for each" }, ...problems },
    }),
    async (c) => {
      const asked = c.req.valid("json").leases;
      let grants = 0;
      const results = await Promise.all(
        asked.map(async ({ leaseId, ttlMs }) => {
          try {
            const parts = await partsOf(house, c, leaseId);
            grants += parts.grants.length;
            if (grants > mostRenewed) {
              throw new Refusal("invalid", `Expected one request to renew ${mostRenewed} keys at the most`);
            }
            return await house.leases.renew(parts, ttlMs ?? parts.ttlMs);
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
const mostRenewed = 1_000;

const noStore = { "cache-control": "no-store" };

function acquire(house: House, c: Context<Env>, asked: WireAcquire): Promise<Response> {
  if (house.draining.aborted) {
    throw house.draining.reason as Error;
  }
  const ask = askOf(c, asked);
  require(c.var.principal, "lock:acquire", ask.keys);
  const wantsEvents = c.req.header("accept")?.includes("text/event-stream") === true;
  const connection = house.connections.open(c.env.outgoing);
  if (c.req.query("hold") === "connection") {
    if (ask.attemptId !== undefined) {
      throw new Refusal("invalid", "What is held by a connection ends with it: its attempt has no name");
    }
    return holdByConnection(house.leases, ask, connection, c.env.outgoing);
  }
  return wantsEvents
    ? acquireByEvents(house, c, ask, connection)
    : acquireByAnswer(house, c, ask, connection);
}

/** Holds the answer back for as long as the caller, and we, want to wait. */
async function acquireByAnswer(
  house: House,
  c: Context<Env>,
  ask: Ask,
  connection: Connection,
): Promise<Response> {
  const waitMs = Math.min(ask.waitMs, house.maxWaitMs);
  const asker = { over: connection.over, waiting: () => undefined };
  const lease = await leaseFor(house, { ...ask, waitMs }, asker, connection);
  return c.json(lease, 201, noStore);
}

async function acquireByEvents(
  house: House,
  c: Context<Env>,
  ask: Ask,
  connection: Connection,
): Promise<Response> {
  let stream: EventStream | undefined;
  const open = (): EventStream => (stream ??= new EventStream(c.env.outgoing));
  try {
    const asker: Asker = {
      get over() {
        return connection.over;
      },
      waiting: () => {
        open()
          .send("waiting", { keys: ask.keys })
          .catch(() => undefined); // the wait ends by itself
      },
    };
    const lease = await leaseFor(house, ask, asker, connection);
    await open().send("granted", lease);
  } catch (error) {
    if (!(error instanceof ClientGone)) {
      await open()
        .send("problem", problemOf(error))
        .catch(() => undefined);
    }
  }
  stream?.end();
  return RESPONSE_ALREADY_SENT;
}

/** What does not reach its client is given back; that of a named attempt where it reached none of its requests. */
async function leaseFor(house: House, ask: Ask, asker: Asker, connection: Connection): Promise<WireLease> {
  const { attemptId, keys, mode, permits } = ask;
  if (attemptId !== undefined) {
    return house.attempts.acquire(
      JSON.stringify([attemptId, mode, permits, ...keys]),
      ask,
      asker,
      connection,
    );
  }
  const lease = await house.leases.acquire(ask, asker);
  connection.ifUndelivered(() => {
    house.leases.giveBack(house.leaseIds.read(lease.leaseId));
  });
  return lease;
}

/** @throws {Refusal} */
function askOf(c: Context<Env>, asked: WireAcquire): Ask {
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
  } = asked;
  if ((key === undefined) === (keys === undefined)) {
    throw new Refusal("invalid", "Expected either `key` or `keys`");
  }
  if ((mode === "semaphore") !== (limit !== undefined)) {
    throw new Refusal("invalid", "Expected `limit` for a semaphore, and for nothing else");
  }
  const { name } = c.var.principal;
  const words = wordsOf(asked);
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
    words: {
      ...words,
      owner: words.owner ?? `${name.slice(0, 128)}@${c.env.incoming.socket.remoteAddress ?? "unknown"}`,
    },
  };
}

function wordsOf({ owner, reason, labels }: Omit<WireRenew, "ttlMs">): Words {
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
 * @throws {Refusal} for a lease id that is none of this service, or has a key that the principal may not acquire
 */
async function partsOf({ leaseIds, rate }: House, c: Context<Env>, leaseId: string): Promise<LeaseParts> {
  const { principal } = c.var;
  try {
    const parts = leaseIds.read(leaseId);
    require(principal, "lock:acquire", parts.grants.map(({ key }) => key)); // prettier-ignore
    return parts;
  } catch (error) {
    await rate?.count(principal.name);
    throw error;
  }
}
