import type { Redis } from "ioredis";

import { shown } from "../../duration.ts";
import { wordsOf } from "../../output.ts";
import { pairsOf, type Use } from "../facts.ts";
import type { Finding } from "../finding.ts";
import type { Server } from "../servers.ts";
import { found, type Found } from "./check.ts";

/** What sentinels tell of the group that they guard. */
export async function examineSentinels(
  sentinels: readonly Server[],
  { address, ttlMs }: Use,
): Promise<Finding[]> {
  const found = await Promise.all(
    sentinels.map(async ({ name, client }) => {
      const told = await examineOne(client, address.primary, ttlMs).catch((error: unknown) => [
        unreachable(error),
      ]);
      return told.filter(Boolean).map((one) => ({ ...(one as Finding), node: name }));
    }),
  );
  return found.flat();
}

/** Where the primary is, as the first sentinel that knows it says. */
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

async function examineOne(client: Redis, name: string, ttlMs: number): Promise<Found[]> {
  const primary = new Map(pairsOf(await client.call("SENTINEL", "MASTER", name)));
  const others = (await client.call("SENTINEL", "SENTINELS", name)) as unknown[];
  const replicas = ((await client.call("SENTINEL", "REPLICAS", name)) as unknown[]).map(
    (one) => new Map(pairsOf(one)),
  );
  const verdict = await client.call("SENTINEL", "CKQUORUM", name).then(String, wordsOf);
  return [
    ...numbers(others.length + 1, Number(primary.get("quorum") ?? 0), verdict),
    ...times(primary, ttlMs),
    ...flags("the primary", primary),
    ...replicas.flatMap((replica) => flags(`the replica ${replica.get("name") ?? "?"}`, replica)),
    replicas.length === 0 &&
      found("risk", "no-replica", {
        observed: "the primary has no replica",
        danger:
          "when it is down there are no locks until it is back, and then it may have forgotten those that it had",
        advice: "a replica at least",
      }),
  ];
}

function numbers(count: number, quorum: number, verdict: string): Found[] {
  return [
    count < 3 &&
      found("risk", "few-sentinels", {
        observed: `${count} sentinels`,
        danger: "without a majority of them there is no failover, and no locks while the primary is down",
        advice: "three at least, on machines of their own",
      }),
    quorum === 1 &&
      found("risk", "quorum-of-one", {
        observed: "the quorum is 1",
        danger: "one sentinel that is cut off begins a failover, and each failover may forget fresh locks",
        advice: "a majority of the sentinels",
      }),
    !verdict.startsWith("OK") &&
      found("risk", "no-failover", {
        observed: `CKQUORUM says: ${verdict}`,
        danger: "no failover is possible now: no locks while the primary is down",
        advice: "bring the sentinels back, or let them know each other",
      }),
  ];
}

function times(primary: ReadonlyMap<string, string>, ttlMs: number): Found[] {
  const downMs = Number(primary.get("down-after-milliseconds") ?? 0);
  const failoverMs = Number(primary.get("failover-timeout") ?? 0);
  return [
    downMs > 0 &&
      downMs < 1_000 &&
      found("risk", "hasty-failover", {
        observed: `down-after-milliseconds is ${downMs}`,
        danger: "a pause of the server begins a failover, and each may forget fresh locks",
        advice: "some seconds",
        command: `SENTINEL SET ${primary.get("name")} down-after-milliseconds 5000`,
      }),
    ttlMs < downMs + 1_000 &&
      found("risk", "ttl-shorter-than-failover", {
        observed: `the TTL is ${shown(ttlMs)}; a failover begins ${shown(downMs)} after the primary is down, and may take ${shown(failoverMs)}`,
        danger: "every holder loses its lock in a failover, as nobody can renew that long",
        advice: "a TTL longer than a failover takes",
      }),
  ];
}

function flags(who: string, told: ReadonlyMap<string, string>): Found[] {
  const bad = (told.get("flags") ?? "")
    .split(",")
    .filter((flag) => /^(s_down|o_down|disconnected)$/.test(flag));
  return [
    bad.length > 0 &&
      found("risk", "down", {
        observed: `${who} is ${bad.join(", ")}`,
        danger:
          who === "the primary" ? "no lock can be had or renewed now" : "a failover has one less to go to",
        advice: "look at that server, and at the address by which it is announced",
      }),
  ];
}

function unreachable(error: unknown): Found {
  return found("risk", "sentinel-does-not-tell", {
    observed: wordsOf(error),
    danger: "it cannot lead to a new primary, and does not count for a failover",
    advice: "look at it, and at the name of the primary in the URL",
  });
}
