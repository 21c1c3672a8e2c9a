import { ServerClocks, type ServerClock } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { assertHeld, mysql } from "holdfast/mysql";
import { createPool, type Pool } from "mysql2/promise";
import { afterEach, beforeEach, expect, test } from "vitest";

import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";
import { describeWithClocks } from "../../support/servers.ts";

const hourMs = 3_600_000;

onMariaDb("MariaDB", () => {
  describeWithClocks("whose clock is set", () => {
    let clocks: ServerClocks;
    let clock: ServerClock;
    let server: MariaDbServer;
    let pool: Pool;
    let here: Locks;
    let there: Locks;

    beforeEach(async () => {
      clocks = await ServerClocks.make(1);
      [clock] = clocks.clocks as [ServerClock];
      server = await startMariaDb(undefined, clock.env);
      pool = createPool({ uri: server.url });
      [here, there] = [createLocks(mysql(pool)), createLocks(mysql(pool))];
    });

    afterEach(async () => {
      await Promise.all([here.close(), there.close()]);
      await pool.end();
      await server.stop();
      await clocks[Symbol.asyncDispose]();
    });

    test("back: a grant in force keeps its lock, and fencing tokens rise", async () => {
      const lease = await here.acquire("key");
      clock.set({ aheadMs: -hourMs });
      expect((await here.admin.nodes())[0]?.clockOffsetMs).toBeLessThan(-hourMs / 2);
      expect(await there.tryAcquire("key")).toBeNull();
      await lease.extend();
      expect(await lease.release()).toBe(true);
      const next = await there.acquire("key");
      expect(next.fencingToken).toBe(lease.fencingToken + 1n);
    });

    test("forward: a grant ends early, and its holder can neither extend nor commit; fencing tokens rise, also after the clock is corrected", async () => {
      const lease = await here.acquire("key", { renew: false });
      clock.set({ aheadMs: hourMs });
      const second = await there.acquire("key", { renew: false });
      expect(second.fencingToken).toBeGreaterThan(lease.fencingToken);
      const connection = await pool.getConnection();
      await connection.beginTransaction();
      await expect(assertHeld(connection, lease)).rejects.toMatchObject({ code: "lease-lost" });
      await connection.rollback();
      connection.release();
      await expect(lease.extend()).rejects.toMatchObject({ code: "lease-lost", reason: "stolen" });
      await second.release();
      clock.set({});
      const third = await here.acquire("key");
      expect(third.fencingToken).toBe(second.fencingToken + 1n);
    });
  });
});
