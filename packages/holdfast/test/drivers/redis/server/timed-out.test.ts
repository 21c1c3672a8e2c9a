import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Locks } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { faulty, manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

// A waiter at the end of its wait requests the name of the holder. The next waiter does not wait for the reply.

const distanceMs = 20;
const waitMs = 500;

test.each([1, 3])("the next waiter has its queue entry before that, on %d nodes", async (nodeCount) => {
  const clock = manualClock();
  const nodes = Array.from(
    { length: nodeCount },
    (_, index) =>
      new FakeRedis({ clock, random: manualRandom(index), name: `n${index}`, upForMs: 3_600_000 }),
  );
  let sides = 0;
  const side = (ms: number): Locks => {
    const connections = nodes.map((node) => {
      const { connection, controls } = faulty(node.connect(), { clock });
      controls.delay({ requestMs: ms, replyMs: ms });
      return connection;
    });
    const options = { clock, random: manualRandom((sides += 10)) };
    const [first] = connections;
    return createLocks(first && nodeCount === 1 ? redis(first, options) : redlock(connections, options));
  };
  const within = async <T>(ms: number, answer: Promise<T>): Promise<T> => {
    await clock.advance(ms);
    return answer;
  };
  await within(100, side(1).acquire("k", { ttlMs: 10_000 }));
  const locks = side(distanceMs);
  const warm = await within(1_000, locks.acquire("warm"));
  await within(100, warm.release());

  const first = locks.acquire("k", { waitMs });
  const next = locks.acquire("k", { waitMs: 30_000 });
  let isTold = false;
  first.catch(() => (isTold = true));
  next.catch(() => undefined);
  await clock.advance(waitMs + distanceMs);
  expect(isTold).toBe(false);
  for (const node of nodes) {
    const members = node.dump("holdfast:queue:{lock:k}")?.value as readonly string[] | undefined;
    expect(members).toHaveLength(1);
  }
  await clock.advance(250);
  await expect(first).rejects.toMatchObject({ code: "wait-timeout" });
  await within(3_000, locks.close());
});
