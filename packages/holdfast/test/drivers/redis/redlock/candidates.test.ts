import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { Stage } from "../../../support/quorum-fixture.ts";
import { said } from "../../../support/diagnostics-log.ts";

test("who was told a greater number asks all nodes for one above it from then on", async () => {
  const stage = new Stage();
  const candidates: number[] = [];
  const { locks } = await stage.side({}, (connection) => noting(connection, candidates));
  const greater = (stage.clock.wall() + 300) * 1_000;
  stage.servers[0]?.call("HSET", "holdfast:fence:{lock:k}", "last", String(greater));
  const lease = await stage.within(10, locks.acquire("k"));
  expect(lease.fencingToken).toBe(BigInt(greater + 1));
  await stage.within(10, lease.release());
  candidates.splice(0);
  await stage.within(10, locks.acquire("another"));
  expect(candidates).toHaveLength(3);
  expect(Math.min(...candidates)).toBeGreaterThan(greater);
});

/** @param candidates of each acquire that is sent to a node */
function noting(connection: Connection, candidates: number[]): Connection {
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: (script, keys, args) => {
      const [name, candidate] = said(args);
      if (name === "acquire") {
        candidates.push(Number(candidate));
      }
      return connection.run(script, keys, args);
    },
    command: (name, args) => connection.command(name, args),
    subscribe: (channel, kind, listener) => connection.subscribe(channel, kind, listener),
    onDown: (listener) => connection.onDown(listener),
  };
}
