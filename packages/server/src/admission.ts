import { bodyLimit } from "hono/body-limit";
import type { Context, MiddlewareHandler } from "hono";

import { Authenticator, type AuthOptions } from "./auth.ts";
import type { RouteEnv } from "./context.ts";
import type { RateLimit } from "./limits.ts";
import { anonymous, type Principal } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import { consolePath } from "./web-console/pages.ts";

const maxBodyBytes = 256 * 1024;

/** Paths without authentication. Their responses contain no secrets. */
const publicPaths = new Set(["/healthz", "/readyz", "/openapi.json", consolePath]);

function isPublic(path: string): boolean {
  return publicPaths.has(path) || path.startsWith(`${consolePath}/`);
}

/** The names of this machine in a browser. A request with another name comes from a web page, by DNS rebinding. */
const ownNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Finds the principal of a request. Throws or rejects with a `ServiceError` for a client without access. */
export type Identify = (c: Context<RouteEnv>) => Principal | Promise<Principal>;

/** By the bearer token; without authentication every client that names this machine has all rights. */
export function byToken(auth: AuthOptions | undefined): Identify {
  const authenticator = auth && new Authenticator(auth);
  return (c) => {
    if (authenticator && !isPublic(c.req.path)) {
      return authenticator.principalOf(c.req.header("authorization"));
    }
    assertKnownNames(authenticator === undefined ? c.req.header("host") : undefined);
    return anonymous;
  };
}

/** Limits the size of requests, authenticates the client, and limits its rate. */
export function authenticateAndLimit(
  identify: Identify,
  limit: RateLimit | undefined,
): MiddlewareHandler<RouteEnv>[] {
  const tooLong = (): never => {
    throw new ServiceError("invalid", `Expected a body of ${maxBodyBytes} bytes at the most`, {}, 413);
  };
  return [
    limitBody(tooLong),
    async (c, next) => {
      c.set("principal", await identify(c));
      if (limit && !renewsOrReleases(c.req.method, c.req.path)) {
        await limit.count(c.var.principal.name);
      }
      await next();
    },
  ];
}

/** Checks `Content-Length` alone if the request has it, because the framework's own limit makes a request many times slower. */
function limitBody(tooLarge: () => never): MiddlewareHandler<RouteEnv> {
  const byReading = bodyLimit({ maxSize: maxBodyBytes, onError: tooLarge }) as MiddlewareHandler<RouteEnv>;
  return async (c, next) => {
    const { headers } = c.env.incoming;
    if (headers["transfer-encoding"] !== undefined) {
      return byReading(c, next);
    }
    if (Number(headers["content-length"] ?? 0) > maxBodyBytes) {
      tooLarge();
    }
    return next();
  };
}

/** @throws {ServiceError} `forbidden` for a host that is no name of this machine */
export function assertKnownNames(host: string | undefined): void {
  const name = host?.replace(/:\d+$/, "").toLowerCase();
  if (name !== undefined && !ownNames.has(name)) {
    throw new ServiceError(
      "forbidden",
      "Without authentication the service answers only by the name of this machine: localhost",
    );
  }
}

/** Renewals and releases are never refused. A refused renewal loses a lock, and a refused release keeps one. */
function renewsOrReleases(method: string, path: string): boolean {
  return method === "DELETE" || path.endsWith("/renew");
}
