import type { ResolvedService } from "../options.ts";
import type { Finding } from "./finding.ts";

/** The risks of a service's own settings. */
export function warningsOf({ auth, leaseKey }: ResolvedService): Finding[] {
  const { tokens = [], jwt = [] } = auth ?? {};
  const entries = jwt.reduce((sum, { rules }) => sum + rules.length, tokens.length);
  if (entries < 2 || leaseKey !== undefined) {
    return [];
  }
  return [
    {
      level: "risk",
      id: "unsigned-lease-ids",
      node: "service",
      observed: `several principals (${entries} entries of the auth file), and no signing key of lease ids`,
      impact:
        "a client may send lease ids of its own making, and each reaches the engine: only the random part of an id protects the leases of others",
      fix: "Set HOLDFAST_LEASE_KEY to the same 16 or more random characters at every instance",
    },
  ];
}
