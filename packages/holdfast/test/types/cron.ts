// The schedulers accept the jobs and the coordinator by their own types.

import { CronJob } from "cron";
import { Cron } from "croner";
import type { Lease, Locks } from "holdfast";
import { oncePerFire, runCoordinator } from "holdfast/cron";
import { schedule, type RunCoordinator, type TaskContext, type TaskOptions } from "node-cron";
import { scheduleJob } from "node-schedule";

export function schedules(locks: Locks, work: (lease: Lease) => Promise<number>): void {
  const job = oncePerFire(locks, "nightly", { keepMs: 60_000 }, work);
  CronJob.from({ cronTime: "0 3 * * *", onTick: job });
  new CronJob("0 3 * * *", job);
  new Cron("0 3 * * *", job);
  scheduleJob("0 3 * * *", job);
  scheduleJob(
    "0 3 * * *",
    oncePerFire(locks, "nightly", { keepMs: 60_000 }, (lease, fire: Date) => [lease.signal, fire.getTime()]),
  );
  new Cron(
    "0 3 * * *",
    oncePerFire(locks, "nightly", { keepMs: 60_000 }, (lease, cron: Cron) => [lease.key, cron.nextRun()]),
  );

  const coordinator = runCoordinator(locks);
  const options: TaskOptions = { name: "nightly", distributed: true, runCoordinator: coordinator };
  const standard: RunCoordinator = coordinator;
  schedule("0 3 * * *", (context: TaskContext) => coordinator.leaseOf(context)?.signal, options);
  void standard;
}
