import { runSeedBatch } from "./run/seeds.ts";

// The process exits automatically when its parent closes the channel.
process.on("message", (seeds: readonly number[]) => {
  runSeedBatch(seeds).then(
    (results) => process.connected && process.send?.(results),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});

// A signal to the process group also reaches the parent. The parent then waits for the batches in progress, so the worker ignores the signal.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => undefined);
}
