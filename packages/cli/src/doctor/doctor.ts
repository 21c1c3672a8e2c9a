import { openEngine, urlOf, type Engine, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { Signals } from "../signals.ts";
import { errorMessage } from "../output.ts";
import { engineDoctorOf } from "./engines.ts";
import { parseTarget, type DoctorTarget } from "./url.ts";
import { accessChecks } from "./checks/access.ts";
import { runChecks, type Check } from "./checks/check.ts";
import { watchClock } from "./checks/clocks.ts";
import { clusterChecks, clusterNodes, checkCluster, commonAnswer } from "./checks/cluster.ts";
import { checkHandshake, rejectedUser } from "./checks/handshake.ts";
import { loadChecks, uncheckedFindings } from "./checks/load.ts";
import { memoryChecks } from "./checks/memory.ts";
import { persistenceChecks } from "./checks/persistence.ts";
import { checkQuorum } from "./checks/quorum.ts";
import { replicationChecks } from "./checks/replication.ts";
import { checkSentinels, primaryBy } from "./checks/sentinel.ts";
import { versionChecks } from "./checks/version.ts";
import { readFacts, type ServerFacts, type Deployment } from "./facts.ts";
import { isAtLeast, levels, type Finding, type Level } from "./finding.ts";
import { probe, refusedCommands, type Probe } from "./probe.ts";
import { report, type Diagnosis } from "./report.ts";
import { openSentinel, openServer, type Server } from "./servers.ts";

/** The extent of the checks. */
export interface Checks {
  readonly target: Target;
  readonly ttlMs: number;
  readonly watchMs: number;
  readonly probes: boolean;
}

export interface DoctorOptions extends Checks {
  readonly failOn: Level | "never";
  readonly json: boolean;
}

/**
 * Checks a deployment for risks to locks, without any change. The probe acquires a lock on a key of its own.
 * @returns 0; with a finding of level `failOn` or worse 1, or 2 for a critical one
 */
export async function doctor(options: DoctorOptions): Promise<number> {
  using signals = new Signals();
  const diagnosis = await diagnose(options, signals.interrupted);
  process.stdout.write(
    `${options.json ? JSON.stringify({ version: 1, ...diagnosis }) : report(diagnosis)}\n`,
  );
  const [worst] = diagnosis.findings;
  if (worst === undefined || options.failOn === "never" || !isAtLeast(worst.level, options.failOn)) {
    return exitCodes.done;
  }
  return worst.level === "critical" ? exitCodes.criticalFindings : exitCodes.findings;
}

/** The findings. Rejects with an `Exit` if no server can be asked. */
export async function diagnose(options: Checks, signal: AbortSignal): Promise<Diagnosis> {
  const url = urlOf(options.target);
  // The library comes first, because it refuses an invalid URL with the reason.
  const engine = await openEngine(options.target);
  try {
    const own = engineDoctorOf(url);
    if (own) {
      const examine = await own.load();
      const { nodes, findings } = await examine(url, options);
      const probed = await probeIfWanted(engine, options);
      return diagnosisOf(own.name, nodes, [...findings, ...probed.findings], probed.probe);
    }
    return await diagnoseServers(engine, options, { address: parseTarget(url), signal });
  } finally {
    await engine.locks.close();
  }
}

async function diagnoseServers(
  engine: Engine,
  options: Checks,
  { address, signal }: { readonly address: DoctorTarget; readonly signal: AbortSignal },
): Promise<Diagnosis> {
  const opened: Server[] = [];
  const open = (server: Server): Server => {
    opened.push(server);
    return server;
  };
  try {
    const deployment = deploymentOf(address, options.ttlMs);
    const servers = await serversOf(address, deployment, open);
    const [examined, probed] = await Promise.all([
      examine(servers, deployment, { forMs: options.watchMs, signal }),
      options.probes ? probeLocks(engine, options, servers.list) : { findings: [], probe: null },
    ]);
    const nodes = servers.list.map(({ name }) => name);
    const findings = [...servers.findings, ...examined, ...probed.findings];
    return diagnosisOf(address.topology, nodes, findings, probed.probe);
  } finally {
    for (const { client } of opened) client.disconnect();
  }
}

function diagnosisOf(
  topology: string,
  nodes: readonly string[],
  findings: Finding[],
  probed: Probe | null,
): Diagnosis {
  findings.sort((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
  return { topology, nodes, findings, probe: probed };
}

async function probeIfWanted(
  engine: Engine,
  { target, probes }: Checks,
): Promise<{ findings: Finding[]; probe: Probe | null }> {
  if (!probes) {
    return { findings: [], probe: null };
  }
  const other = await openEngine(target);
  try {
    return await probe(engine, other, undefined);
  } finally {
    await other.locks.close();
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
    case "service":
      return { list: [], findings: [] };
  }
}

/** Checks each server, and all servers together. */
async function examine(
  { list }: Servers,
  deployment: Deployment,
  clocks: { readonly forMs: number; readonly signal: AbortSignal },
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
      ];
      return { facts, findings };
    }),
  );
  const facts = examined.map((one) => one.facts).filter((one) => one !== undefined);
  const findings = examined.flatMap((one) => one.findings);
  if (list.length > 0 && findings.length > 0 && findings.every(({ id }) => id === "unreachable")) {
    throw new Exit(
      exitCodes.unavailable,
      findings.map(({ node, observed }) => `${node}: ${observed}`).join("; "),
    );
  }
  return [
    ...combinedFindings(findings, facts, deployment),
    ...(deployment.address.topology === "quorum"
      ? checkQuorum(facts, list.length, deployment).filter(isPresent)
      : []),
  ];
}

/** The server's message if it refused the handshake. `connect()` itself rejects only with "connection closed". */
async function connectionFailure({ client }: Server): Promise<string | undefined> {
  let refusal: string | undefined;
  client.on("error", (error: unknown) => {
    refusal ??= errorMessage(error);
  });
  return client.connect().then(
    () => undefined,
    (error: unknown) => refusal ?? errorMessage(error),
  );
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
  engine: Engine,
  { target }: Checks,
  servers: readonly Server[],
): Promise<{ findings: Finding[]; probe: Probe | null }> {
  const other = await openEngine(target);
  try {
    const prefix = parseTarget(urlOf(target)).query.get("prefix") ?? "lock:";
    const probed = await probe(engine, other, servers[0]?.client);
    const refused = await Promise.all(
      servers.map(async ({ name, client }) => ({ name, commands: await refusedCommands(client, prefix) })),
    );
    return { ...probed, findings: [...probed.findings, ...refused.flatMap(commandsRefused)] };
  } finally {
    await other.locks.close();
  }
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
          fix: "grant the rights listed in docs/security.md",
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
