import { expect, test } from "vitest";

import { momentOf } from "../src/clock.ts";
import type { Pending } from "../src/driver.ts";
import { validFrom } from "../src/validity.ts";
import { clock, engine, lost, onManualClock, open, settled, ttlMs } from "./support/hold-stage.ts";

onManualClock();

test("who has a lease on the same grant, by a repeat of the attempt, is told at once that it was released", async () => {
  const locks = open();
  const [first, second] = [
    await locks.acquire("k", { ttlMs, attemptId: "job 1" }),
    await locks.acquire("k", { ttlMs, attemptId: "job 1" }),
  ];
  const { signal } = second;
  expect(second.fencingToken).toBe(first.fencingToken);
  expect(await first.release()).toBe(true);
  expect(signal.reason).toEqual(lost("released"));
  expect(() => second.throwIfLost()).toThrow("lost");
  expect(await settled(second.release())).toBe(false);
});

test("a try that is told of another grant of the same token, while a release of that is under way, asks again", async () => {
  let [asked, isAnswered] = [0, false];
  const locks = open({
    acquire: (request) => {
      const number = BigInt((asked += 1));
      return number > 2n ? engine.acquire(request) : told(number);
    },
    release: (key, token, until) =>
      token === "t"
        ? new Promise((resolve) => {
            clock.setTimer(() => {
              isAnswered = true;
              resolve(true);
            }, 100);
          })
        : engine.release(key, token, until),
  });
  const first = locks.acquire("k", { ttlMs, attemptId: "job 1" });
  const repeat = locks.tryAcquire("k", { ttlMs, attemptId: "job 1" });
  void first.then((lease) => lease.release());
  expect(await settled(repeat)).toBe("pending");
  await clock.advance(100);
  const lease = await repeat;
  expect([isAnswered, lease?.fencingToken === 2n]).toEqual([true, false]);
  expect(await settled(open().tryAcquire("k"))).toBeNull();
  expect(await lease?.release()).toBe(true);
});

test("several keys, of which a repeat releases one while their grant is under way, are asked for again", async () => {
  const locks = open();
  const one = locks.acquire("k", { ttlMs, attemptId: "job 1" });
  const several = locks.all(["k", "l"]).tryAcquire({ ttlMs, attemptId: "job 1" });
  void one.then((lease) => lease.release());
  const lease = await several;
  lease?.throwIfLost();
  expect(await settled(open().tryAcquire("k"))).toBeNull();
  expect(await lease?.release()).toBe(true);
});

test("the release of a lease that was lost takes nothing from who has another on the same grant", async () => {
  const [locks, there] = [open(), open()];
  const first = await locks.acquire("k", { ttlMs, attemptId: "job 1", renew: false });
  const [second, other] = [
    await locks.acquire("k", { ttlMs, attemptId: "job 1" }),
    await there.acquire("k", { ttlMs, attemptId: "job 1" }),
  ];
  await clock.advance(ttlMs + 100);
  expect([first.remainingMs(), await settled(first.release())]).toEqual([0, false]);
  expect(await settled(open().tryAcquire("k"))).toBeNull();
  second.throwIfLost();
  other.throwIfLost();
  expect(await settled(second.release())).toBe(true);
});

test.each(["acquire", "tryAcquire"] as const)(
  "%s: who aborts it while its grant is under way leaves that to who asked again by the same name",
  async (ask) => {
    const [here, there] = [open(), open()];
    const abort = new AbortController();
    const first = here[ask]("k", { ttlMs, attemptId: "job 1", signal: abort.signal });
    const repeat = there.acquire("k", { ttlMs, attemptId: "job 1", renew: false });
    abort.abort("gone");
    expect(await settled(first)).toBe("gone");
    const lease = await repeat;
    expect(await settled(open().tryAcquire("k"))).toBeNull();
    await settled(lease.extend());
    lease.throwIfLost();
    expect(await settled(lease.release())).toBe(true);
  },
);

test("a named grant that nobody wants any more, and nobody asks for again, ends with its TTL", async () => {
  const abort = new AbortController();
  const first = open().acquire("k", { ttlMs, attemptId: "job 1", signal: abort.signal });
  abort.abort("gone");
  expect(await settled(first)).toBe("gone");
  expect(await settled(open().tryAcquire("k"))).toBeNull();
  await clock.advance(ttlMs);
  expect(await settled(open().tryAcquire("k"))).not.toBeNull();
});

/** The engine's answer, of a grant of the token `t`. */
function told(fencingToken: bigint): Pending {
  const validity = validFrom(momentOf(clock), ttlMs);
  const grant = { key: "k", token: "t", fencingToken, fencingCount: 1, validity, isClaim: false };
  return { result: Promise.resolve({ outcome: "granted", grant }), cancel: () => undefined };
}
