import { ServerClocks } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { mysql, type MysqlClient } from "holdfast/mysql";
import { createPool, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onGalera, startGalera, type GaleraCluster } from "../../support/galera-cluster.ts";

onGalera("a Galera cluster, with clients at two nodes,", () => {
  const maxClockDifferenceMs = 1_500;
  let clocks: ServerClocks;
  let cluster: GaleraCluster | undefined;
  let pools: [Pool, Pool];
  let locks: [Locks, Locks];
  /** The errors of the nodes. */
  const errors: number[] = [];

  beforeAll(async () => {
    clocks = await ServerClocks.make(1);
    const started = await startGalera(clocks.clocks[0]?.env);
    cluster = started;
    const [first, second] = started.nodes;
    pools = [createPool({ uri: first.url }), createPool({ uri: second.url })];
    const open = (pool: Pool): Locks => createLocks(mysql(recorded(pool), { maxClockDifferenceMs }));
    locks = [open(pools[0]), open(pools[1])];
  });

  afterAll(async () => {
    if (cluster === undefined) {
      return;
    }
    await Promise.all(locks.map((one) => one.close()));
    await Promise.all(pools.map((pool) => pool.end()));
    await cluster.stop();
    await clocks[Symbol.asyncDispose]();
  });

  function recorded(pool: Pool): MysqlClient {
    return {
      query: (sql) => pool.query(sql),
      execute: (sql, values) =>
        pool.execute(sql, values).catch((error: unknown) => {
          errors.push((error as { errno: number }).errno);
          throw error;
        }),
    };
  }

  /** How many transactions the nodes have rolled back because of a conflict. */
  async function conflicts(): Promise<number> {
    const counts = pools.map(async (pool) => {
      const [rows] = await pool.query<RowDataPacket[]>(
        `SELECT SUM(variable_value) AS count FROM information_schema.global_status
         WHERE variable_name IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')`,
      );
      return Number(rows[0]?.["count"]);
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  test("never grants a key twice, and repeats the transactions that conflict (1213)", async () => {
    errors.length = 0;
    const before = await conflicts();
    const tokens: bigint[] = [];
    let isInside = false;
    for (let turn = 0; turn < 200 && (turn < 20 || !errors.includes(1213)); turn += 1) {
      await Promise.all(
        locks.map((one) =>
          one.withLock("shared", { waitMs: 30_000 }, async (lease) => {
            expect(isInside).toBe(false);
            isInside = true;
            tokens.push(lease.fencingToken);
            await pools[0].query("SELECT 1");
            isInside = false;
          }),
        ),
      );
    }
    expect(errors).toContain(1213);
    expect(await conflicts()).toBeGreaterThan(before);
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  test("tries at two nodes at once get one grant", async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      const leases = await Promise.all(locks.map((one) => one.tryAcquire(`try ${turn}`)));
      expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
    }
  });

  test("refuses a driver without the largest difference of the clocks", async () => {
    const unset = createLocks(mysql(pools[0]));
    await expect(unset.acquire("any")).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("Set the option `maxClockDifferenceMs`"),
    });
    await unset.close();
  });

  test("a node whose clock is 1 s ahead grants no key before the end of a valid lease", async () => {
    clocks.clocks[0]?.set({ aheadMs: 1_000 });
    for (const [from, to] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const lease = await locks[from].acquire("clocks", { ttlMs: 3_000, renew: false });
      await lease.extend(3_000);
      const next = await locks[to].acquire("clocks", { waitMs: 20_000 });
      expect(lease.remainingMs()).toBe(0);
      await next.release();
    }
    clocks.clocks[0]?.set({});
  });

  test("an adopted lease is not valid for longer at a node with a slower clock", async () => {
    clocks.clocks[0]?.set({ aheadMs: -1_000 });
    const lease = await locks[0].acquire("adopted", { ttlMs: 3_000, renew: false });
    const adopted = await locks[1].adopt(lease.transfer(), { renew: false });
    const next = await locks[0].acquire("adopted", { waitMs: 20_000 });
    expect(adopted.remainingMs()).toBe(0);
    await next.release();
    clocks.clocks[0]?.set({});
  });
});
