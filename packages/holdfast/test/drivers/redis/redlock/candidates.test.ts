import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { QuorumFixture } from "../../../support/quorum-fixture.ts";
import { commandText } from "../../../support/diagnostics-log.ts";

test("after a reply with a larger number, the client proposes a number above it to all nodes", async () => {
  const fixture = new QuorumFixture();
  const candidates: number[] = [];
  const { locks } = await fixture.client({}, (connection) => noting(connection, candidates));
  const greater = (fixture.clock.wall() + 300) * 1_000;
  fixture.servers[0]?.call("HSET", "holdfast:fence:{lock:k}", "last", String(greater));
  const lease = await fixture.settleWithin(10, locks.acquire("k"));
  expect(lease.fencingToken).toBe(BigInt(greater + 1));
  await fixture.settleWithin(10, lease.release());
  candidates.splice(0);
  await fixture.settleWithin(10, locks.acquire("another"));
  expect(candidates).toHaveLength(3);
  expect(Math.min(...candidates)).toBeGreaterThan(greater);
});

/** @param proposals the proposed number of each acquire that is sent to a node */
function noting(connection: Connection, candidates: number[]): Connection {
  return altered(connection, {
    run: (script, keys, args) => {
      const [name, candidate] = commandText(args);
      if (name === "acquire") {
        candidates.push(Number(candidate));
      }
      return connection.run(script, keys, args);
    },
  });
}
