import { setTimeout as pause } from "node:timers/promises";

import { startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import type { HeldLock } from "../library.ts";
import { formatCount, outcomeOf, notOffered, formatMs, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";

const leases = 5_000;
/** The leases are acquired in batches, so that their renewals are spread over time, also on a slow machine. */
const batches = 20;
const batchIntervalMs = 150;
const ttlMs = 10_000;
/** The client fails a command after ten seconds without a reply. The reaction of the library counts too. */
const watchedMs = 16_000;

/** One process holds 5 000 leases on each of two servers, and one server is killed. */
export const deadShard: Scenario = {
  withinMs: 60_000,
  run: async (library): Promise<Outcome> => {
    const servers = await Promise.all([startRedis(), startRedis()]);
    const [living, dying] = servers;
    const observer = direct(living);
    const [onLiving, onDying] = [
      library.onServer(connect(living.port)),
      library.onServer(connect(dying.port)),
    ];
    const { hold } = onLiving;
    const holdKey = onDying.hold;
    if (hold === null || holdKey === null) {
      return notOffered("no renewal");
    }
    await Promise.all([warmUp(onLiving), warmUp(onDying)]);
    const held: HeldLock[] = [];
    for (let batch = 0; batch < batches; batch += 1) {
      const keys = Array.from({ length: leases / batches }, (_, number) => `shard:${batch}:${number}`);
      const [key] = await Promise.all([
        Promise.all(keys.map((key): Promise<HeldLock> => hold(key, ttlMs))),
        Promise.all(keys.map((key): Promise<HeldLock> => holdKey(key, ttlMs))),
      ]);
      held.push(...key);
      await pause(batchIntervalMs);
    }
    dying.kill("SIGKILL");
    const end = performance.now() + watchedMs;
    let fewest = leases;
    while (performance.now() < end) {
      await pause(250);
      const names: string[] = await observer.keys(onLiving.nameOnServer("shard:*"));
      fewest = Math.min(fewest, names.length);
    }
    const acquired = held.filter((lease) => !lease.isHeld()).length;
    const lost = leases - fewest;
    const total = `of ${formatCount(leases)} leases on the living server`;
    return outcomeOf(
      [
        ...(lost > 0 ? [`${formatCount(lost)} ${total} expired within ${formatMs(watchedMs)}`] : []),
        ...(acquired > 0 ? [`${formatCount(acquired)} ${total} were reported as lost`] : []),
      ],
      `all ${total} were renewed`,
    );
  },
};
