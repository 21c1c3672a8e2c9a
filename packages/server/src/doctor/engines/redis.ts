import { errorMessage, UnreachableError } from "../errors.ts";
import { parseTarget, type DoctorTarget } from "../url.ts";
import { accessChecks } from "../checks/access.ts";
import { runChecks, type Check } from "../checks/check.ts";
import { compareReplicas, watchClock } from "../checks/clocks.ts";
import { acceptCounters, checkCounters } from "../checks/counter.ts";
import { clusterChecks, clusterNodes, checkCluster, commonAnswer } from "../checks/cluster.ts";
import { checkHandshake, rejectedUser } from "../checks/handshake.ts";
import { loadChecks, uncheckedFindings } from "../checks/load.ts";
import { memoryChecks } from "../checks/memory.ts";
import { persistenceChecks } from "../checks/persistence.ts";
import { checkQuorum } from "../checks/quorum.ts";
import { replicationChecks } from "../checks/replication.ts";
import { checkSentinels, primaryBy } from "../checks/sentinel.ts";
import { versionChecks } from "../checks/version.ts";
import type { ResolvedOptions } from "../diagnose.ts";
import { readFacts, type ServerFacts, type Deployment } from "../facts.ts";
import type { Diagnosis, Finding } from "../finding.ts";
import { probe, refusedCommands, type Probed } from "../probe.ts";
import { openSentinel, openServer, type Server } from "../servers.ts";

/** Checks the servers of a URL of Redis, one by one and together. Throws an `UnreachableError` if no server replies. */
export async function diagnoseRedis(url: string, options: ResolvedOptions): Promise<Diagnosis> {
  const address = parseTarget(url);
  const opened: Server[] = [];
  const open = (server: Server): Server => {
    opened.push(server);
    return server;
  };
  try {
    const deployment = deploymentOf(address, options.ttlMs);
    const servers = await serversOf(address, deployment, open);
    const [examined, probed] = await Promise.all([
      examine(servers, deployment, {
        clocks: { forMs: options.watchMs, signal: options.signal },
        openReplica: (endpoint) => open(openServer(address, endpoint)),
      }),
      options.probe ? probeLocks(options.probe, address, servers.list) : { findings: [], probe: null },
    ]);
    return {
      topology: address.topology,
      nodes: servers.list.map(({ name }) => name),
      findings: [...servers.findings, ...examined, ...probed.findings],
      probe: probed.probe,
    };
  } finally {
    for (const { client } of opened) client.disconnect();
  }
}

/**
 * Accepts the counters of fencing tokens that are more than a day ahead of the time, on the servers of a URL of Redis.
 * @returns the keys of the counters, each with its server
 */
export async function acceptCountersOf(url: string): Promise<string[]> {
  const address = parseTarget(url);
  const opened: Server[] = [];
  try {
    const { list } = await serversOf(address, deploymentOf(address, 30_000), (server) => {
      opened.push(server);
      return server;
    });
    const accepted = await Promise.all(
      list.map(async (server) => {
        const keys = await acceptCounters(server, address.topology === "cluster");
        return keys.map((key) => `${key} on ${server.name}`);
      }),
    );
    return accepted.flat();
  } finally {
    for (const { client } of opened) client.disconnect();
  }
}

interface Servers {
  /** The servers that grant locks. */
  readonly list: readonly Server[];
  readonly findings: readonly Finding[];
}

async function serversOf(
  address: DoctorTarget,
  deployment: Deployment,
  open: (server: Server) => Server,
): Promise<Servers> {
  switch (address.topology) {
    case "server":
    case "quorum":
      return { list: address.endpoints.map((endpoint) => open(openServer(address, endpoint))), findings: [] };
    case "sentinel": {
      const sentinels = address.endpoints.map((endpoint) => open(openSentinel(address, endpoint)));
      const primary = await primaryBy(sentinels, address.primary);
      const findings = await checkSentinels(sentinels, deployment);
      return { list: primary === undefined ? [] : [open(openServer(address, primary))], findings };
    }
    case "cluster": {
      const seeds = address.endpoints.map((endpoint) => open(openServer(address, endpoint)));
      const [seed] = seeds as [Server];
      const nodes = await clusterNodes(seed.client);
      const primaries = nodes.filter(({ flags, slots }) => flags.includes("master") && slots !== "");
      return {
        list: primaries.map(({ host, port }) => open(openServer(address, { host: host || seed.host, port }))),
        findings: await checkCluster(seed.client, nodes),
      };
    }
  }
}

