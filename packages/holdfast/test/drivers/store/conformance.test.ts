import { describe, test } from "vitest";

import { StoreDriver } from "../../../src/drivers/store/store-driver.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { systemRandom } from "../../../src/runtime/random.ts";
import { Table } from "../../support/lease-table.ts";
import { TableStore } from "../../support/table-store.ts";
import { wholeConformance } from "../../support/conformance.ts";

const settings = { clock: systemClock, random: systemRandom, commandTimeoutMs: 2_000 };

// The tests of engines run the suite without notifications, too.
describe.concurrent(
  "a driver over a table of leases with notifications passes the conformance suite:",
  () => {
    wholeConformance({
      test,
      open: async () => {
        const table = new Table(systemClock);
        const driver = (): StoreDriver =>
          new StoreDriver(new TableStore(table, { notifies: true }), settings);
        return { driver: driver(), other: driver() };
      },
    });
  },
);
