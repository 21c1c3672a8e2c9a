import { setTimeout } from "node:timers/promises";

import { limitMs, waitUntil } from "@holdfast/test-kit";
import { createLocks, isLockError, type Locks } from "holdfast";
import { etcd, type EtcdOptions } from "holdfast/etcd";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { onEtcd, startEtcdCluster, type EtcdCluster, type EtcdMember } from "../../support/etcd-server.ts";
import { ExclusionChecker } from "../../support/exclusion-checker.ts";

/** A progress after a fault may need an election and the TTL of a lease that a fault has left. */
const progressMs = limitMs(60_000);
const testMs = limitMs(300_000);
/** How long a contender pauses after an error. */
const retryMs = 50;

onEtcd("a cluster of three members of etcd", () => {
  let cluster: EtcdCluster;
  let opened: Locks[] = [];
  let stopped: AbortController;

  beforeEach(() => {
    stopped = new AbortController();
  });

  beforeAll(async () => {
    cluster = await startEtcdCluster(3);
  });

  afterAll(() => cluster.stop());

  afterEach(async () => {
    stopped.abort();
    cluster.members.forEach((member) => member.thaw());
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
  });

  function open(endpoints: readonly string[] = cluster.urls, options?: EtcdOptions): Locks {
    const locks = createLocks(etcd(endpoints, options), { handover: false });
    opened.push(locks);
    return locks;
  }

  /** The members, the leader first. */
  async function byRole(): Promise<[EtcdMember, EtcdMember, EtcdMember]> {
    let leader: EtcdMember | undefined;
    await waitUntil(
      async () => {
        const leads = await Promise.all(cluster.members.map(isLeader));
        leader = cluster.members[leads.indexOf(true)];
        return leader !== undefined;
      },
      "a member leads",
      progressMs,
    );
    const followers = cluster.members.filter((member) => member !== leader);
    return [leader, ...followers] as [EtcdMember, EtcdMember, EtcdMember];
  }

  test(
    "never has two holders through crashes, freezes, a lost majority and a restart, and waiters proceed",
    async () => {
      const checker = new ExclusionChecker();
      const keys = [
        { key: "short", clients: 4, ttlMs: 5_000, turnMs: 10 },
        { key: "long", clients: 2, ttlMs: 4_000, turnMs: 1_500 },
      ];
      const contenders = keys.flatMap((one) =>
        Array.from({ length: one.clients }, (_, index) => {
          const { urls } = cluster;
          const locks = open([...urls.slice(index % urls.length), ...urls.slice(0, index % urls.length)]);
          return contend(locks, checker, { ...one, signal: stopped.signal });
        }),
      );
      /** Each contender gets turns after those that were under way. */
      const progress = async (fault: string): Promise<void> => {
        const before = contenders.map(({ turns }) => turns());
        const isAhead = ({ turns }: Contender, index: number): boolean => turns() >= (before[index] ?? 0) + 2;
        await waitUntil(() => contenders.every(isAhead), `all proceed after: ${fault}`, progressMs);
        expect(checker.faults).toEqual([]);
      };
      await progress("the start");

      let [leader, follower, other] = await byRole();
      await leader.kill();
      await progress("the crash of the leader");
      await leader.restart();

      [leader] = await byRole();
      leader.freeze();
      await progress("a freeze of the leader");
      leader.thaw();

      [, follower] = await byRole();
      follower.freeze();
      await progress("a freeze of a follower");
      follower.thaw();

      [leader, follower, other] = await byRole();
      leader.freeze();
      other.freeze();
      await expect(open().tryAcquire("short")).rejects.toMatchObject({ code: "engine-unavailable" });
      leader.thaw();
      other.thaw();
      await progress("a lost majority");

      await Promise.all(cluster.members.map((member) => member.kill()));
      await Promise.all(cluster.members.map((member) => member.restart()));
      await progress("a restart of all members");

      stopped.abort();
      await Promise.all(contenders.map(({ ended }) => ended));
      expect(checker.faults).toEqual([]);
    },
    testMs,
  );

  test("serves a request to a frozen member by another member within commandTimeoutMs", async () => {
    const [leader, frozen, other] = await byRole();
    const locks = open([frozen.url, leader.url, other.url], { commandTimeoutMs: 6_000 });
    await (await locks.acquire("warm")).release();
    frozen.freeze();
    const lease = await locks.tryAcquire("key", { ttlMs: 30_000 });
    expect(lease).not.toBeNull();
    await waitUntil(
      async () => (await locks.admin.nodes()).map(({ reachable }) => reachable).join() === "false,true,true",
      "one of three members does not answer",
    );
    expect(await lease?.release()).toBe(true);
  });

  test(
    "wakes a waiter whose stream of notifications came from a frozen member",
    async () => {
      const [leader, frozen, other] = await byRole();
      const watches: string[] = [];
      const options = { commandTimeoutMs: 2_000, fetch: recordingWatches(watches) };
      const locks = open([frozen.url, leader.url, other.url], options);
      const direct = open([leader.url]);
      const lease = await direct.acquire("key", { ttlMs: 60_000 });
      const waiting = locks.acquire("key", { waitMs: progressMs });
      await waitUntil(
        async () => (await direct.inspect("key")).waiterCount === 1,
        "the other waits",
        progressMs,
      );
      expect(watches.at(-1)).toBe(frozen.url);
      frozen.freeze();
      await waitUntil(() => watches.at(-1) !== frozen.url, "another member opens the stream", progressMs);
      expect(await lease.release()).toBe(true);
      expect((await waiting).fencingToken).toBeGreaterThan(lease.fencingToken);
    },
    testMs,
  );
});

interface Contender {
  readonly ended: Promise<void>;
  turns(): number;
}

interface Contention {
  readonly key: string;
  readonly ttlMs: number;
  /** How long a turn lasts. A lease is renewed after a third of its TTL. */
  readonly turnMs: number;
  readonly signal: AbortSignal;
}

/** Takes turns on a key until the signal aborts. */
function contend(
  locks: Locks,
  checker: ExclusionChecker,
  { key, ttlMs, turnMs, signal }: Contention,
): Contender {
  let turns = 0;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        const lease = checker.granted(await locks.acquire(key, { ttlMs, waitMs: progressMs, signal }));
        await setTimeout(turnMs);
        await checker.release(lease);
        turns += 1;
      } catch (error) {
        if (signal.aborted || (isLockError(error) && error.code === "closed")) {
          return;
        } else if (!isLockError(error)) {
          throw error;
        }
        await setTimeout(retryMs);
      }
    }
  };
  return { ended: run(), turns: () => turns };
}

/** A `fetch` that notes the endpoints that opened a stream of notifications. */
function recordingWatches(watches: string[]): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { origin, pathname } = new URL(input instanceof Request ? input.url : input);
    if (pathname === "/v3/watch") {
      watches.push(origin);
    }
    return response;
  };
}

async function isLeader({ url }: EtcdMember): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(1_000);
    const response = await fetch(`${url}/v3/maintenance/status`, { method: "POST", body: "{}", signal });
    const { header, leader } = (await response.json()) as { header: { member_id: string }; leader?: string };
    return leader === header.member_id;
  } catch {
    return false; // the member is down
  }
}
