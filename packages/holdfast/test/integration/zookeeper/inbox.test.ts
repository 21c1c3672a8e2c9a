import { limitMs, startProxy } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { zookeeper } from "holdfast/zookeeper";
import { afterAll, beforeAll, expect, test } from "vitest";

import { create, getChildren, multi, remove } from "../../../src/drivers/zookeeper/wire/operations.ts";
import { Session } from "../../../src/drivers/zookeeper/wire/session.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { systemRandom } from "../../../src/runtime/random.ts";
import { expectBoundedAudit, expectOneRecordAfterLostReply } from "../../support/audit-attacks.ts";
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
    await expect.poll(() => childrenOf("/inbox/clients"), { timeout: limitMs(30_000) }).toHaveLength(2);
    expect(
      await there.admin.breakLock("broken", { fencingToken: lease.fencingToken, reason: "by hand" }),
    ).toBe(true);
    await remainingAtLoss(lease);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "broken" });
    await Promise.all([here.close(), there.close()]);
  });

  test("a break whose reply is lost has one record, and 1 000 records are kept", async () => {
    const proxy = await startProxy(server.port);
    const [holder, other] = [open(), open()];
    const operator = createLocks(zookeeper(`127.0.0.1:${proxy.port}`, { root: "/inbox" }));
    await expectOneRecordAfterLostReply(holder, operator, () => {
      void proxy.loseNextReply(/audit\/break-/);
    });
    const value = JSON.stringify({ key: "k", fencingToken: "1", note: '{"by":"ada","reason":"old"}' });
    const record = create("/inbox/audit/break-", value, "persistent-sequential", "world");
    const session = openSession();
    for (let batch = 0; batch < 15; batch += 1) {
      await session.request(multi(...Array.from({ length: 70 }, () => record)));
    }
    await session.close();
    await expectBoundedAudit([holder, other]);
    await Promise.all([holder.close(), other.close(), operator.close()]);
    await proxy.stop();
  });

  async function childrenOf(path: string): Promise<string[]> {
    const session = openSession();
    const children = await session.freshly(getChildren(path));
    await session.close();
    return children;
  }

  async function removeChildren(path: string, count: number): Promise<void> {
    await expect.poll(() => childrenOf(path), { timeout: limitMs(30_000) }).toHaveLength(count);
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
