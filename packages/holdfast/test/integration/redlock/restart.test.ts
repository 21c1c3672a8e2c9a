import { QuorumError, type Locks } from "holdfast";
import type { RedlockOptions } from "holdfast/redis";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { limitMs, type Proxy, rejection, SyncedFiles, waitUntil } from "@holdfast/test-kit";

import { executeQuorumScript } from "../../../src/drivers/redis/protocol/scripts.generated.ts";
import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  connect,
  disconnect,
  durable,
  awaitSubscribed,
  findFreePort,
  holders,
  newKey,
  reconnect,
  onCleanup,
  onLongUpQuorum,
  onQuorum,
  open,
  closeAndExpectNoResidue,
  startLongUpNodes,
  startNodes,
  startProxies,
  votesOf,
  warmUp,
  type QuorumNode,
} from "../../support/quorum-servers.ts";

const ttlMs = 20_000;
/** How long a node with this `maxTtlMs` does not vote after a restart. */
const memoryMs = (maxTtlMs: number): number => maxTtlMs + 3_000;

/** A client that reaches C, D and E. */
interface Rival extends RedlockOptions {
  /** Whether it has known A and B before. @defaultValue true */
  readonly knows?: boolean;
}

/** One client that reaches A, B and C, with the options of the first rival, and the rivals. */
interface Sides {
  readonly nodes: readonly QuorumNode[];
  readonly middle: QuorumNode;
  readonly one: Locks;
  readonly rivals: readonly Locks[];
}

// A busy machine makes no node time out.
const patient = { nodeTimeoutMs: 300, commandTimeoutMs: 700, restartGuard: undefined };

async function sides(rivals: readonly Rival[], { args = durable, env = {} } = {}): Promise<Sides> {
  const nodes = await startLongUpNodes(5, args, env);
  const proxies = await startProxies(nodes);
  const [{ knows: _, ...first } = {}] = rivals;
  const one = open(proxies, { ...patient, ...first });
  await warmUp(one);
  await closeAndExpectNoResidue([one], nodes);
  const others: Locks[] = [];
  for (const { knows = true, ...options } of rivals) {
    const own = await startProxies(nodes);
    if (!knows) {
      disconnect(own.slice(0, 2));
    }
    const other = open(own, { ...patient, ...options });
    others.push(other);
    if (knows) {
      await warmUp(other);
      await closeAndExpectNoResidue([one, other], nodes);
      disconnect(own.slice(0, 2));
    }
  }
  disconnect(proxies.slice(3));
  return { nodes, middle: nodes[2] as QuorumNode, one, rivals: others };
}

async function twoSides(
  given: Rival,
  options?: Parameters<typeof sides>[1],
): Promise<Sides & { other: Locks }> {
  const all = await sides([given], options);
  return { ...all, other: all.rivals[0] as Locks };
}

/** No rival gets the lock, because C does not vote. */
async function expectRefusals({ nodes, rivals }: Sides, key: string): Promise<void> {
  for (const rival of rivals) {
    expectQuarantine(await refusalInTime(() => rival.tryAcquire(key, { ttlMs })));
    await waitUntil(
      async () => (await heldBy(nodes.slice(3), key)) === 0,
      "the rival has returned its votes",
    );
  }
}

