import type { Answer, Server } from "./state.ts";

/** Tells what decides whether a node of a quorum may vote, as far as INFO knows it. */
export function standing(server: Server): Answer {
  const { role, replicationId, isDurable, maxmemoryPolicy, maxmemory } = server.standing;
  const { flushes } = server.store;
  return [
    server.runId,
    server.uptimeSeconds(),
    role,
    replicationId,
    isDurable ? 1 : 0,
    maxmemoryPolicy,
    maxmemory,
    flushes,
  ];
}
