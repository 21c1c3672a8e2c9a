import { readFileSync } from "node:fs";

import { createRoute, z } from "@hono/zod-openapi";

import { json, noQuery, problems } from "./responses.ts";
import { newApp, type App, type ServiceContext } from "./context.ts";
import type { Principal } from "./principal.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const scopes = z.enum(["lock:acquire", "lock:read", "lock:force", "admin"]);

const offers = z.enum(["audit", "doctor"]);

const meSchema = z
  .object({
    principal: z.string(),
    authentication: z
      .boolean()
      .openapi({ description: "false: every client on this machine has all scopes" }),
    scopes: z
      .array(z.object({ scope: scopes, prefixes: z.array(z.string()) }))
      .openapi({ description: "Each scope, with the prefixes of its keys; the empty prefix is of all keys" }),
    readOnly: z.boolean().openapi({ description: "true: the service refuses every change" }),
    offers: z
      .array(offers)
      .openapi({ description: "The optional parts of the interface that this service and its engine have" }),
    limits: z
      .object({
        waits: z.number(),
        waitsOfKey: z.number().nullable(),
        leases: z.number().nullable().openapi({ description: "The keys that it holds at once" }),
        streams: z.number(),
        requestsPerSecond: z.number().nullable(),
      })
      .openapi({
        description:
          "The limits of the principal at one instance; null: none. All subjects of one rule of an issuer share them",
      }),
    version: z.string(),
    engine: z.object({
      name: z.string(),
      guarantee: z.enum(["process", "server", "quorum", "consensus", "database"]),
    }),
  })
  .openapi("Me");

/** The route with the rights of the client. */
export function meRoute({ engine, readOnly, hasAuthentication, limits }: ServiceContext): App {
  const app = newApp();
  app.openapi(
    createRoute({
      method: "get",
      path: "/v1/me",
      operationId: "getMe",
      tags: ["operation"],
      summary: "The client's identity and scopes, and the engine of the service",
      request: { query: noQuery },
      responses: { 200: json(meSchema, "The identity of the token"), ...problems },
    }),
    (c) => {
      const { guarantee, driver } = engine;
      return c.json(
        {
          principal: c.var.principal.name,
          authentication: hasAuthentication,
          scopes: scopesOf(c.var.principal),
          readOnly,
          offers: [...(driver.audit ? (["audit"] as const) : []), "doctor" as const],
          limits: { ...limits },
          version,
          engine: { name: driver.capabilities.engine ?? "other", guarantee },
        },
        200,
      );
    },
  );
  return app;
}

function scopesOf({ grants }: Principal): { scope: string; prefixes: string[] }[] {
  const names = new Set(grants.map(({ scope }) => scope));
  return Array.from(names, (name) => ({
    scope: name,
    prefixes: [...new Set(grants.filter(({ scope }) => scope === name).map(({ prefix }) => prefix))],
  }));
}