/** Checks each server, and all servers together. */
async function examine(
  { list }: Servers,
  deployment: Deployment,
  {
    clocks,
    openReplica,
  }: {
    readonly clocks: { readonly forMs: number; readonly signal: AbortSignal };
    readonly openReplica: (endpoint: { host: string; port: number }) => Server;
  },
): Promise<Finding[]> {
  const examined = await Promise.all(
    list.map(async (server) => {
      const failure = await connectionFailure(server);
      if (failure !== undefined) {
        const finding =
          rejectedUser(server.name, failure, deployment.address) ??
          unreachable(server.name, failure, list.length);
        return { facts: undefined, findings: [finding] };
      }
      const facts = await readFacts(server);
      const findings = [
        ...(await checkHandshake(server, facts, deployment.address)),
        ...runChecks(checksFor(deployment), facts, deployment),
        ...(await watchClock(facts, server.client, clocks)),
        ...(deployment.address.topology === "quorum"
          ? []
          : [
              ...(await checkCounters(server, deployment.address.topology === "cluster")),
              ...(await compareReplicas(facts, deployment, openReplica)),
            ]),
      ];
      return { facts, findings };
    }),
  );
  const facts = examined.map((one) => one.facts).filter((one) => one !== undefined);
  const findings = examined.flatMap((one) => one.findings);
  if (list.length > 0 && findings.length > 0 && findings.every(({ id }) => id === "unreachable")) {
    throw new UnreachableError(findings.map(({ node, observed }) => `${node}: ${observed}`).join("; "));
  }
  return [
    ...combinedFindings(findings, facts, deployment),
    ...(deployment.address.topology === "quorum"
      ? checkQuorum(facts, list.length, deployment).filter(isPresent)
      : []),
  ];
}

/**
 * The server's message if it refused the handshake, or why it does not reply. `connect()` itself rejects only with "connection closed". A
 * server that refuses PING replies.
 */
async function connectionFailure({ client }: Server): Promise<string | undefined> {
  let refusal: string | undefined;
  client.on("error", (error: unknown) => {
    refusal ??= errorMessage(error);
  });
  try {
    await client.connect();
    const silence = await client.ping().then(() => "", errorMessage);
    return silence.includes("timed out") ? `no reply: ${silence}` : undefined;
  } catch (error) {
    return refusal ?? errorMessage(error);
  }
}

function combinedFindings(
  findings: Finding[],
  facts: readonly ServerFacts[],
  { address }: Deployment,
): Finding[] {
  return address.topology === "cluster" ? commonAnswer(findings, facts) : findings;
}

function checksFor({ address }: Deployment): readonly Check[] {
  return [
    ...memoryChecks,
    ...persistenceChecks,
    ...replicationChecks,
    ...loadChecks,
    ...accessChecks,
    ...versionChecks,
    ...(address.topology === "cluster" ? clusterChecks : []),
    ...uncheckedFindings,
  ];
}

async function probeLocks(
  locks: NonNullable<ResolvedOptions["probe"]>,
  { query }: DoctorTarget,
  servers: readonly Server[],
): Promise<Probed> {
  const prefix = query.get("prefix") ?? "lock:";
  const probed = await probe(locks, servers[0]?.client);
  const refused = await Promise.all(
    servers.map(async ({ name, client }) => ({ name, commands: await refusedCommands(client, prefix) })),
  );
  return { ...probed, findings: [...probed.findings, ...refused.flatMap(commandsRefused)] };
}

function commandsRefused({ name, commands }: { name: string; commands: readonly string[] }): Finding[] {
  return commands.length === 0
    ? []
    : [
        {
          level: "critical",
          id: "commands-refused",
          node: name,
          observed: `the user lacks the right to: ${commands.join(", ")}`,
          impact: "acquires, renewals or releases may fail, or waiters may lose their order",
          fix: "grant the rights listed in docs/security.md, and keep them by ACL SAVE, or by CONFIG REWRITE without an ACL file",
          command: `ACL SETUSER <user> ${commands.map((command) => `+${command.toLowerCase()}`).join(" ")}`,
        },
      ];
}

function unreachable(node: string, observed: string, count: number): Finding {
  return {
    level: count > 1 ? "risk" : "critical",
    id: "unreachable",
    node,
    observed,
    impact: count > 1 ? "the quorum tolerates one failure less" : "locks cannot be acquired or renewed",
    fix: "check the server and the network",
  };
}

function deploymentOf(address: DoctorTarget, ttlMs: number): Deployment {
  const number = (name: string, byDefault: number): number => Number(address.query.get(name) ?? byDefault);
  return {
    address,
    ttlMs,
    maxTtlMs: number("maxTtlMs", 60_000),
    driftFactor: number("driftFactor", 0.01),
    minReplicas: number("minReplicas", 0),
  };
}

function isPresent(finding: Finding | false | undefined): finding is Finding {
  return finding !== false && finding !== undefined && finding.level !== undefined;
}
