import { createLocks, type Locks } from "holdfast";
import { zookeeper } from "holdfast/zookeeper";
import { afterAll, beforeAll, expect, test } from "vitest";

import { getChildren, multi, remove } from "../../../src/drivers/zookeeper/wire/operations.ts";
import { Session } from "../../../src/drivers/zookeeper/wire/session.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { systemRandom } from "../../../src/runtime/random.ts";
import { remainingAtLoss } from "../../support/loss.ts";
import { onZooKeeper, startZooKeeper, type ZooKeeperServer } from "../../support/zookeeper-server.ts";

onZooKeeper("the inbox of a ZooKeeper driver:", () => {
  let server: ZooKeeperServer;

  beforeAll(async () => {
    server = await startZooKeeper();
  });

  afterAll(async () => {
    await server.stop();
  });

  test("a holder learns of a break at once, also after the loss of its inbox", async () => {
    const [here, there] = [open(), open()];
    const lease = await here.acquire("broken", { ttlMs: 120_000 });
    await there.inspect("broken");
    await removeChildren("/inbox/clients", 2);
    await expect.poll(() => childrenOf("/inbox/clients"), { timeout: 30_000 }).toHaveLength(2);
    expect(await there.breakLock("broken", { fencingToken: lease.fencingToken, reason: "by hand" })).toBe(
      true,
    );
    await remainingAtLoss(lease);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "broken" });
    await Promise.all([here.close(), there.close()]);
  });

  async function childrenOf(path: string): Promise<string[]> {
    const session = openSession();
    const children = await session.freshly(getChildren(path));
    await session.close();
    return children;
  }

  async function removeChildren(path: string, count: number): Promise<void> {
    await expect.poll(() => childrenOf(path), { timeout: 30_000 }).toHaveLength(count);
    const session = openSession();
    await session.request(
      multi(...(await session.freshly(getChildren(path))).map((name) => remove(`${path}/${name}`))),
    );
    await session.close();
  }

  function openSession(): Session {
    const hosts = [{ host: "127.0.0.1", port: server.port }];
    return new Session({
      hosts,
      sessionTimeoutMs: 10_000,
      commandTimeoutMs: 5_000,
      credentials: undefined,
      clock: systemClock,
      random: systemRandom,
    });
  }

  function open(): Locks {
    return createLocks(zookeeper(server.address, { root: "/inbox" }));
  }
});
