import type { Replication } from "../../../lock-state.ts";

/** From `INFO replication`; null where it did not say. */
export function parseReplication(info: unknown): Replication | null {
  const fields = parseInfo(info);
  const role = fields.get("role");
  const offset = Number(fields.get("master_repl_offset"));
  if (role === undefined || !Number.isFinite(offset)) {
    return null;
  }
  const goodReplicas = fields.get("min_slaves_good_slaves");
  const isReplica = role !== "master";
  const replicas = Array.from(fields)
    .filter(([name]) => /^slave\d+$/.test(name))
    .map(([, described]) => parseReplica(described, offset));
  return {
    offset,
    replicas: isReplica ? [] : replicas,
    isLinkUp: isReplica ? fields.get("master_link_status") === "up" : null,
    goodReplicas: goodReplicas === undefined ? null : Number(goodReplicas),
  };
}

/** `ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0` */
function parseReplica(described: string, offset: number): Replication["replicas"][number] {
  const fields = new Map(described.split(",").map((pair) => pair.split("=") as [string, string]));
  return {
    address: `${fields.get("ip")}:${fields.get("port")}`,
    isOnline: fields.get("state") === "online",
    lagBytes: Math.max(0, offset - Number(fields.get("offset"))),
    sinceLastAckMs: Number(fields.get("lag")) * 1_000,
  };
}

function parseInfo(info: unknown): Map<string, string> {
  const lines = typeof info === "string" ? info.split("\r\n") : [];
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );
}
