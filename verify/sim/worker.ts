import { runSeedBatch } from "./run/seeds.ts";

// Ends by itself when the channel to its parent does.
process.on("message", (seeds: readonly number[]) => {
  runSeedBatch(seeds).then(
    (played) => process.connected && process.send?.(played),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});

// Whoever asks the whole group to end asks the parent, too, which waits for what is under way.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => undefined);
}
