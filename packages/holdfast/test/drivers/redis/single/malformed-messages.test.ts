import { subscribe, unsubscribe } from "node:diagnostics_channel";

import fc from "fast-check";
import { expect, test, vi, type TestContext } from "vitest";

import { clientIdOf } from "../../../../src/drivers/redis/protocol/token.ts";
import { clientLibraries } from "../../../support/clients.ts";
import {
  later,
  describeWaiters,
  open,
  probe,
  queued,
  queueOf,
  server,
  promptMs,
  unique,
} from "../../../support/waiter-fixture.ts";

const token = `${"a".repeat(32)}:${"b".repeat(32)}:1`;
const malformed = [
  "broken {",
  'broken ["t","k"]',
  "grant",
  "grant a b c d e f g",
  `grant ${token} ${"9".repeat(20)} ${"9".repeat(20)} 1 1 ${"a".repeat(40)} lock:a`,
  `grant ${token} 1 1 1 1 ${"a".repeat(40)} holdfast:fence:x`,
  "retry",
  "inquiry x y",
  "latch-open",
  "",
];

describeWaiters(() => {
  test.for(["ioredis 5", "ioredis 6", "node-redis 6"] as const)(
    "a process with %s survives malformed messages, keeps its lease, and its waiter is served",
    async (library, context) => {
      const counts = countsOfMalformed(context);
      const { client, close } = await clientLibraries[library](server.port);
      context.onTestFinished(close);
      const [own, foreign] = [unique(), unique()];
      const victim = open(context, {}, {}, client);
      const other = open(context);
      const lease = await victim.acquire(own);
      const inTheWay = await other.acquire(foreign);
      const waiter = later(victim.acquire(foreign, { waitMs: 60_000 }));
      await queued(foreign, 1);

      const channel = await channelOfWaiter(foreign);
      const garbage = fc.sample(fc.string({ unit: "binary", minLength: 1, maxLength: 60 }), 100);
      const texts = [...malformed, ...garbage];
      for (const text of texts) {
        expect(await probe.call("SPUBLISH", channel, text)).toBe(1);
      }
      await vi.waitFor(() => {
        expect(counts).toEqual(texts.map((_, index) => index + 1));
      });

      await inTheWay.release();
      const released = performance.now();
      await (await waiter).release();
      expect(performance.now() - released).toBeLessThan(promptMs);
      await lease.extend();
      await lease.release();
    },
  );
});

/** The counts of malformed messages that the events of this process report. */
function countsOfMalformed(context: TestContext): readonly number[] {
  const counts: number[] = [];
  const listener = (message: unknown): void => {
    const { event, detail } = message as { event: string; detail?: { count: number } };
    if (event === "malformed-message") {
      counts.push(detail?.count ?? Number.NaN);
    }
  };
  subscribe("holdfast:node", listener);
  context.onTestFinished(() => {
    unsubscribe("holdfast:node", listener);
  });
  return counts;
}

async function channelOfWaiter(key: string): Promise<string> {
  const [member = ""] = await probe.zrange(queueOf(key), "0", "0");
  return `holdfast:grants:${clientIdOf(member.slice(0, member.indexOf(" "))) ?? ""}`;
}
