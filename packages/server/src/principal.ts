import { ServiceError } from "./refusal.ts";

/** What somebody may do. */
export type Scope = "lock:acquire" | "lock:read" | "lock:force" | "admin";

/** Who asks, and what he may do. */
export interface Principal {
  readonly name: string;
  readonly grants: readonly { readonly scope: Scope; readonly prefix: string }[];
}

/** Who asks a service that asks nobody for his name. */
export const anonymous: Principal = {
  name: "anybody",
  grants: [
    { scope: "lock:acquire", prefix: "" },
    { scope: "lock:read", prefix: "" },
    { scope: "lock:force", prefix: "" },
    { scope: "admin", prefix: "" },
  ],
};

/** @throws {ServiceError} `forbidden` */
export function authorize(principal: Principal, scope: Scope, keys: readonly string[]): void {
  for (const key of keys) {
    if (!hasScope(principal, scope, key)) {
      throw new ServiceError(
        "forbidden",
        `"${principal.name}" may not do that to "${key}": it takes ${scope}`,
        {
          key,
        },
      );
    }
  }
}

/** Whether somebody may do that to a key, or to all that begin so. */
export function hasScope({ grants }: Principal, scope: Scope, key: string): boolean {
  return grants.some((grant) => grant.scope === scope && key.startsWith(grant.prefix));
}
