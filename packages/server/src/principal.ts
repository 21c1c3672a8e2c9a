import { ServiceError } from "./refusal.ts";

/** A right of a principal. */
export type Scope = "lock:acquire" | "lock:read" | "lock:force" | "admin";

/** The identity of a client, and its rights. */
export interface Principal {
  readonly name: string;
  /** The name by which its use of the service is limited. All subjects of one rule of a JWT issuer share the limits. */
  readonly quota: string;
  /** Whether the auth file still admits the principal with the same grants. Absent: another means admitted it. */
  readonly isCurrent?: () => boolean;
  readonly grants: readonly { readonly scope: Scope; readonly prefix: string }[];
}

/** The principal of every request to a service without authentication. */
export const anonymous: Principal = {
  name: "anonymous",
  quota: "anonymous",
  grants: [
    { scope: "lock:acquire", prefix: "" },
    { scope: "lock:read", prefix: "" },
    { scope: "lock:force", prefix: "" },
    { scope: "admin", prefix: "" },
  ],
};

/**
 * The token may have been revoked since the request began, for example before its body was complete.
 * @throws {ServiceError} `unauthenticated`
 */
export function assertCurrent({ isCurrent }: Principal): void {
  if (isCurrent?.() === false) {
    throw revoked();
  }
}

/** The end of a request whose token is no longer in the auth file. */
export function revoked(): ServiceError {
  return new ServiceError("unauthenticated", "The token was revoked, or its grants have changed");
}

/** @throws {ServiceError} `forbidden`; `unauthenticated` for a revoked token */
export function authorize(principal: Principal, scope: Scope, keys: readonly string[]): void {
  assertCurrent(principal);
  for (const key of keys) {
    if (!hasScope(principal, scope, key)) {
      const target = key === "" ? "all keys" : `"${key}"`;
      const message = `"${principal.name}" may not do that to ${target}: it takes ${scope}, ${rightsOf(principal, scope)}`;
      throw new ServiceError("forbidden", message, { key });
    }
  }
}

/** The prefixes for which the principal has a scope, in words. */
function rightsOf({ name, grants }: Principal, scope: Scope): string {
  const prefixes = grants.filter((grant) => grant.scope === scope).map(({ prefix }) => `"${prefix}"`);
  return prefixes.length === 0
    ? `which "${name}" does not have`
    : `which "${name}" has only for the prefix ${prefixes.join(", ")}`;
}

/** Whether the principal has the scope for a key, or for all keys with that prefix. */
export function hasScope({ grants }: Principal, scope: Scope, key: string): boolean {
  return grants.some((grant) => grant.scope === scope && key.startsWith(grant.prefix));
}

/** The prefixes for which a principal has one of the scopes. A prefix that begins with another of them is left out. */
export function prefixesOf({ grants }: Principal, scopes: readonly Scope[]): string[] {
  const all = new Set(grants.filter(({ scope }) => scopes.includes(scope)).map(({ prefix }) => prefix));
  return [...all].filter((prefix) => ![...all].some((other) => other !== prefix && prefix.startsWith(other)));
}

/** Whether the principal may read all keys. */
export function canReadAny(principal: Principal): boolean {
  return hasScope(principal, "lock:read", "") || hasScope(principal, "admin", "");
}