onLongUpQuorum("a node that is restarted empty under a held lock", () => {
  test("gives no second holder, neither to a client that knew the node nor to one without any contact to it", async () => {
    const lab = await sides([{}, { knows: false }]);
    const { nodes, middle, one, rivals } = lab;
    const key = newKey();
    const ledger = new ExclusionChecker();
    const lease = ledger.granted(await one.acquire(key, { ttlMs }));
    expect(await heldBy(nodes.slice(0, 3), key)).toBe(3);
    await middle.restart();
    expect(await middle.holder(key)).toBeNull();

    await expectRefusals(lab, key);
    for (const other of rivals) {
      const { error, afterMs } = await rejection(other.acquire(key, { ttlMs, waitMs: 1_200 }));
      expectQuarantine(error);
      expect(afterMs).toBeGreaterThan(1_150);
      const { retryAfterMs } = error as QuorumError;
      expect(retryAfterMs).toBeGreaterThan(50_000); // A and B are unreachable, so C decides
      expect(retryAfterMs).toBeLessThanOrEqual(memoryMs(60_000));
      const states = await other.admin.nodes();
      expect(states[2]?.quarantine).toEqual({
        reason: expect.stringContaining("forgotten") as unknown,
        remainingMs: expect.toSatisfy((ms: number) => ms > 50_000 && ms <= memoryMs(60_000)) as unknown,
      });
      await waitUntil(async () => (await heldBy(nodes.slice(3), key)) === 0, "it has returned its votes");
    }
    expect(lease.remainingMs()).toBeGreaterThan(0);
    await one.close(); // releases on A and B
  });

  test("gives two holders with the guard off, so these tests can fail", async () => {
    const { middle, one, other } = await twoSides({ restartGuard: "off" });
    const key = newKey();
    const lease = await one.acquire(key, { ttlMs });
    await middle.restart();
    const second = await other.acquire(key, { ttlMs });
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(second.remainingMs()).toBeGreaterThan(0);
    await Promise.all([one.close(), other.close()]);
  });

  test("votes again when all grants that it may have lost are expired, and not before", async () => {
    const maxTtlMs = 500;
    const { middle, one, other } = await twoSides({ maxTtlMs });
    const key = newKey();
    const ledger = new ExclusionChecker();
    const lease = ledger.granted(await one.acquire(key, { ttlMs: maxTtlMs }));
    await middle.restart();
    const restartedAt = performance.now();
    const next = ledger.granted(await other.acquire(key, { ttlMs: maxTtlMs, waitMs: 15_000 }));
    expect(performance.now() - restartedAt).toBeGreaterThan(memoryMs(maxTtlMs) - 1_100); // uptimes are whole seconds
    expect(lease.signal.aborted).toBe(true);
    expect(await ledger.release(next)).toBe(true);
    expect(ledger.faults).toEqual([]);
  });

  test("is recognised by its reply to a command that the client library resends, and by nothing else", async () => {
    // No timeout passes, so no other request is sent. The first reply of the new run is the reply to the resent
    // command.
    const slow = { nodeTimeoutMs: 10_000, commandTimeoutMs: 600, restartGuard: undefined };
    const nodes = await startLongUpNodes();
    const proxies = [await startProxies(nodes), await startProxies(nodes)] as const;
    const [one, other] = proxies.map((proxy) => open(proxy, slow)) as [Locks, Locks];
    await Promise.all([warmUp(one), warmUp(other)]);
    await closeAndExpectNoResidue([one, other], nodes);
    disconnect(proxies[0].slice(3));
    disconnect(proxies[1].slice(0, 2));
    const middle = nodes[2] as QuorumNode;
    const proxy = proxies[1][2] as Proxy;
    const key = newKey();
    const lease = await one.acquire(key, { ttlMs });
    // The request is under way to the node of the holder when that node is killed.
    proxy.pause("requests");
    const acquiring = rejection(other.acquire(key, { ttlMs, waitMs: 2_000 }));
    await waitUntil(async () => (await heldBy(nodes.slice(3), key)) === 2, "the request has two votes");
    await middle.restart();
    await middle.direct.script("LOAD", executeQuorumScript.source); // otherwise the whole script would be sent a second time
    expect(await middle.holder(key)).toBeNull();
    proxy.holdBack(/subscribe/i); // a new subscription includes a handshake, which would report the new run
    proxy.cut();
    proxy.resume("requests");
    await waitUntil(async () => (await middle.holder(key)) !== null, "the resent command is executed");
    const { error } = await acquiring;
    expectQuarantine(error);
    expect(proxy.heldBack).toBeGreaterThan(0);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    proxy.releaseHeld();
    await one.close();
  });
});

