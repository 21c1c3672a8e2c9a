import { createReadStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

import type { ClientRecord, ConductorRecord, ResourceRecord } from "./history.ts";
import type { Plan } from "../plan/plan.ts";
import { ResourceReader } from "./read-resource.ts";
import { readClient } from "./read-client.ts";
import { readConductor } from "./read-coordinator.ts";
import type { RunStory } from "./attempts.ts";

/** Reads what a run left in its folder. */
export async function readHistory(folder: string): Promise<RunStory> {
  const plan = JSON.parse(await readFile(join(folder, "plan.json"), "utf8")) as Plan;
  const run: RunStory = {
    plan,
    stories: [],
    latchCalls: [],
    processes: new Map(),
    elections: [],
    extensions: [],
    serverRuns: [],
    breaks: [],
    faults: [],
    phases: [],
    failovers: [],
    resources: new Map(),
    left: [],
    restless: [],
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
  await eachLine<ConductorRecord>(join(history, "conductor.ndjson"), run, readConductor(run));
  return run;
}

/** The last line of a process that was killed may be cut off. */
async function eachLine<Kept extends { readonly at: number }>(
  path: string,
  run: RunStory,
  read: (record: Kept) => void,
): Promise<void> {
  let broken: string | undefined;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (broken !== undefined) {
      throw new Error(`${path} has a line that is no record: ${broken.slice(0, 200)}`);
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
