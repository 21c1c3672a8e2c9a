import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { tryCommand, type CommandResult } from "./command.ts";
import { failed, passed, runJobs, type Outcome } from "./outcome.ts";
import { programFiles, type Project } from "./project.ts";
import { formats, type ClientName, type Format, type Runtime, type ServerName } from "./roster.ts";
import type { ProgramReport } from "./program.ts";
import type { RuntimeCommand } from "./runtime-programs.ts";

/** One run of the program. */
export interface ProgramResult {
  readonly runtime: string;
  readonly client: ClientName;
  readonly server: ServerName;
  readonly format: Format;
  readonly outcome: Outcome;
  /** Undefined if the program did not reach its end. */
  readonly report: ProgramReport | undefined;
}

export interface InstalledRuntime extends Pick<Runtime, "name" | "title" | "runsTypeScript"> {
  readonly command: RuntimeCommand;
}

export interface InstalledServer {
  readonly name: ServerName;
  readonly program: string;
}

interface Installed {
  readonly runtimes: readonly InstalledRuntime[];
  readonly projects: readonly Project[];
  readonly servers: readonly InstalledServer[];
}

interface Cell {
  readonly runtime: InstalledRuntime;
  readonly project: Project;
  readonly server: InstalledServer;
  readonly format: Format;
}

const withinMs = 90_000;

/** Runs the ES module on every server, and the other formats on the first one, because a format does not depend on the server. */
export async function runPrograms(
  { runtimes, projects, servers }: Installed,
  onResult: (result: ProgramResult, total: number) => void,
): Promise<ProgramResult[]> {
  const cells = runtimes.flatMap((runtime) =>
    projects
      .filter(({ client }) => (client.runtime ?? runtime.name) === runtime.name)
      .flatMap((project) =>
        servers.flatMap((server, index) =>
          formats
            .filter(
              (format) => format === "esm" || (index === 0 && (format !== "ts" || runtime.runsTypeScript)),
            )
            .map((format): Cell => ({ runtime, project, server, format })),
        ),
      ),
  );
  return runJobs(cells, async (cell) => {
    const result = await runCell(cell);
    onResult(result, cells.length);
    return result;
  });
}

/** Each cell has a server of its own, so that cells use the same keys. */
async function runCell({ runtime, project, server, format }: Cell): Promise<ProgramResult> {
  const { client, folder } = project;
  const redis = await startRedis({ program: server.program });
  try {
    const [program, ...args] = runtime.command;
    const own = [programFiles[format], client.library, urlOf(redis), format];
    const run = await tryCommand(program, [...args, ...own], {
      folder,
      withinMs,
      env: { DENO_NO_UPDATE_CHECK: "1", DENO_NO_PROMPT: "1" },
    });
    const report = reportIn(run.stdout);
    return {
      runtime: runtime.title,
      client: client.name,
      server: server.name,
      format,
      outcome: outcomeOf(run, report),
      report,
    };
  } finally {
    await redis.stop();
  }
}

function urlOf({ port }: RedisServer): string {
  return `redis://127.0.0.1:${port}`;
}

function reportIn(stdout: string): ProgramReport | undefined {
  const line = stdout.split("\n").find((candidate) => candidate.startsWith('{"version"'));
  return line === undefined ? undefined : (JSON.parse(line) as ProgramReport);
}

/** A cell passes if its program has no failed check, and then ends without an exit call. */
export function outcomeOf(
  { code, stdout, stderr }: CommandResult,
  report: ProgramReport | undefined,
): Outcome {
  if (report === undefined) {
    const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => line.trim() !== "");
    return failed(`no end of the program: ${lines.slice(-6).join(" / ")}`);
  }
  const reasons = [...report.failures];
  if (code === null) {
    reasons.push("the process did not end after the program");
  } else if (code !== 0) {
    reasons.push(`exit code ${code}`);
  }
  return reasons.length === 0 ? passed : failed(...reasons);
}