/** With these arguments and {@link fill} a rewrite of the file takes six seconds. */
const slowRewrite = ["--rdb-key-save-delay", "12000", "--auto-aof-rewrite-percentage", "0"];

async function fill(node: QuorumNode): Promise<void> {
  const pipeline = node.direct.pipeline();
  for (let index = 0; index < 500; index += 1) {
    pipeline.set(`data:${index}`, "x");
  }
  await pipeline.exec();
}

const trustingOrNew: readonly Rival[] = [
  { knows: false },
  { knows: false, restartGuard: "trust-durable" },
  { knows: true, restartGuard: "trust-durable" },
];

/** A renewal would write the lease to the restarted node again. */
const unrenewed = { ttlMs, renew: false };

onLongUpQuorum("a node that is durable only since its restart", () => {
  test("gives no second holder to any client", async () => {
    const lab = await sides(trustingOrNew, { args: [] });
    const { middle, one } = lab;
    const key = newKey();
    const lease = await one.acquire(key, unrenewed);
    await middle.restart(durable);
    expect(await middle.holder(key)).toBeNull();
    await expectRefusals(lab, key);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    await one.close();
  });

  test("and whose first rewrite was not finished gives no second holder, with each guard", async () => {
    const { nodes, middle, one } = await sides([], { args: slowRewrite });
    await fill(middle);
    await middle.direct.config("SET", "appendfsync", "always");
    await middle.direct.config("SET", "appendonly", "yes");
    const away = [await findFreePort(), await findFreePort()];
    const rivals = ([undefined, "trust-durable"] as const).map((restartGuard) =>
      open([...away, ...nodes.slice(2)], { commandTimeoutMs: 300, restartGuard }),
    );
    for (const rival of rivals) {
      await awaitSubscribed(rival, 3); // it sees the run before the restart, with durable settings
      expect((await rival.admin.nodes())[2]?.quarantine).toBeNull();
    }
    const key = newKey();
    const lease = await one.acquire(key, unrenewed);
    await waitUntil(async () => (await middle.holder(key)) !== null, "the node has voted");
    expect(await middle.direct.info("persistence")).toMatch(/aof_enabled:1[^]*aof_rewrite_in_progress:1/);
    await middle.restart(durable);
    expect(await middle.holder(key)).toBeNull();
    await expectRefusals({ nodes, middle, one, rivals }, key);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    await one.close();
  });
});

onLongUpQuorum("a node that loses its power during a rewrite of its file", () => {
  /**
   * The power is lost while `one` holds the lock.
   * @param syncs whether the node forces its writes to disk during the rewrite
   * @returns the holder on the node after its restart
   */
  async function losePower(
    rivals: readonly Rival[],
    syncs: boolean,
  ): Promise<Sides & { key: string; holder: unknown }> {
    const synced = await SyncedFiles.make();
    onCleanup(() => synced[Symbol.asyncDispose]());
    const args = [...durable, "--no-appendfsync-on-rewrite", syncs ? "no" : "yes", ...slowRewrite];
    const lab = await sides(rivals, { args, env: synced.env });
    const { middle, one } = lab;
    await fill(middle);
    await middle.direct.bgrewriteaof();
    const key = newKey();
    await one.acquire(key, unrenewed);
    await waitUntil(async () => (await middle.holder(key)) !== null, "the node has voted");
    await middle.losePower(synced);
    await middle.restart(args);
    return { ...lab, key, holder: await middle.holder(key) };
  }

  test("and does not force its writes gives no second holder to any client", async () => {
    const { key, holder, ...lab } = await losePower(trustingOrNew, false);
    expect(holder).toBeNull();
    await expectRefusals(lab, key);
    await lab.one.close();
  });

  test("and forces its writes keeps its grants, and votes at once for a client that trusts it", async () => {
    const { one, rivals, key, holder } = await losePower([{ restartGuard: "trust-durable" }], true);
    expect(holder).not.toBeNull();
    const [other] = rivals as [Locks];
    await awaitSubscribed(other, 3);
    expect(await other.tryAcquire(key, { ttlMs })).toBeNull();
    await one.close();
  });
});

