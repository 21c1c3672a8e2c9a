import { createReadStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

import type { ClientRecord, CoordinatorRecord, ResourceRecord } from "./history.ts";
import type { Plan } from "../plan/plan.ts";
import { ResourceReader } from "./read-resource.ts";
import { readClient } from "./read-client.ts";
import { readCoordinator } from "./read-coordinator.ts";
import type { RunHistory } from "./attempts.ts";

/** Reads the history that a run left in its folder. */
export async function readHistory(folder: string): Promise<RunHistory> {
  const plan = JSON.parse(await readFile(join(folder, "plan.json"), "utf8")) as Plan;
  const run: RunHistory = {
    plan,
    attempts: [],
    latchCalls: [],
    processes: new Map(),
    majorityGrants: [],
    extensions: [],
    serverRuns: [],
    breaks: [],
    faults: [],
    phases: [],
    failovers: [],
    resources: new Map(),
    residue: [],
    notQuiescent: [],
    scripts: [],
    endedAt: 0,
  };
  const history = join(folder, "history");
  const files = (await readdir(history)).filter((name) => name.endsWith(".ndjson"));
  for (const name of files.filter((file) => file.startsWith("client-")).sort()) {
    await eachLine<ClientRecord>(join(history, name), run, readClient(run, name.slice(0, -".ndjson".length)));
  }
  const resource = new ResourceReader(run.resources);
  await eachLine<ResourceRecord>(join(history, "resource.ndjson"), run, (record) => {
    resource.read(record);
  });
  await eachLine<CoordinatorRecord>(join(history, "coordinator.ndjson"), run, readCoordinator(run));
  return run;
}

/** Reads each line. The last line of a killed process may be incomplete. */
async function eachLine<Kept extends { readonly at: number }>(
  path: string,
  run: RunHistory,
  read: (record: Kept) => void,
): Promise<void> {
  let broken: string | undefined;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (broken !== undefined) {
      throw new Error(`${path} has a line that is not a record: ${broken.slice(0, 200)}`);
    }
    const record = parsed<Kept>(line);
    if (record === undefined) {
      broken = line;
    } else {
      run.endedAt = Math.max(run.endedAt, record.at);
      read(record);
    }
  }
}

function parsed<Kept>(line: string): Kept | undefined {
  try {
    return JSON.parse(line) as Kept;
  } catch {
    return undefined;
  }
}
