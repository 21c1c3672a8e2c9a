import type { Locks } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { timeFactor } from "@holdfast/test-kit";

import { clientLibraries, type ClientLibrary } from "../../../support/clients.ts";
import {
  keysOf,
  later,
  describeWaiters,
  open,
  pollMs,
  probe,
  queued,
  queueOf,
  server,
  promptMs,
  unique,
} from "../../../support/waiter-fixture.ts";
import { Worker } from "../../../support/workers.ts";

const manyWaiters = 5_000;

describeWaiters(() => {
  describe.concurrent("whatever dies,", () => {
    test("the next is served at once when the head of the queue was killed", async (context) => {
      const key = unique();
      await using head = await Worker.start("head", server.port);
      const holder = await open(context).acquire(key);
      head.order("acquire", { key });
      await queued(key, 1);
      const next = later(open(context).acquire(key, { waitMs: 20_000 }));
      await queued(key, 2);
      await head.kill();
      const released = performance.now();
      await holder.release();
      await (await next).release();
      expect(performance.now() - released).toBeLessThan(promptMs);
    });

    test("the next is served within a second of the TTL when the holder was killed", async (context) => {
      const key = unique();
      const ttlMs = 1_000;
      await using holder = await Worker.start("holder", server.port);
      await holder.request("acquire", { key, options: { ttlMs } }, "granted");
      const next = later(open(context).acquire(key, { waitMs: 20_000 }));
      await queued(key, 1);
      await holder.kill();
      const killed = performance.now();
      await (await next).release();
      expect(performance.now() - killed).toBeLessThan(ttlMs + 1_000 * timeFactor);
    });

    test("so is a waiter that was after four others when it sent its request, and was not notified of their leaving", async (context) => {
      const key = unique();
      const ttlMs = 1_000;
      await using holder = await Worker.start("holder", server.port);
      await holder.request("acquire", { key, options: { ttlMs } }, "granted");
      const leaving = new AbortController();
      const { signal } = leaving;
      const before = Array.from({ length: 4 }, () =>
        expect(open(context).acquire(key, { waitMs: 20_000, signal })).rejects.toThrow(),
      );
      await queued(key, 4);
      const next = later(open(context).acquire(key, { ttlMs, waitMs: 20_000 }));
      await queued(key, 5);
      leaving.abort();
      await Promise.all(before);
      await queued(key, 1);
      await holder.kill();
      const killed = performance.now();
      await (await next).release();
      expect(performance.now() - killed).toBeLessThan(ttlMs + 1_000 * timeFactor);
    });

    test("the next is served at once when a lock is broken and many before it are dead", async (context) => {
      const key = unique();
      const [holder, other] = [open(context), open(context)];
      const lease = await holder.acquire(key);
      const dead = Array.from(
        { length: 40 },
        (_, i) => `${"a".repeat(32)}:${"b".repeat(32)}:${i + 1} 3000 1 0 s`,
      );
      await probe.zadd(queueOf(key), ...dead.flatMap((member, i) => [i + 1, member]));
      const next = later(other.acquire(key, { waitMs: 20_000 }));
      await queued(key, dead.length + 1);
      const broken = performance.now();
      await holder.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "maintenance" });
      await (await next).release();
      expect(performance.now() - broken).toBeLessThan(promptMs);
    });

    for (const library of Object.keys(clientLibraries) as ClientLibrary[]) {
      test(`a waiter by ${library} is served when its killed subscription is back`, async (context) => {
        const key = unique();
        const { client, close } = await clientLibraries[library](server.port, { name: key });
        context.onTestFinished(close);
        const holder = await open(context).acquire(key);
        const waiter = later(open(context, {}, {}, client).acquire(key, { waitMs: 20_000 }));
        await queued(key, 1);
        await probe.call("CLIENT", "KILL", "ID", await subscriberOf(key));
        const killed = performance.now();
        await holder.release();
        await (await waiter).release();
        expect(performance.now() - killed).toBeLessThan(promptMs);
      });
    }

    test("waiters keep their queue entries when a holder without the right to publish releases", async (context) => {
      const key = unique();
      await probe.acl("SETUSER", "mute", "on", ">secret", "~*", "+@all", "resetchannels");
      const mute = server.client({ username: "mute", password: "secret" });
      const holder = await open(context, {}, {}, mute).acquire(key);
      const waiter = later(open(context).acquire(key, { waitMs: 20_000 }));
      await queued(key, 1);
      await expect(holder.release()).rejects.toMatchObject({ code: "engine-unavailable" });
      const failed = performance.now();
      await (await waiter).release();
      expect(performance.now() - failed).toBeLessThan(pollMs + promptMs);
    });

    test("SCRIPT FLUSH has no visible effect", async (context) => {
      const key = unique();
      const crews = [open(context), open(context), open(context, { handover: false })];
      let value = 0;
      let flushes = 0;
      let isOver = false;
      const task = async (_: unknown, number: number): Promise<void> => {
        for (let round = 0; round < 50; round++) {
          await (crews[number % crews.length] as Locks).withLock(key, { waitMs: 20_000 }, async () => {
            const seen = value;
            await new Promise(setImmediate);
            value = seen + 1;
          });
        }
      };
      const flushing = (async () => {
        for (; !isOver; flushes++) {
          await probe.script("FLUSH");
        }
      })();
      await Promise.all(Array.from({ length: 8 }, task));
      isOver = true;
      await flushing;
      expect(value).toBe(8 * 50);
      expect(flushes).toBeGreaterThan(20);
    });
  });

  describe("a waiter that aborts", () => {
    for (const handover of [undefined, false] as const) {
      const mode = handover === false ? "without" : "with";
      test(`is forgotten, ${manyWaiters} at once ${mode} hand-over`, async (context) => {
        const key = unique();
        await probe.set(`lock:${key}`, "another program's", "PX", 120_000);
        await using worker = await Worker.start("many", server.port, { handover });
        const order = { key, count: manyWaiters, rounds: 3 };
        const { wrong, heapGrowth, timers } = await worker.request("giveUp", order, "gaveUp");
        expect(wrong).toBe(0);
        expect(timers).toBe(0);
        expect(heapGrowth / 2 ** 20).toBeLessThan(10);
        await probe.del(`lock:${key}`);
        const lease = await open(context).tryAcquire(key);
        expect(await lease?.release()).toBe(true);
        expect(await keysOf(key)).toEqual([]);
      });
    }

    test("leaves nothing on the server, at whatever moment", async (context) => {
      const key = unique();
      await probe.set(`lock:${key}`, "another program's", "PX", 120_000);
      for (const locks of [open(context), open(context, { handover: false })]) {
        const timedOut = Array.from({ length: 40 }, (_, i) => locks.acquire(key, { waitMs: i + 1 }));
        for (const outcome of await Promise.allSettled(timedOut)) {
          // The shortest waits end before the server's reply.
          const code = expect.stringMatching(/^(wait-timeout|engine-unavailable)$/) as unknown;
          expect(outcome).toMatchObject({ status: "rejected", reason: { code } });
        }
        for (let turns = 0; turns < 100; turns++) {
          await expect(acquireAndAbort(locks, key, turns % 25)).rejects.toThrow("changed my mind");
        }
        await queued(key, 0);
        expect(await keysOf(key)).toEqual([`lock:${key}`]);
      }
      await probe.del(`lock:${key}`);
    });

    test("leaves a lock free that was just granted", async (context) => {
      const key = unique();
      for (const locks of [open(context), open(context, { handover: false })]) {
        // Aborts fall before, at and after the grant: `longest` grows until it is later than the first grants.
        let [granted, aborted, longest] = [0, 0, 20];
        for (let turn = 0; turn < 200 || granted === 0 || aborted === 0; turn++) {
          const outcomes = await Promise.allSettled(
            [turn % longest, turn % 17, turn % 13].map((turns) => acquireAndAbort(locks, key, turns)),
          );
          granted += outcomes.filter(({ status }) => status === "fulfilled").length;
          aborted += outcomes.filter(({ status }) => status === "rejected").length;
          if (turn % longest === longest - 1 && granted === 0) {
            longest *= 2;
          }
        }
        await vi.waitFor(async () => {
          expect(await keysOf(key)).toEqual([]);
        });
      }
    });
  });
});

/** The id of the subscribed connection among the connections of that name. */
async function subscriberOf(name: string): Promise<string> {
  const list = String(await probe.client("LIST"));
  const ids = Array.from(list.matchAll(/^id=(\d+) .* name=(\S*) .* s?sub=1 /gm));
  return ids.find(([, , given]) => given === name)?.[1] as string;
}

/** Aborts after `turns` turns of the event loop. A lease that was acquired before is released. */
async function acquireAndAbort(locks: Locks, key: string, turns: number): Promise<void> {
  const controller = new AbortController();
  const acquiring = later(
    locks.acquire(key, { signal: controller.signal, waitMs: 60_000 }).then((lease) => lease.release()),
  );
  for (let turn = 0; turn < turns; turn++) {
    await new Promise(setImmediate);
  }
  controller.abort(new Error("changed my mind"));
  await acquiring;
}
