import { bodyLimit } from "hono/body-limit";
import type { Context, MiddlewareHandler } from "hono";

import type { Authenticator } from "./auth.ts";
import type { RouteEnv } from "./context.ts";
import type { RateLimit } from "./limits.ts";
import { anonymous, type Principal } from "./principal.ts";
import { ServiceError } from "./refusal.ts";
import { consolePath } from "./web-console/pages.ts";

const maxBodyBytes = 256 * 1024;

/** Paths without authentication. Their responses contain no secrets. */
const publicPaths = new Set(["/healthz", "/readyz", "/openapi.json", consolePath]);

/** The orchestration asks these without a token, and would restart a service that refuses it. */
const probes = new Set(["/healthz", "/readyz"]);

function isPublic(path: string): boolean {
  return publicPaths.has(path) || path.startsWith(`${consolePath}/`);
}

/** The names of this machine in a browser. A request to another name comes from a web page, by DNS rebinding. */
const ownNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Finds the principal of a request. Throws or rejects with a `ServiceError` for a client without access. */
export type Identify = (c: Context<RouteEnv>) => Principal | Promise<Principal>;

/**
 * By the bearer token. Without authentication every client of this machine has all rights, and neither a proxy nor a page of another
 * origin has any.
 * @param allowedOrigins the origins of pages that may use the service
 */
export function byToken(
  authenticator: Authenticator | undefined,
  allowedOrigins: readonly string[] = [],
): Identify {
  return (c) => {
    if (authenticator) {
      return isPublic(c.req.path) ? anonymous : authenticator.principalOf(c.req.header("authorization"));
    }
    assertOfThisMachine(c);
    assertOwnPage(c, allowedOrigins);
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
      if (limit && !probes.has(c.req.path) && !renewsOrReleases(c.req.method, c.req.path)) {
        await limit.count(c.var.principal.quota);
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

/** Headers of a proxy. A proxy on this machine gives every client a loopback address and the name of this machine. */
const proxyHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/** @throws {ServiceError} `forbidden` for a request through a proxy, or to a host that is no name of this machine */
function assertOfThisMachine(c: Context<RouteEnv>): void {
  const name = (c.req.header("host") ?? "localhost").replace(/:\d+$/, "").toLowerCase();
  if (!ownNames.has(name) || proxyHeaders.some((header) => c.req.header(header) !== undefined)) {
    throw new ServiceError(
      "forbidden",
      "Without authentication the service answers only by the name of this machine, localhost, and not through a proxy",
    );
  }
}

/**
 * Refuses a request of a page of another origin, to which a browser adds the cookies of its user or the access of this machine. A link
 * may be followed from any page.
 * @throws {ServiceError} `forbidden`
 */
export function assertOwnPage(c: Context<RouteEnv>, allowedOrigins: readonly string[] = []): void {
  const origin = c.req.header("origin");
  const site = c.req.header("sec-fetch-site");
  if (origin !== undefined && allowedOrigins.includes(origin)) {
    return;
  }
  const isRead = c.req.method === "GET" || c.req.method === "HEAD";
  const isLink = isRead && c.req.header("sec-fetch-mode") === "navigate";
  const isOwn =
    site === undefined
      ? origin === undefined || isOfHost(c, origin)
      : site === "same-origin" || site === "none";
  if (!isOwn && !isLink) {
    throw new ServiceError(
      "forbidden",
      `Expected a request of a page of this service, got one of ${origin ?? `a ${site} page`}`,
    );
  }
}

/** Whether the origin is the host of the request, or of the first of several proxies. A browser without TLS sends no `Sec-Fetch-Site`. */
function isOfHost(c: Context<RouteEnv>, origin: string): boolean {
  const host = hostOf(origin);
  const [scheme = ""] = origin.split("//");
  const names = [c.req.header("host"), c.req.header("x-forwarded-host")?.split(",")[0]?.trim()];
  return (
    host !== undefined && names.some((name) => name !== undefined && hostOf(`${scheme}//${name}`) === host)
  );
}

/** Without the default port of the scheme, which a proxy may add to the name. */
function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

/** The routes count renewals and releases in vain. A refused renewal of a held lease loses a lock, and a refused release keeps one. */
function renewsOrReleases(method: string, path: string): boolean {
  const isOfOne = path.startsWith("/v1/leases/") && (method === "DELETE" || path.endsWith("/renew"));
  return isOfOne || path === "/v1/renew";
}
