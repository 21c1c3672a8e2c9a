import { limitMs } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { zookeeper } from "holdfast/zookeeper";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import { remainingAtLoss } from "../../support/loss.ts";
import { onZooKeeper, startEnsemble, type ZooKeeperServer } from "../../support/zookeeper-server.ts";

onZooKeeper("an ensemble of three ZooKeeper servers", () => {
  let members: ZooKeeperServer[];
  let opened: Locks[] = [];

  beforeAll(async () => {
    members = await startEnsemble();
  });

  afterEach(async () => {
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
  });

  afterAll(async () => {
    await Promise.all(members.map((member) => member.stop()));
  });

  function open(servers: readonly ZooKeeperServer[] = members): Locks {
    const locks = createLocks(zookeeper(servers.map(({ address }) => address)));
    opened.push(locks);
    return locks;
  }

  async function leader(): Promise<ZooKeeperServer> {
    for (;;) {
      for (const member of members) {
        if ((await member.role().catch(() => "down")) === "leader") {
          return member;
        }
      }
    }
  }

  /** Callers that acquire one lock by turns, while `disturb` runs, and until each has had more turns after it. */
  async function contend(key: string, disturb: () => Promise<void>): Promise<ExclusionChecker> {
    const checker = new ExclusionChecker();
    let isDisturbed = false;
    const callers = Array.from({ length: 4 }, async () => {
      const locks = open();
      for (let turnsAfter = 0; turnsAfter < 3;) {
        const lease = await locks.acquire(key, { ttlMs: 3_000, waitMs: 120_000 }).catch(() => undefined);
        if (lease) {
          checker.granted(lease);
          await checker.release(lease).catch(() => false);
          turnsAfter += isDisturbed ? 1 : 0;
        }
      }
    });
    await expect.poll(() => checker.grants, { timeout: limitMs(30_000) }).toBeGreaterThan(10);
    await disturb();
    isDisturbed = true;
    await Promise.all(callers);
    return checker;
  }

  test("keeps a lease and its waiters when the leader is killed", async () => {
    const [here, there] = [open(), open()];
    const lease = await here.acquire("leader", { ttlMs: 60_000 });
    const next = there.acquire("leader", { waitMs: 120_000 });
    await expect.poll(async () => (await here.inspect("leader")).waiterCount).toBe(1);
    const killed = await leader();
    await killed.kill();
    await expect
      .poll(
        () =>
          lease.extend().then(
            () => true,
            () => false,
          ),
        { timeout: limitMs(50_000) },
      )
      .toBe(true);
    expect(await lease.release()).toBe(true);
    const following = await next;
    expect(following.fencingToken).toBeGreaterThan(lease.fencingToken);
    await killed.restart();
  });

  test("has one holder at a time, and rising fencing tokens, when the leader is killed", async () => {
    const checker = await contend("killed leader", async () => {
      const killed = await leader();
      await killed.kill();
      await leader();
      await killed.restart();
    });
    expect(checker.faults).toEqual([]);
  });

  test("has one holder at a time, and rising fencing tokens, when the leader is frozen", async () => {
    const checker = await contend("frozen leader", async () => {
      const frozen = await leader();
      frozen.freeze();
      await expect.poll(() => newLeader(frozen), { timeout: limitMs(50_000) }).toBe(true);
      frozen.resume();
    });
    expect(checker.faults).toEqual([]);
  });

  test("loses a lease in time at a follower without a majority, which still answers pings", async () => {
    const leading = await leader();
    const follower = members.find((member) => member !== leading) as ZooKeeperServer;
    const here = open([follower]);
    const lease = await here.acquire("minority", { ttlMs: 2_000 });
    const others = members.filter((member) => member !== follower);
    others.forEach((member) => member.freeze());
    const left = await remainingAtLoss(lease);
    others.forEach((member) => member.resume());
    expect(left).toBeGreaterThanOrEqual(0);
    const next = await open().acquire("minority", { waitMs: 120_000 });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await next.release()).toBe(true);
  });

  /** Whether another member leads. */
  async function newLeader(old: ZooKeeperServer): Promise<boolean> {
    const others = members.filter((member) => member !== old);
    const roles = await Promise.all(others.map((member) => member.role().catch(() => "down")));
    return roles.includes("leader");
  }
});
