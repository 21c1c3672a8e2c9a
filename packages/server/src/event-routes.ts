import { setTimeout as pause } from "node:timers/promises";

import { createRoute, z } from "@hono/zod-openapi";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { LockEvent } from "holdfast";

import { json, noQuery, problems } from "./responses.ts";
import { EventStream } from "./event-stream.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import { wireLock } from "./lock-routes.ts";
import { authorize, hasScope, type Principal } from "./principal.ts";
import { problemOf } from "./problems.ts";
import { ServiceError } from "./refusal.ts";

/** Each key has one event in this time, ms. */
const eventIntervalMs = 100;

const target = z.strictObject({
  key: z.string().min(1).max(512).optional(),
  prefix: z.string().max(512).optional(),
});

/** Event streams of changes, and the states of the engine's servers. */
export function eventRoutes(context: ServiceContext): App {
  const app = newApp();
  watchRoute(app, context);
  nodesRoute(app, context);
  return app;
}

function watchRoute(app: App, { engine, connections, draining, streams }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/events",
      operationId: "watchLocks",
      tags: ["locks"],
      summary:
        "Server-sent events: a snapshot, then coalesced changes. A resumed stream starts with a new snapshot",
      request: { query: target },
      responses: {
        200: {
          description: "`snapshot`, `changed`, `gone`",
          content: { "text/event-stream": { schema: z.string() } },
        },
        ...problems,
      },
    }),
    async (c) => {
      const { key, prefix } = c.req.valid("query");
      if (key !== undefined && prefix !== undefined) {
        throw new ServiceError("invalid", "Expected `key` or `prefix`, got both");
      }
      const { principal } = c.var;
      authorize(principal, "lock:read", [key ?? prefix ?? ""]);
      if (draining.aborted) {
        throw draining.reason as Error;
      }
      const connection = connections.open(c);
      connection.onEnd(streams.begin(principal.quota));
      const { closed } = connection;
      const events = engine.locks.admin.watch(key ?? { prefix: prefix ?? "" }, { signal: closed });
      const stream = new EventStream(c.env.outgoing);
      try {
        await sendAll(events, stream, principal, closed);
        if (closed.reason instanceof ServiceError && !draining.aborted) {
          throw closed.reason; // the token was revoked
        }
      } catch (error) {
        await stream.send("problem", problemOf(error)).catch(() => undefined);
      }
      if (draining.aborted) {
        await stream.send("draining", {}).catch(() => undefined); // the client may have disconnected
      }
      stream.end();
      return RESPONSE_ALREADY_SENT;
    },
  );
}

/** Sends the events of the keys that the principal may read. An engine should report no others. */
async function sendAll(
  events: AsyncIterable<LockEvent>,
  stream: EventStream,
  principal: Principal,
  closed: AbortSignal,
): Promise<void> {
  const pace = new Pace();
  for await (const { type, key, state } of events) {
    if (hasScope(principal, "lock:read", key)) {
      await pace.next(key, closed);
      await stream.send(type, { type, key, state: wireLock(state) });
    }
  }
}

/**
 * Delays a second event of a key within the interval. The engine's watch keeps only the newest state of each lock for a slow reader.
 * Without the delay a client with many streams of one contended key could keep the service busy.
 */
class Pace {
  #since = 0;
  readonly #sent = new Set<string>();

  async next(key: string, closed: AbortSignal): Promise<void> {
    const restMs = this.#since + eventIntervalMs - performance.now();
    if (restMs > 0 && this.#sent.has(key)) {
      await pause(restMs, undefined, { signal: closed, ref: false }).catch(() => undefined); // the stream is about to end
    }
    if (performance.now() >= this.#since + eventIntervalMs) {
      this.#since = performance.now();
      this.#sent.clear();
    }
    this.#sent.add(key);
  }
}

function nodesRoute(app: App, { engine }: ServiceContext): void {
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/nodes",
      operationId: "listNodes",
      tags: ["operation"],
      summary: "The state of each server of the engine",
      request: { query: noQuery },
      responses: {
        200: json(z.object({ guarantee: z.string(), nodes: z.array(z.object({})) }), "All of them"),
        ...problems,
      },
    }),
    async (c) => {
      authorize(c.var.principal, "lock:read", [""]);
      return c.json({ guarantee: engine.guarantee, nodes: await engine.locks.admin.nodes() }, 200);
    },
  );
}
