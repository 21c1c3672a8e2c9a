import { createRoute, z } from "@hono/zod-openapi";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";

import { json, noQuery, problems } from "./responses.ts";
import { EventStream } from "./event-stream.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import { wireLock } from "./lock-routes.ts";
import { authorize } from "./principal.ts";
import { problemOf } from "./problems.ts";
import { ServiceError } from "./refusal.ts";

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
      const connection = connections.open(c.env.outgoing);
      connection.onEnd(streams.begin(principal.name));
      const { closed } = connection;
      const events = engine.locks.watch(key ?? { prefix: prefix ?? "" }, { signal: closed });
      const stream = new EventStream(c.env.outgoing);
      try {
        for await (const event of events) {
          await stream.send(event.type, { type: event.type, key: event.key, state: wireLock(event.state) });
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
      return c.json({ guarantee: engine.guarantee, nodes: await engine.locks.nodes() }, 200);
    },
  );
}
