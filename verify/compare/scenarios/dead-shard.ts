import { setTimeout as pause } from "node:timers/promises";

import { startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import type { Kept } from "../library.ts";
import { grouped, judged, notOffered, time, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { direct, warmUp } from "../environment.ts";

const leases = 5_000;
/** In turn, so that no machine is too slow for renewals that would else come all at once. */
const batches = 20;
const apartMs = 150;
const ttlMs = 10_000;
/** A client gives a command up after ten seconds of a dead server: what the library makes of that counts too. */
const watchedMs = 16_000;

/** One process keeps five thousand leases on each of two servers, and one of these is killed. */
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
    const { keep } = onLiving;
    const keepThere = onDying.keep;
    if (keep === null || keepThere === null) {
      return notOffered("no renewal");
    }
    await Promise.all([warmUp(onLiving), warmUp(onDying)]);
    const kept: Kept[] = [];
    for (let batch = 0; batch < batches; batch += 1) {
      const keys = Array.from({ length: leases / batches }, (_, number) => `shard:${batch}:${number}`);
      const [here] = await Promise.all([
        Promise.all(keys.map((key): Promise<Kept> => keep(key, ttlMs))),
        Promise.all(keys.map((key): Promise<Kept> => keepThere(key, ttlMs))),
      ]);
      kept.push(...here);
      await pause(apartMs);
    }
    dying.kill("SIGKILL");
    const end = performance.now() + watchedMs;
    let fewest = leases;
    while (performance.now() < end) {
      await pause(250);
      const names: string[] = await observer.keys(onLiving.nameOnServer("shard:*"));
      fewest = Math.min(fewest, names.length);
    }
    const given = kept.filter((lease) => !lease.isMine()).length;
    const lost = leases - fewest;
    const of = `of ${grouped(leases)} leases on the living server`;
    return judged(
      [
        ...(lost > 0 ? [`${grouped(lost)} ${of} expired within ${time(watchedMs)}`] : []),
        ...(given > 0 ? [`${grouped(given)} ${of} were told lost`] : []),
      ],
      `all ${of} were renewed`,
    );
  },
};
