import type { Redis } from "ioredis";

import { formatDuration } from "../duration.ts";
import { errorMessage } from "../errors.ts";
import { pairsOf, type Deployment } from "../facts.ts";
import type { Finding } from "../finding.ts";
import type { Server } from "../servers.ts";
import { finding, type CheckResult } from "./check.ts";

/** The findings from the replies of the sentinels. */
export async function checkSentinels(
  sentinels: readonly Server[],
  { address, ttlMs }: Deployment,
): Promise<Finding[]> {
  const found = await Promise.all(
    sentinels.map(async ({ name, client }) => {
      const answers = await checkSentinel(client, address.primary, ttlMs).catch((error: unknown) => [
        unreachable(error),
      ]);
      return answers.filter(Boolean).map((one) => ({ ...(one as Finding), node: name }));
    }),
  );
  return found.flat();
}

/** The address of the primary, from the first sentinel that knows it. */
export async function primaryBy(
  sentinels: readonly Server[],
  name: string,
): Promise<{ host: string; port: number } | undefined> {
  for (const { client } of sentinels) {
    const address = await client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name).catch(() => null);
    if (Array.isArray(address)) {
      return { host: String(address[0]), port: Number(address[1]) };
    }
  }
  return undefined;
}

async function checkSentinel(client: Redis, name: string, ttlMs: number): Promise<CheckResult[]> {
  const primary = new Map(pairsOf(await client.call("SENTINEL", "MASTER", name)));
  const others = (await client.call("SENTINEL", "SENTINELS", name)) as unknown[];
  const replicas = ((await client.call("SENTINEL", "REPLICAS", name)) as unknown[]).map(
    (one) => new Map(pairsOf(one)),
  );
  const verdict = await client.call("SENTINEL", "CKQUORUM", name).then(String, errorMessage);
  return [
    ...numbers(others.length + 1, Number(primary.get("quorum") ?? 0), verdict),
    ...times(primary, ttlMs),
    ...flags("the primary", primary),
    ...replicas.flatMap((replica) => flags(`the replica ${replica.get("name") ?? "?"}`, replica)),
    replicas.length === 0 &&
      finding("risk", "no-replica", {
        observed: "the primary has no replica",
        impact:
          "if the primary fails, locks are unavailable until its restart, and the restart may lose them",
        fix: "add at least one replica",
      }),
  ];
}

function numbers(count: number, quorum: number, verdict: string): CheckResult[] {
  return [
    count < 3 &&
      finding("risk", "few-sentinels", {
        observed: `${count} sentinels`,
        impact:
          "without a majority of sentinels there is no failover, and no locks while the primary is down",
        fix: "run at least three sentinels, on separate machines",
      }),
    quorum === 1 &&
      finding("risk", "quorum-of-one", {
        observed: "the quorum is 1",
        impact: "one partitioned sentinel starts a failover, and each failover may lose recent locks",
        fix: "use a majority of the sentinels",
      }),
    !verdict.startsWith("OK") &&
      finding("risk", "no-failover", {
        observed: `CKQUORUM replies: ${verdict}`,
        impact: "no failover is possible now: no locks while the primary is down",
        fix: "restart the sentinels, and check that they know each other",
      }),
  ];
}

function times(primary: ReadonlyMap<string, string>, ttlMs: number): CheckResult[] {
  const downMs = Number(primary.get("down-after-milliseconds") ?? 0);
  const failoverMs = Number(primary.get("failover-timeout") ?? 0);
  return [
    downMs > 0 &&
      downMs < 1_000 &&
      finding("risk", "hasty-failover", {
        observed: `down-after-milliseconds is ${downMs}`,
        impact: "a pause of the server starts a failover, and each failover may lose recent locks",
        fix: "some seconds",
        command: `SENTINEL SET ${primary.get("name")} down-after-milliseconds 5000`,
      }),
    ttlMs < downMs + 1_000 &&
      finding("risk", "ttl-shorter-than-failover", {
        observed: `the TTL is ${formatDuration(ttlMs)}; a failover begins ${formatDuration(downMs)} after the primary is down, and may take ${formatDuration(failoverMs)}`,
        impact: "every holder loses its lock in a failover, because renewals fail for longer than the TTL",
        fix: "use a TTL longer than a failover",
      }),
  ];
}

function flags(subject: string, flagList: ReadonlyMap<string, string>): CheckResult[] {
  const bad = (flagList.get("flags") ?? "")
    .split(",")
    .filter((flag) => /^(s_down|o_down|disconnected)$/.test(flag));
  return [
    bad.length > 0 &&
      finding("risk", "down", {
        observed: `${subject} is ${bad.join(", ")}`,
        impact:
          subject === "the primary"
            ? "locks cannot be acquired or renewed now"
            : "a failover has one candidate less",
        fix: "check that server and its announced address",
      }),
  ];
}

function unreachable(error: unknown): CheckResult {
  return finding("risk", "sentinel-unaware-of-primary", {
    observed: errorMessage(error),
    impact: "this sentinel cannot report a new primary, and does not count for a failover",
    fix: "check that sentinel, and the primary's name in the URL",
  });
}
