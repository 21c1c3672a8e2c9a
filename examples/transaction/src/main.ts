import { createLocks } from "holdfast";
import { postgres } from "holdfast/postgres";
import pg from "pg";

import { deposit } from "./deposit.ts";

const workers = 4;
const depositsOfEach = 4;

const [, , url] = process.argv;
if (url === undefined || url.startsWith("-")) {
  console.log("node main.js postgres://host/database   lets workers pause for longer than their leases");
  process.exitCode = url === undefined ? 2 : 0;
} else {
  const pool = new pg.Pool({ connectionString: url });
  pool.on("error", (error) => console.error(error.message));
  await run(pool, false);
  await run(pool, true);
  await pool.end();
}

/** Each worker makes its deposits. Every other worker pauses in its first deposit. */
async function run(pool: pg.Pool, isFenced: boolean): Promise<void> {
  const locks = createLocks(postgres(pool));
  const table = `account_of_example_${process.pid}`;
  let committed = 0;
  try {
    await pool.query(`CREATE TABLE ${table} (balance integer NOT NULL)`);
    await pool.query(`INSERT INTO ${table} VALUES (0)`);
    const work = async (worker: number): Promise<void> => {
      for (let turn = 0; turn < depositsOfEach; turn += 1) {
        const pauses = turn === 0 && worker % 2 === 0;
        const isCommitted = await deposit({ pool, locks, table, isFenced, pauses });
        committed += isCommitted ? 1 : 0;
      }
    };
    await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
    const { rows } = await pool.query<{ balance: number }>(`SELECT balance FROM ${table}`);
    const lost = committed - (rows[0]?.balance ?? 0);
    const way = isFenced ? "with assertHeld" : "without assertHeld";
    console.log(`${way}: ${committed} deposits committed, ${lost} of them lost`);
  } finally {
    await locks.close();
    await pool.query(`DROP TABLE IF EXISTS ${table}`);
  }
}
