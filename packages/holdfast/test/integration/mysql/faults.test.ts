import { limitMs } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { connect } from "holdfast/connect";
import { mysql, type MysqlClient } from "holdfast/mysql";
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";

import { expectBoundedAudit, expectOneRecordAfterLostReply } from "../../support/audit-attacks.ts";
import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("holdfast/mysql under faults", () => {
  let server: MariaDbServer;
  let pool: Pool;

  beforeAll(async () => {
    server = await startMariaDb([]); // every commit is durable
    pool = createPool({ uri: server.url });
  });

  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  /** A client that changes calls of one procedure. */
  function altered(
    name: string,
    call: (execute: () => Promise<[unknown, unknown]>) => Promise<[unknown, unknown]>,
  ) {
    const client: MysqlClient = {
      query: (sql) => pool.query(sql),
      execute: (statement, values) => {
        const execute = (): Promise<[unknown, unknown]> => pool.execute(statement, values);
        return statement.sql.includes(`holdfast6_${name}(`) ? call(execute) : execute();
      },
    };
    return createLocks(mysql(client));
  }

  test("a try does not overtake a waiter whose next poll is late", async () => {
    let isLate = false;
    const slow = altered("acquire", (execute) => (isLate ? new Promise(() => undefined) : execute()));
    const here = createLocks(mysql(pool));
    const lease = await here.acquire("queue");
    const next = slow.acquire("queue", { waitMs: 60_000 });
    await expect.poll(async () => (await here.inspect("queue")).waiterCount).toBe(1);
    isLate = true;
    await lease.release();
    expect(await here.tryAcquire("queue")).toBeNull();
    isLate = false;
    expect(await (await next).release()).toBe(true);
    await Promise.all([here.close(), slow.close()]);
  });

  test("a server that was made read-only grants and extends nothing, whoever created the procedures", async () => {
    const here = createLocks(mysql(pool));
    const lease = await here.acquire("replaced", { ttlMs: 60_000, renew: false });
    await pool.query("SET GLOBAL read_only = ON");
    const refusal = { code: "engine-unavailable", outcome: "none", retryable: true };
    await expect(here.tryAcquire("other")).rejects.toMatchObject(refusal);
    await expect(lease.extend()).rejects.toMatchObject(refusal);
    expect((await here.inspect("replaced")).holders).toHaveLength(1);
    await pool.query("SET GLOBAL read_only = OFF");
    expect(await lease.release()).toBe(true);
    await here.close();
  });

  test("a lease and a queue survive a server that is killed and restarted", async () => {
    const here = createLocks(await connect(server.url));
    const there = createLocks(await connect(server.url.replace("mysql:", "mariadb:")));
    const lease = await here.acquire("survives", { ttlMs: 120_000 });
    const next = there.acquire("survives", { waitMs: 120_000 });
    await expect.poll(async () => (await here.inspect("survives")).waiterCount).toBe(1);
    await server.restart(async () => {
      await expect(here.inspect("survives")).rejects.toMatchObject({ code: "engine-unavailable" });
    });
    await expect
      .poll(
        () =>
          lease.extend().then(
            () => true,
            () => false,
          ),
        { timeout: limitMs(20_000) },
      )
      .toBe(true);
    expect(await there.checkFence("survives", lease.fencingToken)).toBe("current");
    expect(await lease.release()).toBe(true);
    const follower = await next;
    expect(follower.fencingToken).toBeGreaterThan(lease.fencingToken);
    await Promise.all([here.close(), there.close()]);
  });

  test("an acquire whose reply is lost gets its own grant by a repeat", async () => {
    let calls = 0;
    const locks = altered("acquire", async (execute) => {
      const reply = await execute();
      calls += 1;
      if (calls === 1) {
        throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", errno: -104 });
      }
      return reply;
    });
    const lease = await locks.acquire("lost reply");
    expect(calls).toBe(2);
    const [rows] = await pool.query(
      "SELECT CAST(fencing AS CHAR) AS fencing FROM holdfast_pins WHERE k = 'lost reply'",
    );
    expect(rows).toEqual([{ fencing: String(lease.fencingToken) }]);
    await lease.release();
    await locks.close();
  });

  test("a break whose reply is lost has one record, and 1 000 records are kept", async () => {
    const locks = ["a", "b", "c"].map((owner) => createLocks(mysql(pool), { owner }));
    let isLost = false;
    const operator = altered("break", async (execute) => {
      const reply = await execute();
      if (isLost) {
        isLost = false;
        throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", errno: -104 });
      }
      return reply;
    });
    await expectOneRecordAfterLostReply(locks[0] as Locks, operator, () => (isLost = true));
    await pool.query(
      `INSERT INTO holdfast_audit SELECT seq, 0, 'k', 1, '{"by":"ada","reason":"old"}' FROM seq_1_to_1200`,
    );
    await expectBoundedAudit(locks);
    await Promise.all([...locks, operator].map((one) => one.close()));
  });

  test("a call that the server rolls back is repeated at once", async () => {
    let calls = 0;
    const locks = altered("acquire", (execute) => {
      calls += 1;
      return calls <= 2
        ? Promise.reject(
            Object.assign(new Error("Deadlock found"), { code: "ER_LOCK_DEADLOCK", errno: 1213 }),
          )
        : execute();
    });
    expect(await locks.tryAcquire("rolled back")).not.toBeNull();
    expect(calls).toBe(3);
    await locks.close();
  });

  test("an acquire that waited for a row lock expires its grant by the time after the wait", async () => {
    const locks = createLocks(mysql(pool));
    const first = await locks.acquire("late");
    await first.release();
    const blocker = await pool.getConnection();
    await blocker.query("START TRANSACTION");
    await blocker.query("SELECT * FROM holdfast_locks WHERE k = 'late' FOR UPDATE");
    const lease = locks.acquire("late", { ttlMs: 60_000 });
    await blocker.query("SELECT SLEEP(0.3)");
    const [[before]] = (await blocker.query(
      "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED) AS us",
    )) as unknown as [[{ us: number }]];
    await blocker.query("COMMIT");
    blocker.release();
    expect((await lease).fencingToken).toBeGreaterThan(BigInt(before.us));
    await locks.close();
  });

  test("fencing tokens rise although the server's clock was set back", async () => {
    const locks = createLocks(mysql(pool));
    const first = await locks.acquire("set back");
    await first.release();
    await pool.query("UPDATE holdfast_locks SET fencing = fencing + 86400000000 WHERE k = 'set back'");
    const second = await locks.acquire("set back");
    expect(second.fencingToken).toBe(first.fencingToken + 86_400_000_001n);
    await locks.close();
  });

  test("the row of a grant that has expired is removed, also after a release by another request", async () => {
    const locks = createLocks(mysql(pool));
    await locks.acquire("expired", { ttlMs: 100, renew: false });
    await expect.poll(async () => (await locks.inspect("expired")).holders).toEqual([]);
    await pool.query("CALL holdfast6_release('expired', 'another token')");
    await (await locks.acquire("expired")).release();
    const [rows] = await pool.query("SELECT token FROM holdfast_holders WHERE k = 'expired'");
    expect(rows).toEqual([]);
    await locks.close();
  });

  test("keys are compared as bytes", async () => {
    const locks = createLocks(mysql(pool));
    const keys = ["a", "A", "a ", "á", "a\0", `'"\\${"😀".repeat(100)}`];
    const leases = await Promise.all(keys.map((key) => locks.tryAcquire(`bytes:${key}`)));
    expect(leases.every((lease) => lease !== null)).toBe(true);
    const { locks: listed } = await locks.admin.list({ prefix: "bytes:" });
    expect(new Set(listed.map(({ key }) => key))).toEqual(new Set(keys.map((key) => `bytes:${key}`)));
    await locks.close();
  });
});
