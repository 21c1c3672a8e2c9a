import type { IncomingMessage, ServerResponse } from "node:http";

import { getRequestListener, type HttpBindings } from "@hono/node-server";
import type { Driver } from "holdfast";

import { assertKnownNames, type Identify } from "../admission.ts";
import { Engine } from "../engine.ts";
import { resolveService, type ServiceOptions } from "../options.ts";
import { anonymous, type Principal } from "../principal.ts";
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
  /**
   * Finds the user of a request by the application's own means, such as its session; null: the request is refused with 403. Without
   * this option only browsers on this machine have access, with all rights, and no proxy may forward their requests.
   */
  readonly authorize?:
    ((request: IncomingMessage) => ConsoleUser | null | Promise<ConsoleUser | null>) | undefined;
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
 * The web console for an application with its own server, on the driver of its locks.
 * @throws {TypeError} for invalid options
 */
export function consoleRoutes(driver: Driver, options: ConsoleRoutesOptions = {}): ConsoleRoutes {
  const { basePath = "", readOnly, doctor, authorize } = options;
  if (!/^(\/[^/?#]+)*$/.test(basePath)) {
    throw new TypeError(
      `Expected \`basePath\` to be a path such as /admin/locks, got ${JSON.stringify(basePath)}`,
    );
  }
  const resolved = resolveService({ engine: driver, readOnly, doctor });
  const service = new HttpService(resolved, new Engine(driver), {
    identify: authorize ? byApplication(authorize) : ofThisMachine,
    hasAuthentication: authorize !== undefined,
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

/** Headers of a proxy. A proxy on this machine gives every client a loopback address. */
const proxyHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/** The application may listen on every address, so that the name in the request alone proves nothing. */
const ofThisMachine: Identify = (c) => {
  const { socket, headers } = c.env.incoming;
  const isLocal = /^(127\.|::1$|::ffff:127\.)/.test(socket.remoteAddress ?? "");
  if (!isLocal || proxyHeaders.some((name) => headers[name] !== undefined)) {
    throw new ServiceError(
      "forbidden",
      "Without `authorize` the console is for browsers of this machine only",
    );
  }
  assertKnownNames(headers.host ?? "");
  return anonymous;
};

function byApplication(authorize: NonNullable<ConsoleRoutesOptions["authorize"]>): Identify {
  return async (c) => {
    const site = c.req.header("sec-fetch-site") ?? "none";
    if (c.req.method === "POST" && site !== "same-origin" && site !== "none") {
      // the browser adds the cookies of the application to requests from any page
      throw new ServiceError("forbidden", `Expected a request from the console's own origin, got ${site}`);
    }
    const user = await authorize(c.env.incoming);
    if (user === null) {
      throw new ServiceError("forbidden", "The application refuses access to its locks");
    }
    return principalOf(user);
  };
}

function principalOf({ name, canBreak = false, prefix = "" }: ConsoleUser): Principal {
  return {
    name,
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
