// Migrates a database at the start of a pod. Of several pods, one migrates and the others wait.
//
//   node migrate.js postgres://host/database

import { fileURLToPath } from "node:url";

import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { createLocks } from "holdfast";
import { postgres } from "holdfast/postgres";
import pg from "pg";

const migrationsFolder = fileURLToPath(new URL("../migrations", import.meta.url));

const pool = new pg.Pool({ connectionString: process.argv[2] });
pool.on("error", (error) => console.error(error.message));
const locks = createLocks(postgres(pool));
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort()); // ends the wait; a migration that runs continues to its end

try {
  await locks.withLock("migrate", { waitMs: 600_000, signal: stop.signal }, async (lease) => {
    await migrate(drizzle(pool), { migrationsFolder });
    lease.throwIfLost();
  });
  console.log("migrated");
} finally {
  await locks.close();
  await pool.end();
}
