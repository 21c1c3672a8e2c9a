import { afterAll, beforeAll, expect, test } from "vitest";

import { channelOf, clientKey } from "../../../../../src/drivers/redis/protocol/keys.ts";
import {
  clientInfoScript,
  handshakeScript,
} from "../../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../../support/servers.ts";
import { id, ScriptFixture } from "../../../../support/script-fixture.ts";

onRedis("handshake and client records", () => {
  let fixture: ScriptFixture;
  beforeAll(async () => {
    fixture = await ScriptFixture.open();
    await fixture.listen(1);
    await fixture.listen(2, "p");
  });
  afterAll(() => fixture.close());

  test("the handshake returns the server's time, run, version, role and uptime", async () => {
    const [seconds] = await fixture.redis.time();
    const [micros, receivers, runId, version, role, uptime] = await handshake(9, "n");
    expect(Math.floor(Number(micros) / 1_000_000) - Number(seconds)).toBeLessThanOrEqual(1);
    const info = await fixture.redis.info();
    expect(info).toContain(`run_id:${String(runId)}\r\n`);
    expect(info).toContain(`redis_version:${String(version)}\r\n`);
    expect([receivers, role]).toEqual([0, "master"]);
    expect(Number.isInteger(uptime)).toBe(true);
  });

  test("the handshake stores the client's record for the requested time", async () => {
    await handshake(9, "n", ["owner", "somebody", "pid", "17"]);
    expect(await fixture.redis.hgetall(clientKey(id(9)))).toEqual({ owner: "somebody", pid: "17" });
    expect(await fixture.redis.pttl(clientKey(id(9)))).toBeGreaterThan(59_000);
    expect(await fixture.redis.pttl(clientKey(id(9)))).toBeLessThanOrEqual(60_000);
  });

  test("the handshake publishes a text to the client, and counts its receivers", async () => {
    expect((await handshake(1, "s"))[1]).toBe(1);
    expect(await fixture.received(1)).toEqual(["ping"]);
    expect((await handshake(2, "p"))[1]).toBe(1);
    expect(await fixture.received(2)).toEqual(["ping"]);
  });

  test("the count is 0 without a subscriber of that kind", async () => {
    expect((await handshake(3, "s"))[1]).toBe(0);
    expect((await handshake(1, "p"))[1]).toBe(0);
    expect((await handshake(2, "s"))[1]).toBe(0);
  });

  test("without a text the handshake publishes nothing", async () => {
    await handshake(1, "n");
    expect(await fixture.received(1)).toEqual([]);
  });

  test("the records of known clients are returned, and nothing for unknown clients", async () => {
    await handshake(5, "n", ["owner", "five"]);
    await handshake(6, "n", ["owner", "six"]);
    const keys = [6, 7, 5].map((n) => clientKey(id(n)));
    const answers = await fixture.connection.run(clientInfoScript, keys, []);
    expect(answers).toEqual([["owner", "six"], [], ["owner", "five"]]);
  });

  async function handshake(
    client: number,
    kind: "s" | "p" | "n",
    about = ["owner", "a"],
  ): Promise<unknown[]> {
    const args = [channelOf(id(client)), kind, "ping", "60000", ...about];
    return (await fixture.connection.run(handshakeScript, [clientKey(id(client))], args)) as unknown[];
  }
});
