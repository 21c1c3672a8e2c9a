// Connects to the URL of its argument. Then it acquires, or waits for, the lock of each message, and reports its lease and the loss.
import { createLocks } from "../../dist/index.js";
import { connect } from "../../dist/drivers/connect/index.js";

const locks = createLocks(await connect(process.argv[2]), { owner: "worker" });

/** Leases without a reference are garbage-collected, and then report nothing. */
const held = [];

process.on("message", ({ key, options }) => {
  locks.acquire(key, options).then(
    async (lease) => {
      held.push(lease);
      const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      process.send({ acquired: key, fencingToken: String(lease.fencingToken) });
      await lost;
      process.send({ lost: key, isValid: lease.remainingMs() > 0, released: await lease.release() });
    },
    (error) => process.send({ failed: key, code: error.code }),
  );
});
process.send({ ready: true });
