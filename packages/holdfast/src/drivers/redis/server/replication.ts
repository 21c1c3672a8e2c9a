import type { Replication } from "../../../lock-state.ts";

/** From `INFO replication`; null where it did not say. */
export function readReplication(info: unknown): Replication | null {
  const fields = readInfo(info);
  const role = fields.get("role");
  const offset = Number(fields.get("master_repl_offset"));
  if (role === undefined || !Number.isFinite(offset)) {
    return null;
  }
  const good = fields.get("min_slaves_good_slaves");
  const isReplica = role !== "master";
  const replicas = Array.from(fields)
    .filter(([name]) => /^slave\d+$/.test(name))
    .map(([, described]) => readReplica(described, offset));
  return {
    offset,
    replicas: isReplica ? [] : replicas,
    isLinkUp: isReplica ? fields.get("master_link_status") === "up" : null,
    goodReplicas: good === undefined ? null : Number(good),
  };
}

/** `ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0` */
function readReplica(described: string, offset: number): Replication["replicas"][number] {
  const told = new Map(described.split(",").map((pair) => pair.split("=") as [string, string]));
  return {
    address: `${told.get("ip")}:${told.get("port")}`,
    isOnline: told.get("state") === "online",
    behindBytes: Math.max(0, offset - Number(told.get("offset"))),
    silentMs: Number(told.get("lag")) * 1_000,
  };
}

function readInfo(info: unknown): Map<string, string> {
  const lines = typeof info === "string" ? info.split("\r\n") : [];
  return new Map(
    lines.flatMap((line): [string, string][] => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]];
    }),
  );
}
