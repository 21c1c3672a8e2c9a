// As many waits, streams, renewals and leases as one token can have, for as long as stdin is open. Prints how many of each were refused,
// and how many failed because a busy machine did not reply in time.
// usage: flood.mjs URL TOKEN LEASE_ID

import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

const [url, token, leaseId] = process.argv.slice(2);
const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
const over = new AbortController();
setMaxListeners(0, over.signal);
process.stdin.on("data", () => undefined).on("end", () => over.abort());

/** Counts the requests at once that were refused, and those that failed. The replies that are streams stay open, and are read. */
async function refusals(count, path, body) {
  const counts = { refused: 0, failed: 0 };
  const send = async (index) => {
    const content = body && { method: "POST", body: JSON.stringify(body(index)) };
    try {
      const response = await fetch(new URL(path, url), { headers, signal: over.signal, ...content });
      counts.refused += response.status === 429 ? 1 : 0;
      counts.failed += response.status >= 500 ? 1 : 0;
      for await (const _ of response.body);
    } catch {
      counts.failed += over.signal.aborted ? 0 : 1;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, index) => send(index)));
  return counts;
}

const renewed = { leases: Array.from({ length: 1_000 }, () => ({ leaseId })) };
async function renew() {
  while (!over.signal.aborted) {
    await refusals(1, "/v1/renew", () => renewed);
  }
}

const all = [
  refusals(700, "/v1/leases", () => ({ key: "order:1", waitMs: 60_000 })),
  refusals(250, "/v1/events?key=order:1"),
  pause(2_000).then(() =>
    refusals(1_100, "/v1/leases", (index) => ({ key: `order:n${index}`, waitMs: 0, ttlMs: 60_000 })),
  ),
  ...Array.from({ length: 3 }, renew),
];
await all[2];
process.stdout.write("begun\n");
const [waits, streams, leases] = await Promise.all(all);
process.stdout.write(`${JSON.stringify({ leases, waits, streams })}\n`);
