import { setTimeout as pause } from "node:timers/promises";

import { injectFault } from "./inject-faults.ts";
import type { Phase } from "../judge/history.ts";
import type { Plan, Storm } from "../plan/plan.ts";
import { Environment } from "./environment.ts";

const minQuietPeriodMs = 3_000;
/** In this time callers end their tasks, and then every process acquires every lock, one after another. */
const quiescenceTimeoutMs = 90_000;
const pollMs = 100;

/** Runs a plan: a calm phase, then storms with a quiet period after each. The history goes to the folder. */
export async function runPlan(plan: Plan, folder: string, report: (line: string) => void): Promise<void> {
  await using environment = await Environment.open(plan, folder);
  await runQuietPeriod(environment, plan, 0);
  for (const [index, storm] of plan.storms.entries()) {
    const round = index + 1;
    report(`${plan.engine}: storm ${round} of ${plan.storms.length}`);
    await runStorm(environment, storm, round);
    await runQuietPeriod(environment, plan, round);
  }
  beginPhase(environment, "end", plan.storms.length + 1);
  await Promise.all(environment.clients.map((client) => client.stop()));
  await awaitNoResidue(environment, plan, plan.storms.length + 1);
  await countScripts(environment);
}

async function runStorm(environment: Environment, storm: Storm, round: number): Promise<void> {
  await countScripts(environment);
  beginPhase(environment, "storm", round);
  for (const client of environment.clients) {
    client.send({ order: "storm" });
  }
  const faults = storm.faults.map(async (fault) => {
    await pause(fault.at);
    await injectFault(fault, environment);
  });
  await Promise.all([...faults, pause(storm.forMs)]);
}

/** All faults have ended: every process must get every lock, and no residue may stay. */
async function runQuietPeriod(environment: Environment, plan: Plan, round: number): Promise<void> {
  await environment.failovers?.awaitStable();
  await countScripts(environment);
  beginPhase(environment, round === 0 ? "calm" : "quiet", round);
  const minimumTime = pause(round === 0 ? 0 : minQuietPeriodMs);
  await Promise.all(
    environment.clients.map(async (client) => {
      if (!(await client.awaitQuiescence(round, quiescenceTimeoutMs))) {
        environment.write({ e: "not-quiescent", at: environment.now(), round, process: client.name });
      }
    }),
  );
  await awaitNoResidue(environment, plan, round);
  await minimumTime;
}

async function awaitNoResidue(environment: Environment, plan: Plan, round: number): Promise<void> {
  const deadline = environment.now() + plan.bounds.residueMs;
  await Promise.all(
    environment.servers.map(async (server, node) => {
      let keys = await server.residue();
      while (keys.length > 0 && environment.now() < deadline) {
        await pause(pollMs);
        keys = await server.residue();
      }
      if (keys.length > 0) {
        environment.write({ e: "residue", at: environment.now(), round, node, keys });
      }
    }),
  );
  environment.write({ e: "clean", at: environment.now(), round });
}

async function countScripts(environment: Environment): Promise<void> {
  const counts = await Promise.all(environment.servers.map(async (server) => server.scriptCount?.()));
  if (counts.every((calls) => calls !== undefined)) {
    const count = counts.reduce((sum, calls) => sum + calls, 0);
    environment.write({ e: "scripts", at: environment.now(), count });
  }
}

function beginPhase(environment: Environment, phase: Phase, round: number): void {
  environment.write({ e: "phase", at: environment.now(), phase, round });
}
