import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import {
  holders,
  newKey,
  onQuorum,
  open,
  queued,
  startNodes,
  startProxies,
  warmUp,
} from "../../support/quorum-servers.ts";
import { QuorumWorker } from "../../support/quorum-workers.ts";
import { awaitHeldOnAll } from "./lease-checks.ts";
import { pauseAll, resumeAll } from "./proxied-clients.ts";

const ttlMs = 60_000;
/** A busy machine makes no node time out. */
const patient = { nodeTimeoutMs: 1_000 };

onQuorum("a lease that is transferred to another process", () => {
  test("is held, extended and released there, although a minority has lost it", async () => {
    const nodes = await startNodes();
    const worker = await QuorumWorker.start({ name: "worker", drivers: [nodes], redlock: patient });
    const locks = open(nodes, patient);
    await Promise.all([warmUp(locks), worker.request("warmUp", { count: nodes.length }, "warm")]);
    const key = newKey();
    const options = { ttlMs: 20_000 };
    const { fencingToken } = await worker.request("acquire", { key, options }, "granted");
    await waitUntil(
      async () => (await holders(nodes, key)).every((one) => one !== null),
      "all nodes have the grant",
    );
    const [token] = await holders(nodes, key);
    await nodes[0]?.loseData(key);
    await nodes[1]?.kill();

    const { serialized } = await worker.request("transfer", { key }, "transferred");
    const lease = await locks.adopt(serialized);
    expect(lease.fencingToken).toBe(BigInt(fencingToken));
    expect(await worker.request("release", { key }, "released")).toMatchObject({ released: false });
    await worker.kill(); // the lease does not depend on the process that acquired it
    await lease.extend();
    await awaitHeldOnAll(
      nodes.filter(({ isUp }) => isUp),
      key,
      token,
    );
    expect(await locks.checkFence(key, lease.fencingToken)).toBe("current");
    expect(await locks.tryAcquire(key, { ttlMs })).toBeNull();

    const back = await QuorumWorker.start({ name: "back", drivers: [nodes], redlock: patient });
    await back.request("adopt", { serialized: lease.transfer() }, "granted");
    expect(await lease.release()).toBe(false);
    expect(await back.request("judge", { key }, "judged")).toMatchObject({ isLost: false });
    expect(await back.request("release", { key }, "released")).toMatchObject({ released: true });
    const next = await locks.acquire(key, { ttlMs });
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await next.release()).toBe(true);
  });

  test("is not released by a poll's reply that its former process reads late", async () => {
    const nodes = await startNodes(3);
    const proxies = await startProxies(nodes);
    const maxTtlMs = 500;
    const options = { nodeTimeoutMs: 10_000, commandTimeoutMs: 10_000, maxTtlMs };
    const [from, to] = [open(proxies, options), open(nodes, options)];
    await Promise.all([warmUp(from), warmUp(to)]);
    const key = newKey();
    const held = await to.acquire(key, { ttlMs: maxTtlMs });
    const waiting = from.acquire(key, { ttlMs: maxTtlMs });
    await queued(nodes, key, 1);
    pauseAll(proxies, "answers");
    await Promise.all(proxies.map((proxy) => proxy.serverSent(/\*2\r\n/))); // the replies to polls
    await held.release();
    const lease = await to.adopt((await waiting).transfer()); // granted by notifications
    const adoptedAt = performance.now();
    await waitUntil(() => performance.now() - adoptedAt > 3 * maxTtlMs, "several TTLs have passed");
    resumeAll(proxies, "answers");
    await from.admin.nodes(); // the releases that followed the late replies are executed
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(await from.tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);
  });

  test("is refused there if a majority has lost it", async () => {
    const nodes = await startNodes(3);
    const [from, to] = [open(nodes, patient), open(nodes, patient)];
    await Promise.all([warmUp(from), warmUp(to)]);
    const key = newKey();
    const lease = await from.acquire(key, { ttlMs });
    await waitUntil(
      async () => (await holders(nodes, key)).every((one) => one !== null),
      "all nodes have the grant",
    );
    const serialized = lease.transfer();
    await Promise.all(nodes.slice(1).map((node) => node.loseData(key)));
    const { error } = await rejection(to.adopt(serialized));
    expect(error).toMatchObject({ code: "lease-lost" });
    await nodes[0]?.loseData(key);
  });
});
