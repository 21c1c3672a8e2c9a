// A process in which four schedulers fire the same job every 3 s, each under its own key.
//
//   node cron-schedulers.mjs <port> <key>
//
// It writes `ready`. Then it writes `ran <library> <fire>` or `skipped <library> <fire>` for each fire. `<fire>` counts the periods.

import { setTimeout as pause } from "node:timers/promises";

import { createLocks } from "holdfast";
import { oncePerFire, runCoordinator } from "holdfast/cron";
import { redis } from "holdfast/redis";
import { CronJob } from "cron";
import { Cron } from "croner";
import { Redis } from "ioredis";
import nodeCron from "node-cron";
import { scheduleJob } from "node-schedule";

const [port, key] = process.argv.slice(2);
const periodMs = 3_000;
const everyPeriod = "*/3 * * * * *";
const client = new Redis(Number(port));
const locks = createLocks(redis(client));

function report(result, library, at = Date.now()) {
  console.log(`${result} ${library} ${Math.floor(Number(at) / periodMs)}`);
}

function job(library) {
  const options = { keepMs: 1_800, onSkipped: () => report("skipped", library) };
  return oncePerFire(locks, `${key}:${library}`, options, async () => {
    report("ran", library);
    await pause(20);
  });
}

CronJob.from({ cronTime: everyPeriod, onTick: job("cron"), start: true, threshold: 1_500 });
new Cron(everyPeriod, job("croner"));
scheduleJob(everyPeriod, job("node-schedule"));

const coordinator = runCoordinator(locks, { keepMs: 4_000 }); // longer than the period
const task = nodeCron.schedule(
  everyPeriod,
  async (context) => {
    coordinator.leaseOf(context).throwIfLost();
    report("ran", "node-cron", context.date);
    await pause(20);
  },
  { name: `${key}:node-cron`, distributed: true, runCoordinator: coordinator },
);
task.on("execution:skipped", ({ date, reason }) =>
  report(`skipped${reason === "not-elected" ? "" : reason}`, "node-cron", date),
);
await client.ping();
console.log("ready");
