import { ServerClocks, type ServerClock } from "@holdfast/test-kit";
import { createLocks, type Locks } from "holdfast";
import { assertHeld, postgres } from "holdfast/postgres";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";

import {
  inTransaction,
  onPostgres,
  startPostgres,
  type PostgresServer,
} from "../../support/postgres-server.ts";
import { describeWithClocks } from "../../support/servers.ts";

const hourMs = 3_600_000;

onPostgres("PostgreSQL", () => {
  describeWithClocks("whose clock is set", () => {
    let clocks: ServerClocks;
    let clock: ServerClock;
    let server: PostgresServer;
    let pool: pg.Pool;
    let here: Locks;
    let there: Locks;

    beforeEach(async () => {
      clocks = await ServerClocks.make(1);
      [clock] = clocks.clocks as [ServerClock];
      server = await startPostgres(["-c", "fsync=off"], clock.env);
      pool = new pg.Pool({ connectionString: server.url });
      [here, there] = [createLocks(postgres(pool)), createLocks(postgres(pool))];
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
      await inTransaction(pool, (client) => assertHeld(client, lease));
      expect(await lease.release()).toBe(true);
      const next = await there.acquire("key");
      expect(next.fencingToken).toBe(lease.fencingToken + 1n);
    });

    test("forward: a grant ends early, and its holder can neither extend nor commit; fencing tokens rise, also after the clock is corrected", async () => {
      const lease = await here.acquire("key", { renew: false });
      clock.set({ aheadMs: hourMs });
      const second = await there.acquire("key", { renew: false });
      expect(second.fencingToken).toBeGreaterThan(lease.fencingToken);
      const fenced = inTransaction(pool, (client) => assertHeld(client, lease));
      await expect(fenced).rejects.toMatchObject({ code: "lease-lost" });
      await expect(lease.extend()).rejects.toMatchObject({ code: "lease-lost", reason: "stolen" });
      await second.release();
      clock.set({});
      const third = await here.acquire("key");
      expect(third.fencingToken).toBe(second.fencingToken + 1n);
    });

    test("forward: a lease that is bound to a session keeps its lock", async () => {
      const bound = createLocks(postgres(pool, { mode: "advisory" }));
      const lease = await bound.acquire("key", { renew: false });
      await lease.extend();
      clock.set({ aheadMs: hourMs });
      expect(await there.tryAcquire("key")).toBeNull();
      await lease.extend();
      expect(await lease.release()).toBe(true);
      expect((await there.acquire("key")).fencingToken).toBeGreaterThan(lease.fencingToken);
      await bound.close();
    });
  });
});
