import type { Redis } from "ioredis";
import { limitMs, startLongUp, startRedis, type RedisServer } from "@holdfast/test-kit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { moreTurns, Pod, type FleetOptions } from "../../support/fleet.ts";
import { onLongUpRedis } from "../../support/servers.ts";

const load = { tasks: 3, holdMs: 1, pauseMs: 20, lockTimeout: 3_000 };
const patienceMs = limitMs(400_000);

onLongUpRedis("a fleet of redis-semaphore and its replacement", () => {
  /** The server of `Mutex`, and of the register of holders. */
  let single: RedisServer;
  let nodes: RedisServer[];
  let direct: Redis;
  let pods: Pod[] = [];

  beforeAll(async () => {
    single = await startRedis();
    nodes = await Promise.all([0, 1, 2].map(() => startLongUp()));
    direct = single.client();
  });

  afterEach(async () => {
    await Promise.all(pods.map((pod) => pod.kill()));
    pods = [];
  });

  afterAll(async () => {
    await Promise.all([single, ...nodes].map((server) => server.stop()));
  });

  function fleetOptions(key: string, servers: readonly RedisServer[]): FleetOptions {
    return { ...load, key, lockPorts: servers.map(({ port }) => port), registerPort: single.port };
  }

  function start(options: FleetOptions, ...libraries: readonly ("old" | "new")[]): Pod[] {
    const started = libraries.map((library, index) =>
      Pod.start(`${library}${pods.length + index}`, library, options),
    );
    pods.push(...started);
    return started;
  }

  /** No two turns overlapped, no increment was lost, and no lock remains. */
  async function expectExclusion(key: string): Promise<void> {
    expect(pods.flatMap(({ overlaps }) => overlaps)).toEqual([]);
    expect(pods.flatMap(({ losses }) => losses)).toEqual([]);
    const turns = pods.reduce((sum, pod) => sum + pod.turns, 0);
    expect(Number(await direct.get(`turns:${key}`))).toBe(turns);
    expect(await direct.exists(`mutex:${key}`)).toBe(0);
  }

  test.each([
    ["Mutex", () => [single]],
    ["RedlockMutex", () => nodes],
  ])(
    "excludes all others during a rolling migration, with %s",
    async (className, serversOf) => {
      const key = `rolling-${className}`;
      const options = fleetOptions(key, serversOf());
      const old = start(options, "old", "old");
      await moreTurns(old, 20);
      const replaced = start(options, "new", "new");
      await moreTurns(pods, 10);
      await old[0]?.stop();
      await moreTurns([old[1] as Pod, ...replaced], 10);
      await old[1]?.stop();
      await moreTurns(replaced, 20);
      await Promise.all(replaced.map((pod) => pod.stop()));
      await expectExclusion(key);
    },
    patienceMs,
  );

  test.each(["old", "new"] as const)(
    "continues after the death of a pod with the %s library",
    async (library) => {
      const key = `death-${library}`;
      const options = fleetOptions(key, [single]);
      const [victim, ...others] = start(options, library, "old", "new");
      await moreTurns(pods, 5);
      await victim?.kill();
      await moreTurns(others, 10);
      await Promise.all(others.map((pod) => pod.stop()));
      const ofVictim = new RegExp(`^${victim?.name}\\.`);
      const overlaps = others.flatMap((pod) => pod.overlaps);
      expect(overlaps.filter(([, other]) => !ofVictim.test(other))).toEqual([]);
      expect(overlaps.length).toBeLessThanOrEqual(1);
      expect(others.flatMap(({ losses }) => losses)).toEqual([]);
    },
    patienceMs,
  );
});
