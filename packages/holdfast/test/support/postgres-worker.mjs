// Connects to the URL of its first message. Then it acquires, or waits for, the lock of each further message, and reports its lease.
// It reports the loss of a lease with its reason, and whether a transaction with the lost lease commits.
import pg from "pg";

import { createLocks } from "../../dist/index.js";
import { assertHeld, postgres } from "../../dist/drivers/postgres/index.js";

const [, , url, option] = process.argv;
const pool = new pg.Pool({ connectionString: url, max: 3 });
pool.on("error", () => undefined);
const mode = option === "advisory" ? "advisory" : "lease";
const locks = createLocks(postgres(pool, { listen: option === "listen", mode }), { owner: "worker" });

/** Leases without a reference are garbage-collected, and then report nothing. */
const held = [];

async function commits(lease) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await assertHeld(client, lease);
    await client.query("COMMIT");
    return true;
  } catch (error) {
    await client.query("ROLLBACK");
    return error.code;
  } finally {
    client.release();
  }
}

process.on("message", ({ key, options }) => {
  locks.acquire(key, options).then(
    async (lease) => {
      held.push(lease);
      const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      process.send({ acquired: key, fencingToken: String(lease.fencingToken) });
      await lost;
      process.send({ lost: key, reason: lease.signal.reason.reason, commits: await commits(lease) });
    },
    (error) => process.send({ failed: key, code: error.code }),
  );
});
process.send({ ready: true });
