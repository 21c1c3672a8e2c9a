import { freePort } from "./server.ts";
import type { Site } from "../suites/suite.ts";

/** The same nodes, of which the last are down: all that there is of them are ports that refuse. */
export async function withDown({ servers: [first, ...others], ...site }: Site, down: number): Promise<Site> {
  const deadPorts = await Promise.all(Array.from({ length: down }, freePort));
  return { ...site, servers: [first, ...others.slice(0, others.length - down)], deadPorts };
}

export function nodesText(nodes: number, down: number): string {
  return down === 0 ? `${nodes} nodes` : `${nodes} nodes, ${down} down`;
}
