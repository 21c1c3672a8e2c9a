import { setTimeout as pause } from "node:timers/promises";
import type { Lease, Locks } from "holdfast";
import { expect, test } from "vitest";
import { type Proxy, waitUntil } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  distanceMs,
  holders,
  newKey,
  expectNoResidue,
  onQuorum,
  closeAndExpectNoResidue,
  startNodes,
  startProxies,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { cutAll, grantCount, openThrough, pauseAll, resumeAll } from "./proxied-clients.ts";

/** Far longer than the tests take, so that no test waits for an expiry. */
const ttlMs = 60_000;
const waitMs = 25_000;

/** Of four nodes, the first two have granted to `early`, and the other two to `late`, which came later. */
interface Split {
  readonly key: string;
  readonly nodes: readonly QuorumNode[];
  /** The nodes that have granted to `late`. */
  readonly contested: readonly QuorumNode[];
  readonly early: Side;
  readonly late: Side;
  readonly ledger: ExclusionChecker;
  /** Both acquire the lock in turn, `early` first. */
  readonly settles: () => Promise<void>;
}

interface Side {
  readonly locks: Locks;
  /** Proxies to the two nodes that have granted to this side. */
  readonly own: readonly Proxy[];
  /** Proxies to the other two nodes. */
  readonly others: readonly Proxy[];
  readonly lease: Promise<Lease>;
  readonly abort: () => void;
}

/** @param prepare runs before the request of `late` */
async function partition(prepare: (wayOfLate: readonly Proxy[]) => void = () => undefined): Promise<Split> {
  const nodes = await startNodes(4);
  const ledger = new ExclusionChecker();
  const key = newKey();
  const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
  const [here, there] = proxies.map((proxy) => openThrough(proxy, false)) as [Locks, Locks];
  await Promise.all([warmUp(here), warmUp(there)]);
  await closeAndExpectNoResidue([here, there], nodes);
  const side = (locks: Locks, own: readonly Proxy[], others: readonly Proxy[]): Side => {
    pauseAll(others, "requests");
    const giving = new AbortController();
    const lease = locks.acquire(key, { ttlMs, waitMs, signal: giving.signal });
    lease.catch(() => undefined); // the caller that awaits the lease sees the rejection
    return {
      locks,
      own,
      others,
      lease,
      abort: () => {
        giving.abort();
      },
    };
  };
  const early = side(here, proxies[0].slice(0, 2), proxies[0].slice(2));
  await waitUntil(async () => (await grantCount(nodes, key)) === 2, "the earlier client has its half");
  await pause(distanceMs);
  prepare(proxies[1]);
  const late = side(there, proxies[1].slice(2), proxies[1].slice(0, 2));
  await waitUntil(async () => (await grantCount(nodes, key)) === 4, "the later client has its half");
  expect(new Set(await holders(nodes, key)).size).toBe(2);
  resumeAll(late.others, "requests");
  const settles = async (): Promise<void> => {
    for (const { lease } of [early, late]) {
      await ledger.release(ledger.granted(await lease));
    }
    await expectNoResidue(nodes);
    expect(ledger).toMatchObject({ grants: 2, faults: [] });
  };
  return { key, nodes, contested: nodes.slice(2), early, late, ledger, settles };
}

onQuorum("a vote that is requested back", () => {
  test("is yielded again if the first yield never arrived", async () => {
    const { key, contested, early, late, settles } = await partition();
    const before = await holders(contested, key);
    for (const proxy of late.own) {
      proxy.holdBack(/yield/);
    }
    resumeAll(early.others, "requests");
    await waitUntil(() => late.own.every(({ heldBack }) => heldBack > 0), "the yields are sent");
    expect(await holders(contested, key)).toEqual(before);
    for (const proxy of late.own) {
      proxy.holdBack(undefined);
    }
    cutAll(late.own);
    await settles();
  });

  test("is yielded although the reply is lost, and its queue entry stays", async () => {
    const { key, contested, early, late, settles } = await partition();
    const before = await holders(contested, key);
    pauseAll(late.own, "answers");
    resumeAll(early.others, "requests");
    await waitUntil(
      async () => !(await holders(contested, key)).some((token) => before.includes(token)),
      "given",
    );
    cutAll(late.own);
    resumeAll(late.own, "answers");
    await settles();
  });

  test("no longer counts once the yield is sent", async () => {
    const { key, nodes, contested, early, late, ledger } = await partition();
    const [token] = await holders(contested, key);
    for (const proxy of late.own) {
      proxy.holdBack(/yield/);
    }
    resumeAll(early.others, "requests");
    await waitUntil(() => late.own.every(({ heldBack }) => heldBack > 0), "the yields are sent");
    // The later client now has the votes of the other half, and its own two nodes still name it as their
    // holder.
    early.abort();
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder === token),
      "all nodes name the later client",
    );
    expect(await Promise.race([late.lease, pause(600, "nothing")])).toBe("nothing");
    for (const proxy of late.own) {
      proxy.releaseHeld();
    }
    const lease = ledger.granted(await late.lease);
    expect(await ledger.release(lease)).toBe(true);
    await expectNoResidue(nodes);
  });

  test.each(["inquiry", "grant"])("is settled although the first %s of each node is lost", async (word) => {
    const { early, late, settles } = await partition();
    const pattern = new RegExp(`${word} `);
    const silenced = word === "inquiry" ? late.own : early.others;
    const lost = Promise.all(silenced.map((proxy) => proxy.serverSent(pattern)));
    for (const proxy of silenced) {
      proxy.dropMatching(pattern);
    }
    resumeAll(early.others, "requests");
    await within(lost, "the notifications are lost");
    for (const proxy of silenced) {
      proxy.dropMatching(undefined);
    }
    const since = performance.now();
    await early.lease;
    expect(performance.now() - since).toBeLessThan(4_500); // every waiter polls after 5 s in any case
    await settles();
  });

  test("is yielded as soon as its reply arrives, if the inquiry came first", async () => {
    const { key, contested, early, late, settles } = await partition((proxy) => {
      pauseAll(proxy, "answers");
    });
    const before = await holders(contested, key);
    const inquired = Promise.all(late.own.map((proxy) => proxy.serverSent(/inquiry /)));
    resumeAll(early.others, "requests");
    await within(inquired, "the inquiries overtake the votes");
    pauseAll([...early.own, ...early.others], "requests"); // so that the inquiries are not repeated
    await pause(50);
    expect(await holders(contested, key)).toEqual(before);
    resumeAll([...late.own, ...late.others], "answers");
    await waitUntil(
      async () => !(await holders(contested, key)).some((token) => before.includes(token)),
      "given",
    );
    resumeAll([...early.own, ...early.others], "requests");
    await settles();
  });
});

async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = pause(15_000, undefined, { ref: false }).then(() => {
    throw new Error(`not within 15 s: ${what}`);
  });
  return Promise.race([promise, late]);
}
