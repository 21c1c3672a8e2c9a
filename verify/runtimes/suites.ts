import { join } from "node:path";

import { tryCommand, type CommandResult } from "./command.ts";
import { failed, passed, type Outcome } from "./outcome.ts";
import type { InstalledServer } from "./programs.ts";
import { root } from "./project.ts";
import type { ServerName } from "./roster.ts";

/** The tests of a primary with replicas, and of Sentinel, on one server. */
export interface SuitesResult {
  readonly server: ServerName;
  readonly outcome: Outcome;
}

/** Servers differ in `WAIT` and in failovers. `npm test` runs these tests on the machine's server only. */
const folders = ["replicas", "sentinel"].map((name) => `packages/holdfast/test/integration/${name}/`);
const withinMs = 600_000;

/** Runs the tests on one server after another, because some of them measure how long a failover takes. */
export async function runSuites(
  servers: readonly InstalledServer[],
  onResult: (result: SuitesResult, total: number) => void,
): Promise<SuitesResult[]> {
  const results: SuitesResult[] = [];
  for (const { name, program } of servers) {
    const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
    // With CI=true a missing program is an error.
    const env = { HOLDFAST_REDIS_SERVER: program, CI: "true" };
    const run = await tryCommand(process.execPath, [vitest, "run", "--project", "servers", ...folders], {
      folder: root,
      withinMs,
      env,
    });
    const result = { server: name, outcome: outcomeOfTests(run) };
    results.push(result);
    onResult(result, servers.length);
  }
  return results;
}

/** The last line of the tests is `N passed, N failed`. */
export function outcomeOfTests({ code, stdout }: CommandResult): Outcome {
  if (code === 0) {
    return passed;
  }
  const counts = stdout.trim().split("\n").at(-1) ?? "";
  return failed(
    code === null ? "the tests did not end" : /^\d+ passed/.test(counts) ? counts : `exit code ${code}`,
  );
}
