import { setTimeout as pause } from "node:timers/promises";

import { inflict } from "./inject-faults.ts";
import type { Phase } from "../judge/history.ts";
import type { Plan, Storm } from "../plan/plan.ts";
import { Stage } from "./environment.ts";

const shortestPeaceMs = 3_000;
/** Callers end what they do, and then everybody gets every lock, one after another. */
const restWithinMs = 90_000;
const lookEveryMs = 100;

/** Plays a plan: calm, then storms with peace after each. The history goes to that folder. */
export async function conduct(plan: Plan, folder: string, say: (line: string) => void): Promise<void> {
  await using stage = await Stage.open(plan, folder);
  await peace(stage, plan, 0);
  for (const [index, storm] of plan.storms.entries()) {
    const round = index + 1;
    say(`${plan.engine}: storm ${round} of ${plan.storms.length}`);
    await rage(stage, storm, round);
    await peace(stage, plan, round);
  }
  begin(stage, "end", plan.storms.length + 1);
  await Promise.all(stage.clients.map((client) => client.stop()));
  await untilClean(stage, plan, plan.storms.length + 1);
  await countScripts(stage);
}

async function rage(stage: Stage, storm: Storm, round: number): Promise<void> {
  await countScripts(stage);
  begin(stage, "storm", round);
  for (const client of stage.clients) {
    client.tell({ order: "storm" });
  }
  const faults = storm.faults.map(async (fault) => {
    await pause(fault.at);
    await inflict(fault, stage);
  });
  await Promise.all([...faults, pause(storm.forMs)]);
}

/** All is healed: everybody has to get every lock, and nothing may be left. */
async function peace(stage: Stage, plan: Plan, round: number): Promise<void> {
  await stage.succession?.settled();
  await countScripts(stage);
  begin(stage, round === 0 ? "calm" : "peace", round);
  const enough = pause(round === 0 ? 0 : shortestPeaceMs);
  await Promise.all(
    stage.clients.map(async (client) => {
      if (!(await client.rest(round, restWithinMs))) {
        stage.write({ e: "restless", at: stage.now(), round, process: client.name });
      }
    }),
  );
  await untilClean(stage, plan, round);
  await enough;
}

async function untilClean(stage: Stage, plan: Plan, round: number): Promise<void> {
  const giveUpAt = stage.now() + plan.bounds.leftMs;
  await Promise.all(
    stage.servers.map(async (server, node) => {
      let keys = await server.leftovers();
      while (keys.length > 0 && stage.now() < giveUpAt) {
        await pause(lookEveryMs);
        keys = await server.leftovers();
      }
      if (keys.length > 0) {
        stage.write({ e: "left", at: stage.now(), round, node, keys });
      }
    }),
  );
  stage.write({ e: "clean", at: stage.now(), round });
}

async function countScripts(stage: Stage): Promise<void> {
  const counts = await Promise.all(stage.servers.map((server) => server.scriptCount()));
  const count = counts.reduce((sum, calls) => sum + calls, 0);
  stage.write({ e: "scripts", at: stage.now(), count });
}

function begin(stage: Stage, phase: Phase, round: number): void {
  stage.write({ e: "phase", at: stage.now(), phase, round });
}
