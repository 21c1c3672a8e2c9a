import { LockError, type Holder, type Lease } from "holdfast";
import { expect, test } from "vitest";

import { clock, lost, onManualClock, open, settled, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

test("a term that was released has ended: resign says that it did not lead", async () => {
  const election = open().election("k", { ttlMs });
  const term = await election.campaign();
  expect(await term.release()).toBe(true);
  expect(await election.resign()).toBe(false);
});

test("a term that was lost has ended: resign says so, and the candidate may campaign again", async () => {
  const election = open().election("k", { ttlMs });
  const term = await election.campaign();
  const { signal } = term;
  await open().admin.breakLock("k", { fencingToken: term.fencingToken, reason: "test" });
  expect(signal.reason).toEqual(lost("broken"));
  expect(await election.resign()).toBe(false);
  const again = await election.campaign();
  expect(again.fencingToken).toBeGreaterThan(term.fencingToken);
  expect([await election.resign(), await election.resign()]).toEqual([true, false]);
  expect(again.remainingMs()).toBe(0);
});

test("a leader cannot campaign, because it would wait for itself", async () => {
  const election = open().election("k", { ttlMs });
  await election.campaign();
  await expect(election.campaign()).rejects.toMatchObject({
    code: "self-deadlock",
    message: 'This candidate already leads "k", so this call would wait for itself',
  });
});

test("resign does not end a campaign that is under way", async () => {
  const [here, there] = [open().election("k", { ttlMs }), open().election("k", { ttlMs })];
  await here.campaign();
  const waiting = there.campaign();
  expect(await settled(waiting)).toBe("pending");
  expect(await there.resign()).toBe(false);
  await here.resign();
  expect(await settled(waiting)).toMatchObject({ key: "k" });
});

test("a campaign can be aborted or bounded by waitMs, and has no bound by default", async () => {
  const leader = open().election("k", { ttlMs });
  await leader.campaign();
  const other = open().election("k", { ttlMs });
  const controller = new AbortController();
  const aborted = other.campaign({ signal: controller.signal });
  const bounded = other.campaign({ waitMs: 1_000 });
  const endless = open().election("k", { ttlMs }).campaign();
  await clock.advance(999);
  controller.abort("enough");
  await expect(aborted).rejects.toBe("enough");
  expect(await settled(bounded)).toBe("pending");
  await clock.advance(1);
  expect(await settled(bounded)).toMatchObject({ code: "wait-timeout" });
  await clock.advance(60_000);
  expect(await settled(endless)).toBe("pending");
  await leader.resign();
  expect(await settled(endless)).toMatchObject({ key: "k" });
});

test("a term lasts until its release or loss, unless maxHoldMs is set", async () => {
  const endless = await open({}, { defaults: { maxHoldMs: 1_000 } })
    .election("k", { ttlMs })
    .campaign();
  await clock.advance(10_000);
  endless.throwIfLost();
  await endless.release();
  const bounded = await open().election("k", { ttlMs, maxHoldMs: 2_000 }).campaign();
  const { signal } = bounded;
  await clock.advance(2_000);
  expect(signal.reason).toEqual(lost("max-hold"));
});

test("a new leader comes at once when the term has expired at the engine", async () => {
  const dying = await open().election("k", { ttlMs }).campaign();
  const next = open().election("k", { ttlMs }).campaign();
  dying.orphan();
  await clock.advance(ttlMs - 1);
  expect(await settled(next)).toBe("pending");
  await clock.advance(1);
  expect(((await settled(next)) as Lease).fencingToken).toBeGreaterThan(dying.fencingToken);
});

test("observers see each leader once, also one of the same name, and then the end", async () => {
  const locks = open({}, { owner: "same" });
  const election = locks.election("k", { ttlMs });
  const seen: (Holder | null)[] = [];
  const controller = new AbortController();
  const observing = (async (): Promise<void> => {
    for await (const leader of open().election("k").observe({ signal: controller.signal })) {
      seen.push(leader);
    }
  })();
  await clock.advance(0);
  const tokens: bigint[] = [];
  for (let round = 0; round < 2; round += 1) {
    const { fencingToken } = await election.campaign();
    tokens.push(fencingToken);
    await clock.advance(10);
    await clock.advance(2 * ttlMs); // a renewal changes no leader
    await election.resign();
    await clock.advance(10);
  }
  controller.abort();
  await clock.advance(0);
  await observing;
  expect(seen.map((leader) => leader?.fencingToken ?? null)).toEqual([
    null,
    tokens[0],
    null,
    tokens[1],
    null,
  ]);
  expect(await election.leader()).toBeNull();
});

test("close() ends the campaign and the term, and the next candidate leads at once", async () => {
  const [here, there] = [open(), open()];
  const term = await here.election("k", { ttlMs }).campaign();
  const { signal } = term;
  const own = here.election("k", { ttlMs }).campaign();
  const next = there.election("k", { ttlMs }).campaign();
  expect(await settled(own)).toBe("pending");
  const closing = here.close();
  expect(await settled(own)).toMatchObject({ code: "closed" });
  await closing;
  expect(signal.reason).toEqual(lost("released"));
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("invalid options are refused before a request is sent", () => {
  const locks = open();
  expect(() => locks.election("")).toThrow(LockError);
  expect(() => locks.election("k", { attemptId: "x" })).toThrow(TypeError);
  expect(() => locks.election("k", { limit: 1 } as never)).toThrow(/Unknown option `limit`/);
  expect(() => locks.election("k").campaign({ ttlMs: 1 })).toThrow(RangeError);
});
