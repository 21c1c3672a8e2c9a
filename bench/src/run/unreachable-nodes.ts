import { freePort } from "./server.ts";
import type { Site } from "../suites/suite.ts";

/** Replaces the last nodes of a site by ports that refuse connections. */
export async function withUnreachable(
  { servers: [first, ...others], ...site }: Site,
  unreachable: number,
): Promise<Site> {
  const deadPorts = await Promise.all(Array.from({ length: unreachable }, freePort));
  return { ...site, servers: [first, ...others.slice(0, others.length - unreachable)], deadPorts };
}

export function nodesText(nodes: number, unreachable: number): string {
  return unreachable === 0 ? `${nodes} nodes` : `${nodes} nodes, ${unreachable} down`;
}