onLongUpQuorum("a durable node that is restarted", () => {
  test("waits by default, although it has its grants", async () => {
    const { middle, one, other } = await twoSides({});
    const key = newKey();
    const lease = await one.acquire(key, { ttlMs });
    const token = await middle.holder(key);
    await middle.restart(durable);
    expect(await middle.holder(key)).toBe(token);
    expectQuarantine(await refusalInTime(() => other.tryAcquire(newKey(), { ttlMs })));
    expect(await lease.release()).toBe(true);
  });

  test("is trusted: still has its grants, and votes at once", async () => {
    const { nodes, middle, one, other } = await twoSides({ restartGuard: "trust-durable" });
    const key = newKey();
    const lease = await one.acquire(key, { ttlMs });
    const token = await middle.holder(key);
    await middle.restart(durable);
    expect(await middle.holder(key)).toBe(token);
    await awaitSubscribed(other, 3);
    expect(await other.tryAcquire(key, { ttlMs })).toBeNull();
    const free = await other.acquire(newKey(), { ttlMs });
    expect(await free.release()).toBe(true);
    await awaitSubscribed(one, 3);
    await lease.extend();
    expect(await lease.release()).toBe(true);
    const next = await other.acquire(key, { ttlMs });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await next.release()).toBe(true);
    // A majority has answered the release, and the other nodes may answer later.
    await expect.poll(() => holders(nodes, key)).toEqual([null, null, null, null, null]);
  });

  test.each(["--appenddirname", "--appendfilename"])(
    "with another %s is empty, and gives no second holder to a client that trusts it",
    async (setting) => {
      const { middle, one, other } = await twoSides({ restartGuard: "trust-durable" });
      const key = newKey();
      const lease = await one.acquire(key, unrenewed);
      await middle.restart([...durable, setting, "other"]);
      expect(await middle.holder(key)).toBeNull();
      expectQuarantine(await refusalInTime(() => other.tryAcquire(key, { ttlMs })));
      expect(lease.remainingMs()).toBeGreaterThan(0);
      await one.close();
    },
  );

  test("without its file, which is switched on before the client returns, gives no second holder", async () => {
    const nodes = await startLongUpNodes(3);
    const [one, proxies] = [open(nodes, trusting), await startProxies(nodes)];
    const other = open(proxies, trusting);
    await Promise.all([warmUp(one), warmUp(other)]);
    const middle = nodes[1] as QuorumNode;
    disconnect(proxies);
    await middle.restart();
    await middle.direct.config("SET", "appendfsync", "always");
    await middle.direct.config("SET", "appendonly", "yes");
    await waitUntil(
      async () =>
        /aof_rewrite_in_progress:0[^]*aof_last_rewrite_time_sec:\d/.test(await middle.direct.info()),
      "the first rewrite of the file is finished",
    );
    reconnect(proxies);
    await awaitSubscribed(other, 3);
    await waitUntil(
      async () => (await other.admin.nodes())[1]?.quarantine?.reason.includes("forgotten") === true,
      "the node waits",
    );
  });

  test("keeps its waiters queued", async () => {
    const nodes = await startLongUpNodes(3);
    const [one, other] = [open(nodes, trusting), open(nodes, trusting)];
    await Promise.all([warmUp(one), warmUp(other)]);
    const key = newKey();
    const lease = await one.acquire(key, { ttlMs });
    const waiting = other.acquire(key, { ttlMs, waitMs: 20_000 });
    const queue = `holdfast:queue:{lock:${key}}`;
    for (const node of nodes) {
      await waitUntil(async () => (await node.direct.zcard(queue)) === 1, "the waiter is queued");
      await node.restart(durable);
      await waitUntil(async () => (await node.direct.zcard(queue)) === 1, "the waiter is still queued");
    }
    await Promise.all([awaitSubscribed(one), awaitSubscribed(other)]);
    expect(await lease.release()).toBe(true);
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await next.release()).toBe(true);
  });
});

const trusting = { restartGuard: "trust-durable", commandTimeoutMs: 500 } as const;

