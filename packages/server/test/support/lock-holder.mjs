// Holds locks of an engine or a service until it is killed: node lock-holder.mjs <url> <owner> <ttlMs> <key>...
// Prints one line when it holds all of them.

import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";

const [url, owner, ttlMs, ...keys] = process.argv.slice(2);
const locks = createLocks(await connect(url), { owner });
for (const key of keys) await locks.acquire(key, { ttlMs: Number(ttlMs) });
console.log("held");
setInterval(() => undefined, 60_000); // renewals do not keep a process alive
