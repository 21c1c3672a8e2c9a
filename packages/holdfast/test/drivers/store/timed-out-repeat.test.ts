import { expect, test } from "vitest";

import { StoreCalls } from "../../../src/drivers/store/store-calls.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { systemRandom } from "../../../src/runtime/random.ts";
import { Table } from "../../support/lease-table.ts";
import { TableStore } from "../../support/table-store.ts";

test("a repeat without a reply is reported with the failure before it, and with an unknown outcome", async () => {
  const store = new TableStore(new Table(systemClock), { notifies: false });
  const settings = { clock: systemClock, random: systemRandom, commandTimeoutMs: 300 };
  const calls = new StoreCalls(store, settings, () => undefined);
  let requests = 0;
  const request = (): Promise<never> => {
    requests += 1;
    return requests === 1
      ? Promise.reject(new Error("the certificate has expired"))
      : new Promise(() => undefined);
  };
  const failure = calls.repeated("key", request);
  await expect(failure).rejects.toMatchObject({
    code: "engine-unavailable",
    outcome: "unknown",
    message: expect.stringContaining("the certificate has expired") as string,
  });
  expect(requests).toBe(2);
});
