import { mysql } from "holdfast/mysql";
import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, describe, test } from "vitest";

import { patient, wholeConformance } from "../../support/conformance.ts";
import { onMariaDb, startMariaDb, type MariaDbServer } from "../../support/mariadb-server.ts";

onMariaDb("MariaDB", () => {
  let server: MariaDbServer;
  const pools: Pool[] = [];

  beforeAll(async () => {
    server = await startMariaDb();
    for (let count = 0; count < 2; count += 1) {
      pools.push(createPool({ uri: server.url, connectionLimit: 5 }));
    }
  });

  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await server.stop();
  });

  describe.concurrent("a pool of mysql2 passes the conformance suite:", () => {
    wholeConformance({
      test,
      open: async () => {
        const [here, there] = pools as [Pool, Pool];
        return { driver: mysql(here, patient), other: mysql(there, patient) };
      },
    });
  });
});
