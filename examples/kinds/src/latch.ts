import type { Example } from "./example.ts";

/** Doors open when three shards are warm. One shard reports twice, because it does not know whether its first report arrived. */
export const latch: Example = async (firstProcess, secondProcess, print) => {
  const options = { count: 3, ttlMs: 10_000 };
  const key = `warm:${process.pid}`; // a latch is used once
  const warm = firstProcess.latch(key, options);
  const doors = secondProcess.latch(key, options);
  for (const shard of ["one", "two", "two"]) {
    print(`shard ${shard} is warm, ${await warm.countDown({ attemptId: shard })} are not`);
  }
  const opening = doors.wait();
  print(`shard three is warm, ${await warm.countDown({ attemptId: "three" })} are not`);
  await opening;
  print("the doors open");
};
