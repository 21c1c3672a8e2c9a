import type { IncomingMessage, ServerResponse } from "node:http";

import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { Driver } from "holdfast";

import { assertOwnPage, type Identify } from "../admission.ts";
import { Engine } from "../engine.ts";
import { resolveService, type ServiceOptions } from "../options.ts";
import type { Principal } from "../principal.ts";
import { problemOf, problemResponse } from "../problems.ts";
import { ServiceError } from "../refusal.ts";
import { HttpService } from "../service.ts";

/** A person at the console, as the application knows them. */
export interface ConsoleUser {
  /** The name in the audit of breaks. */
  readonly name: string;
  /** Whether the user may break locks. @defaultValue false */
  readonly canBreak?: boolean | undefined;
  /** Restricts the console to keys with this prefix. The pages about servers and processes then show nothing. @defaultValue "" */
  readonly prefix?: string | undefined;
}

export interface ConsoleRoutesOptions {
  /** The path of the application below which the routes are, without `/console`, if the framework leaves it in the URL. @defaultValue "" */
  readonly basePath?: string | undefined;
  /** Refuses every break. @defaultValue false */
  readonly readOnly?: boolean | undefined;
  /**
   * The checks for the page Doctor, for example `() => diagnose(url)` of `@holdfast/server/doctor`.
   * @defaultValue the checks of the driver's `nodes()`, which read no settings of the servers
   */
  readonly doctor?: ServiceOptions["doctor"];
  /** Finds the user of a request by the application's own means, such as its session; null: the request is refused with 403. */
  readonly authorize?:
    ((request: IncomingMessage) => ConsoleUser | null | Promise<ConsoleUser | null>) | undefined;
  /**
   * `"read"`, in place of `authorize`: every client that reaches the path may read all locks, with owners, reasons and labels, and none may
   * break one.
   */
  readonly anonymous?: "read" | undefined;
}

/** The console of an application, at `/console/` below the mounted path. */
export interface ConsoleRoutes {
  /** For `node:http`, Express and NestJS: `app.use("/locks", routes.handler)`. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** For Hono on Node: `app.all("/locks/*", (c) => routes.fetch(c.req.raw, c.env))`, with `basePath`. */
  fetch(request: Request, env: HttpBindings): Response | Promise<Response>;
  /** Ends the open streams, and closes the driver if no `Locks` uses it. */
  close(): Promise<void>;
}

/** The requests of the console. Leases are neither acquired nor released here. */
const reads =
  /^\/(console(\/.*)?|v1\/(me|locks|lock|events|nodes|owners|processes|history|hold-times|contention|audit|doctor))$/;
const writes = /^\/v1\/(lock\/break|owners\/break|fence\/check)$/;

/**
 * The web console for an application with its own server, on the driver of its locks. Requests of pages of other origins are refused.
 * @throws {TypeError} for invalid options, and without `authorize` and `anonymous`
 */
export function consoleRoutes(driver: Driver, options: ConsoleRoutesOptions): ConsoleRoutes {
  const { basePath = "", readOnly, doctor } = options;
  if (!/^(\/[^/?#]+)*$/.test(basePath)) {
    throw new TypeError(
      `Expected \`basePath\` to be a path such as /admin/locks, got ${JSON.stringify(basePath)}`,
    );
  }
  const resolved = resolveService({ engine: driver, readOnly, doctor });
  const service = new HttpService(resolved, new Engine(driver), {
    identify: byApplication(finderOf(options)),
    hasAuthentication: options.authorize !== undefined,
  });
  const respond = (request: Request, env: HttpBindings): Response | Promise<Response> => {
    const url = new URL(request.url);
    if (basePath !== "" && url.pathname.startsWith(`${basePath}/`)) {
      url.pathname = url.pathname.slice(basePath.length);
    }
    const isRead = request.method === "GET" || request.method === "HEAD";
    return (isRead ? reads : writes).test(url.pathname)
      ? service.app.fetch(url.href === request.url ? request : new Request(url, request), env)
      : problemResponse(problemOf(new ServiceError("not-found", "The console has no such page")));
  };
  const listener = getRequestListener((request, env) => respond(request, env as HttpBindings), {
    overrideGlobalObjects: false,
  });
  return {
    handler: (request, response) => {
      restoreBody(request);
      void listener(request, response);
    },
    fetch: respond,
    close: () => service.close(),
  };
}

type FindPrincipal = (request: IncomingMessage) => Promise<Principal | null>;

/** The principal of every request to an open console. */
const reader: Principal = {
  name: "anonymous",
  quota: "anonymous",
  grants: [{ scope: "lock:read", prefix: "" }],
};

/** @throws {TypeError} unless exactly one of the options says who has access */
function finderOf({ authorize, anonymous }: ConsoleRoutesOptions): FindPrincipal {
  if (anonymous !== undefined && anonymous !== "read") {
    throw new TypeError(`Expected \`anonymous\` to be "read", got ${JSON.stringify(anonymous)}`);
  }
  if ((authorize === undefined) === (anonymous === undefined)) {
    throw new TypeError(
      'Expected `authorize`, which finds the user of a request, or `anonymous: "read"`, by which everybody may read all locks',
    );
  }
  return async (request) => {
    const user = await authorize?.(request);
    return user ? principalOf(user) : authorize ? null : reader;
  };
}

function byApplication(find: FindPrincipal): Identify {
  return async (c) => {
    assertOwnPage(c);
    const principal = await find(c.env.incoming);
    if (principal === null) {
      throw new ServiceError("forbidden", "The application refuses access to its locks");
    }
    return principal;
  };
}

function principalOf({ name, canBreak = false, prefix = "" }: ConsoleUser): Principal {
  return {
    name,
    quota: name,
    grants: [
      { scope: "lock:read", prefix },
      ...(canBreak ? [{ scope: "lock:force" as const, prefix }] : []),
      ...(prefix === "" ? [{ scope: "admin" as const, prefix }] : []),
    ],
  };
}

/** Restores the body of a request if a body parser of the application has read it. */
function restoreBody(request: IncomingMessage & { body?: unknown; rawBody?: unknown }): void {
  const { body, rawBody } = request;
  if (request.readableDidRead && body !== undefined && !(rawBody instanceof Buffer)) {
    request.rawBody = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  }
}
