import type { Example } from "./example.ts";

/** Doors open when three shards are warm; one of them says so twice, as it was not sure that it was heard. */
export const latch: Example = async (here, there, say) => {
  const options = { count: 3, ttlMs: 10_000 };
  const key = `warm:${process.pid}`; // a latch is used once
  const warm = here.latch(key, options);
  const doors = there.latch(key, options);
  for (const shard of ["one", "two", "two"]) {
    say(`shard ${shard} is warm, ${await warm.countDown({ attemptId: shard })} are not`);
  }
  const opening = doors.wait();
  say(`shard three is warm, ${await warm.countDown({ attemptId: "three" })} are not`);
  await opening;
  say("the doors open");
};
