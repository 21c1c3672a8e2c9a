import { setTimeout as pause } from "node:timers/promises";

import { startRedis } from "@holdfast/test-kit";

import { connect, type Client } from "../clients.ts";
import { formatCount, outcomeOf, notOffered, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";

const ttlMs = 1_000;
const watchedMs = 1_000;
const maxCommands = 100;

/** A lease of one second is held and renewed, and the server counts the commands. */
export const tinyTtl: Scenario = {
  withinMs: 15_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const observer = direct(server);
    const locks = library.onServer(connect(server.port));
    if (locks.hold === null) {
      return notOffered("no renewal");
    }
    await warmUp(locks);
    const lease = await locks.hold("tiny-ttl", ttlMs);
    const countBefore = await commands(observer);
    await pause(watchedMs);
    const count = (await commands(observer)) - countBefore - 1;
    const isKept = lease.isHeld() && (await observer.exists(locks.nameOnServer("tiny-ttl"))) === 1;
    return outcomeOf(
      [
        ...(count > maxCommands ? [`${formatCount(count)} commands in 1 s for one lease`] : []),
        ...(isKept ? [] : ["the lease was lost"]),
      ],
      `${count} commands in 1 s`,
    );
  },
};

async function commands(observer: Client): Promise<number> {
  const stats: string = await observer.info("commandstats");
  const calls = Array.from(stats.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm));
  return calls.reduce((sum, [, count]) => sum + Number(count), 0);
}
