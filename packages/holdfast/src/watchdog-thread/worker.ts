// The program of the watchdog thread.

import { parentPort, workerData } from "node:worker_threads";

// oxlint-disable-next-line no-restricted-imports -- the thread opens a driver of its own
import { connect, type ConnectOptions } from "../drivers/connect/index.ts";
import { sharedClockLead, systemClock } from "../runtime/clock.ts";
import { LeaseSlot } from "./lease-slot.ts";
import type { ThreadData, ThreadLease, ThreadMessage, ThreadReport } from "./messages.ts";
import { ThreadRenewer } from "./thread-renewer.ts";

const { url, connection, heartbeat, maxBlockedMs } = workerData as ThreadData;
const lastBeat = new BigInt64Array(heartbeat);
const monotonicLeadMs = sharedClockLead().leastMs; // the thread of the leases takes the largest lead
const blocks: BigInt64Array[] = [];
const driver = await connect(url, connection as ConnectOptions);
const renewer = new ThreadRenewer({
  clock: systemClock,
  engine: driver,
  monotonicLeadMs,
  blockedMs: () => systemClock.now() + monotonicLeadMs - Number(Atomics.load(lastBeat, 0)),
  maxBlockedMs,
  unknownLease: (key) => report({ type: "unknown-lease", key }),
});

function report(message: ThreadReport): void {
  parentPort?.postMessage(message);
}

function add(added: ThreadLease): void {
  const memory = blocks[added.block];
  if (memory) {
    renewer.add(added, new LeaseSlot(memory, added.index, added.lease));
  }
}

parentPort?.on("message", (message: ThreadMessage) => {
  switch (message.type) {
    case "block":
      blocks.push(new BigInt64Array(message.block));
      break;
    case "add":
      message.leases.forEach(add);
      break;
    case "close":
      void driver
        .close()
        .catch(() => undefined)
        .finally(() => parentPort?.close());
  }
});
await driver.nodes().catch(() => undefined); // connects
report({ type: "ready" });
