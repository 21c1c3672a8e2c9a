import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { FakeQuorum } from "../../../support/fake-quorum.ts";

// A restarted node that the client trusts votes at once only if each write reaches the disk before its reply, and a restart loads it.

test("a node that has every write on its disk votes at once after a restart", async () => {
  expect(await attempt({})).toBe("granted");
});

test("a node that does not report when it writes to its disk may have lost data", async () => {
  expect(await attempt({ refuseConfig: true })).toBe("quorum-not-reached");
});

test.each([
  ["writes to its disk once a second", '"always"', '"everysec"'],
  ["forces no write to its disk during a rewrite", '"no"', '"yes"'],
  ["has not finished the first rewrite of its file", '"master","([^"]*)",1', '"master","$1",0'],
])("a node that %s may have lost data", async (_, reported, instead) => {
  const between = (connection: Connection): Connection => reporting(connection, reported, instead);
  expect(await attempt({ between })).toBe("quorum-not-reached");
});

/** The result of an acquire after a restart of two of three such nodes. */
async function attempt({
  refuseConfig = false,
  between = (connection: Connection) => connection,
}): Promise<string> {
  const lab = new FakeQuorum(3, () => ({ durable: true, refuseConfig }));
  const { locks } = await lab.warmUp({ redlock: { restartGuard: "trust-durable" }, between });
  lab.nodes[0]?.restart({ keepData: true });
  lab.nodes[1]?.restart({ keepData: true });
  const acquired = locks.acquire("k", { waitMs: 500 }).then(
    () => "granted",
    (error: unknown) => (error as { code: string }).code,
  );
  await lab.clock.advance(1_000);
  return acquired;
}

/** A connection whose replies report something else. */
function reporting(connection: Connection, reported: string, instead: string): Connection {
  const alter = async (reply: Promise<unknown>): Promise<unknown> =>
    JSON.parse(JSON.stringify(await reply).replace(new RegExp(reported), instead)) as unknown;
  return altered(connection, {
    run: (script, keys, args) => {
      const reply = connection.run(script, keys, args);
      return script.name === "health" ? alter(reply) : reply;
    },
    command: (name, args) => alter(connection.command(name, args)),
  });
}
