import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { document } from "./document.ts";
import { exitOnSignals, optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import type { Outcome } from "./outcome.ts";
import { runPrograms, type InstalledRuntime, type InstalledServer, type ProgramResult } from "./programs.ts";
import {
  createWorkspace,
  installProject,
  linkProject,
  packLibrary,
  root,
  typesProject,
  type Project,
} from "./project.ts";
import { allPassed, toText, type Results } from "./report.ts";
import { provideRuntime } from "./runtime-programs.ts";
import { provideServer } from "./server-programs.ts";
import { runSuites, type SuitesResult } from "./suites.ts";
import { runTypes, type TypesResult } from "./types.ts";

async function main(): Promise<void> {
  const options = optionsOrExit("verify:runtimes", usage, parseOptions);
  const workspace = await createWorkspace();
  try {
    const results = await verify(options, workspace);
    process.stdout.write(
      options.json ? `${JSON.stringify(results, null, 2)}\n` : `\n${toText(results, options)}\n`,
    );
    if (options.write) {
      await writeFile(join(root, "docs", "compatibility.md"), document(results, options));
    }
    process.exitCode = allPassed(results) ? 0 : 1;
  } finally {
    await rm(workspace, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function verify(options: ResolvedOptions, workspace: string): Promise<Results> {
  const pack = await packLibrary(workspace);
  const { servers, serverVersions, notRun } = await serversOf(options);
  const programs = options.parts.includes("programs")
    ? await verifyPrograms(options, workspace, pack, servers)
    : { programs: [], clientVersions: {} };
  const types = options.parts.includes("types")
    ? await runTypes(await typesProject(workspace, pack), progress(describeTypes))
    : [];
  // The tests start servers with options that Redis 6.2 does not accept.
  const newer = servers.filter(({ name }) => name !== "redis62");
  const suites = options.parts.includes("suites") ? await runSuites(newer, progress(describeSuites)) : [];
  const date = new Date().toISOString().slice(0, 10);
  return { date, ...programs, serverVersions, types, suites, notRun };
}

async function verifyPrograms(
  options: ResolvedOptions,
  workspace: string,
  pack: string,
  servers: readonly InstalledServer[],
): Promise<Pick<Results, "programs" | "clientVersions">> {
  const projects: Project[] = [];
  const clients = options.clients.filter(({ runtime }) => !options.offline || runtime === undefined);
  for (const client of clients) {
    const install = options.offline ? linkProject : installProject;
    projects.push(await install(workspace, pack, client));
  }
  const results = await runPrograms(
    { projects, servers, runtimes: await runtimesOf(options) },
    progress(describeProgram),
  );
  const clientVersions = Object.fromEntries(projects.map(({ client, version }) => [client.name, version]));
  return { programs: results, clientVersions };
}

interface ProvidedServers extends Pick<Results, "serverVersions" | "notRun"> {
  readonly servers: readonly InstalledServer[];
}

async function serversOf(options: ResolvedOptions): Promise<ProvidedServers> {
  if (!options.parts.some((part) => part !== "types")) {
    return { servers: [], serverVersions: {}, notRun: [] };
  }
  const servers: InstalledServer[] = [];
  const serverVersions: Record<string, string> = {};
  const notRun: string[] = [];
  for (const server of options.offline ? options.servers.slice(0, 1) : options.servers) {
    try {
      const { program, version } = await provideServer(server);
      servers.push({ name: server.name, program });
      serverVersions[server.name] = version;
    } catch (error) {
      notRun.push(`${server.title}: ${(error as Error).message}`);
    }
  }
  return { servers, serverVersions, notRun };
}

async function runtimesOf(options: ResolvedOptions): Promise<InstalledRuntime[]> {
  if (options.offline) {
    const title = `Node ${process.versions.node.split(".")[0]}`;
    const runsTypeScript = Boolean((process.features as { typescript?: unknown }).typescript);
    return [{ name: "node20", title, runsTypeScript, command: [process.execPath] }];
  }
  const installed: InstalledRuntime[] = [];
  for (const runtime of options.runtimes) {
    installed.push({ ...runtime, command: await provideRuntime(runtime) });
  }
  return installed;
}

/** Writes one line for each result to stderr. */
function progress<Result extends { readonly outcome: Outcome }>(
  describe: (result: Result) => string,
): (result: Result, total: number) => void {
  let completed = 0;
  return (result, total) => {
    completed += 1;
    const { outcome } = result;
    const reasons = outcome.state === "failed" ? ` (${outcome.reasons.join("; ")})` : "";
    process.stderr.write(`${completed}/${total} ${describe(result)}: ${outcome.state}${reasons}\n`);
  };
}

function describeProgram({ runtime, client, server, format }: ProgramResult): string {
  return `${runtime}, ${client}, ${server}, ${format}`;
}

function describeTypes({ compiler, setting }: TypesResult): string {
  return `TypeScript ${compiler}, ${setting}`;
}

function describeSuites({ server }: SuitesResult): string {
  return `tests of replicas and Sentinel, ${server}`;
}

exitOnSignals();

await main();
