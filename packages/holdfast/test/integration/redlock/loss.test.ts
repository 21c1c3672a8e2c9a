import { setTimeout as pause } from "node:timers/promises";

import type { Lease, Locks } from "holdfast";
import { expect, test } from "vitest";
import { type Proxy, rejection, waitUntil } from "@holdfast/test-kit";

import {
  distanceMs,
  connect,
  holders,
  ExclusionChecker,
  newKey,
  expectNoResidue,
  onQuorum,
  open,
  queued,
  closeAndExpectNoResidue,
  startNodes,
  startProxies,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";
import { QuorumWorker, sharedNow } from "../../support/quorum-workers.ts";

/** Far longer than the tests take: nobody waits for it. */
const ttlMs = 60_000;
const waitMs = 25_000;
/** What is paused here is not given up for it. */
const patient = { nodeTimeoutMs: 10_000, commandTimeoutMs: 10_000 };

onQuorum("a grant whose reply is lost", () => {
  test.each([
    { lost: [3, 4], isLibraryRepeating: true },
    { lost: [2, 3, 4], isLibraryRepeating: false },
    { lost: [0, 1, 2, 3, 4], isLibraryRepeating: false },
    { lost: [0, 1, 2, 3, 4], isLibraryRepeating: true },
  ])(
    "on the nodes $lost is found again or taken back (sent again by the client: $isLibraryRepeating)",
    async ({ lost, isLibraryRepeating }) => {
      const nodes = await startNodes();
      const proxies = await startProxies(nodes);
      const ledger = new ExclusionChecker();
      const one = openBy(proxies, isLibraryRepeating);
      const other = open(nodes, { nodeTimeoutMs: 1_000 });
      await Promise.all([warmUp(one), warmUp(other)]);
      const key = newKey();
      const deaf = pick(proxies, lost);
      pauseAll(deaf, "answers");
      const asking = one.acquire(key, { ttlMs, waitMs });
      await waitUntil(async () => (await granted(nodes, key)) === 5, "all have granted");
      const [token] = await holders(nodes, key);
      const waiting = other.acquire(key, { ttlMs, waitMs });
      await queued(nodes, key, 1);
      cutAll(deaf);
      resumeAll(deaf, "answers");
      const lease = ledger.granted(await asking);
      expect(await holders(nodes, key)).toEqual([token, token, token, token, token]);
      expect(await ledger.release(lease)).toBe(true);
      const next = ledger.granted(await waiting);
      await ledger.release(next);
      await expectNoResidue(nodes);
      expect(ledger).toMatchObject({ grants: 2, faults: [] });
    },
  );

  test("for good is taken back when the caller gives up, long before its TTL is over", async () => {
    const nodes = await startNodes();
    const proxies = await startProxies(nodes);
    const ledger = new ExclusionChecker();
    const one = openBy(proxies, false);
    const other = open(nodes, { nodeTimeoutMs: 1_000 });
    await Promise.all([warmUp(one), warmUp(other)]);
    const key = newKey();
    pauseAll(proxies, "answers");
    const asking = rejection(one.acquire(key, { ttlMs, waitMs: 800 }));
    await waitUntil(async () => (await granted(nodes, key)) === 5, "all have granted");
    const waiting = other.acquire(key, { ttlMs, waitMs });
    const { error } = await asking;
    expect(error).toMatchObject({ code: "quorum-not-reached", outcome: "unknown", retryable: true });
    const next = ledger.granted(await waiting);
    cutAll(proxies);
    resumeAll(proxies, "answers");
    expect(await ledger.release(next)).toBe(true);
    await expectNoResidue(nodes);
  });
});

/** Of four nodes the first two have granted to `early`, the others to `late`, which came after it. */
interface Split {
  readonly key: string;
  readonly nodes: readonly QuorumNode[];
  /** Those that have granted to `late`. */
  readonly contested: readonly QuorumNode[];
  readonly early: Side;
  readonly late: Side;
  readonly ledger: ExclusionChecker;
  /** Both get it in turn, `early` first. */
  readonly settles: () => Promise<void>;
}

interface Side {
  readonly locks: Locks;
  /** To the two nodes that have granted to it. */
  readonly own: readonly Proxy[];
  /** To the other two. */
  readonly others: readonly Proxy[];
  readonly lease: Promise<Lease>;
  readonly abort: () => void;
}

/** @param prepare before `late` asks */
async function partition(prepare: (wayOfLate: readonly Proxy[]) => void = () => undefined): Promise<Split> {
  const nodes = await startNodes(4);
  const ledger = new ExclusionChecker();
  const key = newKey();
  const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
  const [here, there] = proxies.map((proxy) => openBy(proxy, false)) as [Locks, Locks];
  await Promise.all([warmUp(here), warmUp(there)]);
  await closeAndExpectNoResidue([here, there], nodes);
  const side = (locks: Locks, own: readonly Proxy[], others: readonly Proxy[]): Side => {
    pauseAll(others, "requests");
    const giving = new AbortController();
    const lease = locks.acquire(key, { ttlMs, waitMs, signal: giving.signal });
    lease.catch(() => undefined); // told to who awaits it
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
  await waitUntil(async () => (await granted(nodes, key)) === 2, "the earlier one has its half");
  await pause(distanceMs);
  prepare(proxies[1]);
  const late = side(there, proxies[1].slice(2), proxies[1].slice(0, 2));
  await waitUntil(async () => (await granted(nodes, key)) === 4, "the later one has its half");
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

onQuorum("a vote that is asked back", () => {
  test("is given back again where the first giving back never arrived", async () => {
    const { key, contested, early, late, settles } = await partition();
    const before = await holders(contested, key);
    for (const proxy of late.own) {
      proxy.holdBack(/yield/);
    }
    resumeAll(early.others, "requests");
    await waitUntil(() => late.own.every(({ heldBack }) => heldBack > 0), "it gives its votes back");
    expect(await holders(contested, key)).toEqual(before);
    for (const proxy of late.own) {
      proxy.holdBack(undefined);
    }
    cutAll(late.own);
    await settles();
  });

  test("is given back though the answer to that is lost, and its place in the queue stays", async () => {
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

  test("does not count any more from the moment that the giving back is sent", async () => {
    const { key, nodes, contested, early, late, ledger } = await partition();
    const [token] = await holders(contested, key);
    for (const proxy of late.own) {
      proxy.holdBack(/yield/);
    }
    resumeAll(early.others, "requests");
    await waitUntil(() => late.own.every(({ heldBack }) => heldBack > 0), "it gives its votes back");
    // It has the votes of the other half now, and these two nodes still say that they are its own.
    early.abort();
    await waitUntil(
      async () => (await holders(nodes, key)).every((holder) => holder === token),
      "all are its own",
    );
    expect(await Promise.race([late.lease, pause(600, "nothing")])).toBe("nothing");
    for (const proxy of late.own) {
      proxy.releaseHeld();
    }
    const lease = ledger.granted(await late.lease);
    expect(await ledger.release(lease)).toBe(true);
    await expectNoResidue(nodes);
  });

  test.each(["inquiry", "grant"])("settles it though the first %s of each node is lost", async (word) => {
    const { early, late, settles } = await partition();
    const pattern = new RegExp(`${word} `);
    const deaf = word === "inquiry" ? late.own : early.others;
    const lost = Promise.all(deaf.map((proxy) => proxy.serverSent(pattern)));
    for (const proxy of deaf) {
      proxy.dropMatching(pattern);
    }
    resumeAll(early.others, "requests");
    await within(lost, "they are lost");
    for (const proxy of deaf) {
      proxy.dropMatching(undefined);
    }
    const since = performance.now();
    await early.lease;
    expect(performance.now() - since).toBeLessThan(4_500); // everybody polls after 5 s, whatever was lost
    await settles();
  });

  test("before we know that we have it is given back as soon as we do", async () => {
    const { key, contested, early, late, settles } = await partition((proxy) => {
      pauseAll(proxy, "answers");
    });
    const before = await holders(contested, key);
    const inquired = Promise.all(late.own.map((proxy) => proxy.serverSent(/inquiry /)));
    resumeAll(early.others, "requests");
    await within(inquired, "the inquiries overtake the votes");
    pauseAll([...early.own, ...early.others], "requests"); // and are not repeated
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

/** TTLs and claims that tests wait for. */
const shortMs = 1_000;
const claimMs = 600;
const lateMs = 10_000;

/** One process that comes to grief, and others that go on. */
interface LossFault {
  readonly nodes: readonly QuorumNode[];
  readonly ways: readonly Proxy[];
  readonly worker: QuorumWorker;
  readonly other: Locks;
  readonly third: Locks;
  readonly key: string;
  readonly ledger: ExclusionChecker;
  /** Ends or stops the process. */
  readonly strike: () => Promise<void>;
}

interface Step {
  readonly step: string;
  /** Brings the process there and strikes it. */
  readonly come: (grief: LossFault) => Promise<Struck>;
}

interface Struck {
  /** Who goes on. */
  readonly waiting: Promise<Lease>;
  /** How long that may take at the least, by what the process was granted. */
  readonly blockedMs: number;
  /** The number of the lease that the process had, if it had one. */
  readonly fencingToken?: bigint;
  /** Until when it may have used that, on the scale of `sharedNow`. */
  readonly validUntil?: number;
  /** What becomes of the process when it goes on. */
  readonly afterwards: "granted" | "lost" | "passed on";
}

const steps: readonly Step[] = [
  {
    step: "asking",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      pauseAll(proxies, "answers");
      worker.order("acquire", { key, options: { ttlMs: shortMs, waitMs } });
      await waitUntil(async () => (await granted(nodes, key)) === nodes.length, "all have granted");
      await strike();
      const waiting = other.acquire(key, { ttlMs, waitMs });
      return { waiting, blockedMs: shortMs, afterwards: "granted" };
    },
  },
  {
    step: "split",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      pauseAll(proxies.slice(0, 2), "requests");
      worker.order("acquire", { key, options: { ttlMs: shortMs, waitMs } });
      await waitUntil(async () => (await granted(nodes.slice(2), key)) === 2, "it has its half");
      await strike();
      const waiting = other.acquire(key, { ttlMs, waitMs });
      return { waiting, blockedMs: shortMs, afterwards: "granted" };
    },
  },
  {
    step: "waiting",
    come: async ({ nodes, worker, other, third, key, ledger, strike }) => {
      const lease = ledger.granted(await other.acquire(key, { ttlMs }));
      worker.order("acquire", { key, options: { ttlMs, waitMs } });
      await queued(nodes, key, 1);
      await strike();
      await pause(distanceMs);
      const waiting = third.acquire(key, { ttlMs, waitMs });
      await queued(nodes, key, 2);
      await ledger.release(lease);
      return { waiting, blockedMs: claimMs, afterwards: "granted" };
    },
  },
  {
    step: "claiming",
    come: async ({ nodes, ways: proxies, worker, other, third, key, ledger, strike }) => {
      const lease = ledger.granted(await other.acquire(key, { ttlMs }));
      const [before] = await holders(nodes, key);
      worker.order("acquire", { key, options: { ttlMs, waitMs } });
      await queued(nodes, key, 1);
      await pause(distanceMs);
      const waiting = third.acquire(key, { ttlMs, waitMs });
      await queued(nodes, key, 2);
      pauseAll(proxies, "requests");
      // It may want to ask whether the messages are true, which it cannot.
      const hears = Promise.race([worker.event("granted"), pause(1_000)]);
      await ledger.release(lease);
      await waitUntil(async () => !(await holders(nodes, key)).includes(before ?? null), "it is passed on");
      const claimed = await hears;
      await strike();
      if (!claimed) {
        return { waiting, blockedMs: claimMs, afterwards: "granted" };
      }
      const { validUntil } = claimed;
      const fencingToken = BigInt(claimed.fencingToken);
      return { waiting, blockedMs: claimMs, fencingToken, validUntil, afterwards: "lost" };
    },
  },
  {
    step: "elected",
    come: async ({ worker, other, key, strike }) => {
      const lease = await hold(worker, key);
      await strike();
      const waiting = other.acquire(key, { ttlMs, waitMs });
      return { waiting, blockedMs: shortMs, ...lease, afterwards: "lost" };
    },
  },
  {
    step: "giving back",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      const lease = await hold(worker, key);
      const waiting = other.acquire(key, { ttlMs, waitMs });
      const [before] = await holders(nodes, key);
      await queued(nodes, key, 1);
      pauseAll(proxies.slice(1), "requests");
      worker.order("release", { key });
      await waitUntil(async () => (await nodes[0]?.holder(key)) !== before, "one node has it back");
      await strike();
      return { waiting, blockedMs: shortMs, ...lease, afterwards: "passed on" };
    },
  },
  {
    step: "handing on",
    come: async ({ nodes, ways: proxies, worker, other, key, strike }) => {
      const lease = await hold(worker, key);
      const waiting = other.acquire(key, { ttlMs, waitMs });
      const [before] = await holders(nodes, key);
      await queued(nodes, key, 1);
      await pause(distanceMs);
      worker.order("acquire", { key, options: { ttlMs: shortMs, waitMs } }); // behind its own lease
      pauseAll(proxies.slice(1), "requests");
      worker.order("release", { key });
      await waitUntil(async () => (await nodes[0]?.holder(key)) !== before, "one node has passed it on");
      await strike();
      return { waiting, blockedMs: shortMs, ...lease, afterwards: "granted" };
    },
  },
];

onQuorum("processes of which each comes to grief at another step", () => {
  test("and is killed: the others go on", { timeout: 60_000 }, async () => {
    await atEachStep(
      (worker) => worker.kill(),
      async ({ other, key, ledger }, { waiting, blockedMs, fencingToken = 0n, validUntil = 0 }) => {
        const lease = ledger.granted(await inTime(waiting, blockedMs));
        expect(sharedNow()).toBeGreaterThanOrEqual(validUntil);
        expect(lease.fencingToken).toBeGreaterThan(fencingToken);
        await ledger.release(lease);
        await ledger.release(ledger.granted(await other.acquire(key, { ttlMs, waitMs })));
      },
    );
  });

  test("and is frozen: the others go on, and it does not go on as before", { timeout: 60_000 }, async () => {
    await atEachStep(
      async (worker) => {
        worker.freeze();
      },
      async (grief, { waiting, blockedMs, fencingToken = 0n, validUntil = 0, afterwards }) => {
        const { nodes, ways: proxies, worker, third, key, ledger } = grief;
        const lease = ledger.granted(await inTime(waiting, blockedMs));
        expect(sharedNow()).toBeGreaterThanOrEqual(validUntil);
        expect(lease.fencingToken).toBeGreaterThan(fencingToken);
        await lease.extend(); // what it was granted by a message is confirmed
        const ours = mostOf(await holders(nodes, key));
        resumeAll(proxies, "requests");
        resumeAll(proxies, "answers");
        const turn = worker.event("granted");
        turn.catch(() => undefined);
        const gone = afterwards === "passed on" ? worker.event("released") : undefined;
        worker.thaw();
        // It does what it was about to do, and none of that touches the lease of now.
        await pause(300);
        expect(mostOf(await holders(nodes, key))).toBe(ours);
        expect(lease.remainingMs()).toBeGreaterThan(0);
        if (afterwards === "lost") {
          expect(await worker.request("judge", { key }, "judged")).toMatchObject({ isLost: true });
          expect(await worker.request("release", { key }, "released")).toMatchObject({ released: false });
        }
        await gone;
        const releasedAt = sharedNow();
        expect(await ledger.release(lease)).toBe(true);
        if (afterwards === "granted") {
          const mine = await turn;
          expect(mine.at).toBeGreaterThanOrEqual(releasedAt);
          expect(BigInt(mine.fencingToken)).toBeGreaterThan(lease.fencingToken);
          await worker.request("release", { key }, "released");
        }
        await ledger.release(ledger.granted(await third.acquire(key, { ttlMs, waitMs })));
      },
    );
  });
});

/** All at once, each with a process and a key of its own. */
async function atEachStep(
  strike: (worker: QuorumWorker) => Promise<void>,
  check: (grief: LossFault, struck: Struck) => Promise<void>,
): Promise<void> {
  const nodes = await startNodes(4);
  const options = { nodeTimeoutMs: 1_000, claimMs };
  const [other, third] = [open(nodes, options), open(nodes, options)];
  const ledger = new ExclusionChecker();
  const griefs = await Promise.all(
    steps.map(async ({ step }) => {
      const proxies = await startProxies(nodes);
      const redlock = { ...patient, claimMs };
      const locks = { handover: { max: 0 } };
      const worker = await QuorumWorker.start({ name: step, drivers: [proxies], redlock, locks });
      await worker.request("warmUp", { count: nodes.length }, "warm");
      return {
        nodes,
        ways: proxies,
        worker,
        other,
        third,
        key: newKey(),
        ledger,
        strike: () => strike(worker),
      };
    }),
  );
  await Promise.all([warmUp(other), warmUp(third)]);
  await closeAndExpectNoResidue([other, third], nodes);
  const results = await Promise.allSettled(
    griefs.map(async (grief, index) => check(grief, await (steps[index] as Step).come(grief))),
  );
  const failures = results.flatMap((result, index) =>
    result.status === "rejected" ? [{ step: steps[index]?.step, error: result.reason as unknown }] : [],
  );
  expect(failures).toEqual([]);
  await expectNoResidue(nodes);
  expect(ledger.faults).toEqual([]);
}

/** What has to come soon after so long. */
async function inTime(waiting: Promise<Lease>, blockedMs: number): Promise<Lease> {
  const since = performance.now();
  const lease = await waiting;
  expect(performance.now() - since).toBeLessThan(blockedMs + lateMs);
  return lease;
}

/** The process has it on all nodes, for a short while, and does not renew it. */
async function hold(
  worker: QuorumWorker,
  key: string,
): Promise<{ fencingToken: bigint; validUntil: number }> {
  const options = { ttlMs: shortMs, waitMs, renew: false };
  const { fencingToken, validUntil } = await worker.request("acquire", { key, options }, "granted");
  return { fencingToken: BigInt(fencingToken), validUntil };
}

/** @param isLibraryRepeating whether the client library sends unanswered commands once more */
function openBy(proxies: readonly Proxy[], isLibraryRepeating: boolean): Locks {
  const clients = proxies.map((proxy) =>
    connect(proxy, { autoResendUnfulfilledCommands: isLibraryRepeating }),
  );
  return open(proxies, patient, {}, clients);
}

async function granted(nodes: readonly QuorumNode[], key: string): Promise<number> {
  return (await holders(nodes, key)).filter((holder) => holder !== null).length;
}

/** Who has more than half of the nodes; undefined: nobody. */
function mostOf(tokens: readonly (string | null)[]): string | null | undefined {
  return tokens.find((one) => tokens.filter((other) => other === one).length > tokens.length / 2);
}

async function within<T>(promise: Promise<T>, what: string): Promise<T> {
  const late = pause(15_000, undefined, { ref: false }).then(() => {
    throw new Error(`not within 15 s: ${what}`);
  });
  return Promise.race([promise, late]);
}

function pick<T>(all: readonly T[], indexes: readonly number[]): T[] {
  return all.filter((_, index) => indexes.includes(index));
}

function pauseAll(proxies: readonly Proxy[], flow: "requests" | "answers"): void {
  for (const proxy of proxies) {
    proxy.pause(flow);
  }
}

function resumeAll(proxies: readonly Proxy[], flow: "requests" | "answers"): void {
  for (const proxy of proxies) {
    proxy.resume(flow);
  }
}

function cutAll(proxies: readonly Proxy[]): void {
  for (const proxy of proxies) {
    proxy.cut();
  }
}