onLongUpQuorum("a trusted durable node whose CONFIG reply is lost by its restart", () => {
  test("votes as soon as another reply reports its durability", async () => {
    const nodes = await startLongUpNodes(3);
    const clients = nodes.map((node) => connect(node));
    const locks = open(nodes, trusting, {}, clients);
    await warmUp(locks);
    const isLost = loseNextConfig(clients[0] as Redis);
    await nodes[0]?.restart(durable);
    await waitUntil(isLost, "CONFIG was sent");
    await waitUntil(
      async () => {
        await locks.withLock(newKey(), () => undefined);
        const [state] = await locks.admin.nodes();
        return state?.reachable === true && state.quarantine === null;
      },
      "the node votes",
      limitMs(20_000),
    );
  });

  test("votes only after its quarantine if CONFIG is refused", async () => {
    const nodes = await startLongUpNodes(3);
    await nodes[0]?.direct.acl("SETUSER", "default", "-config");
    const locks = open(nodes, trusting);
    await warmUp(locks);
    await nodes[0]?.restart(durable);
    await locks.withLock(newKey(), () => undefined);
    await waitUntil(
      async () => (await locks.admin.nodes())[0]?.quarantine?.reason.includes("forgotten") === true,
      "the quarantine is known",
    );
    const [state] = await locks.admin.nodes();
    expect(state?.quarantine?.remainingMs).toBeGreaterThan(30_000);
  });
});

/** The client never receives the reply to its next CONFIG. Returns whether that happened. */
function loseNextConfig(client: Redis): () => boolean {
  const send = client.sendCommand.bind(client);
  let isLost = false;
  client.sendCommand = (command, ...rest) => {
    const answer = send(command, ...rest);
    if (isLost || command.name.toLowerCase() !== "config") {
      return answer;
    }
    isLost = true;
    return new Promise(() => undefined);
  };
  return () => isLost;
}

onQuorum("nodes that may have lost data", () => {
  test("are named with the reason and the remaining time, and vote after it", async () => {
    const maxTtlMs = 1_000;
    const nodes = await startNodes(3, { args: [] });
    const locks = open(nodes, { maxTtlMs, nodeTimeoutMs: 300, restartGuard: undefined });
    const { error } = await rejection(locks.tryAcquire(newKey(), { ttlMs: maxTtlMs }));
    for (const { vote, reason } of votesOf(error)) {
      expect(vote).toBe("quarantined");
      expect(reason).toMatch(/forgotten.*\d+(\.\d+)? s\b/);
    }
    const { retryAfterMs } = error as QuorumError;
    expect(retryAfterMs).toBeGreaterThan(1_000);
    expect(retryAfterMs).toBeLessThanOrEqual(memoryMs(maxTtlMs));
    const lease = await locks.acquire(newKey(), { ttlMs: maxTtlMs, waitMs: 15_000 });
    expect(await lease.release()).toBe(true);
  });
});

async function heldBy(nodes: readonly QuorumNode[], key: string): Promise<number> {
  return (await holders(nodes, key)).filter((holder) => holder !== null).length;
}

/** The error of a try to which all reachable nodes reply in time. The restarted node may still be connecting. */
async function refusalInTime(tried: () => Promise<unknown>): Promise<unknown> {
  let refusal: unknown;
  await waitUntil(async () => {
    refusal = (await rejection(tried())).error;
    const votes = refusal instanceof QuorumError ? refusal.votes.slice(2) : [];
    return votes.every(({ vote }) => vote !== "timeout" && vote !== "error");
  }, "all reachable nodes reply in time");
  return refusal;
}

/** Expects that C does not vote, with the reason. */
function expectQuarantine(error: unknown): void {
  const votes = votesOf(error);
  expect(votes[2]).toMatchObject({
    vote: "quarantined",
    reason: expect.stringContaining("forgotten") as unknown,
  });
  expect(votes.slice(3).map(({ vote }) => vote)).toEqual(["granted", "granted"]);
}
