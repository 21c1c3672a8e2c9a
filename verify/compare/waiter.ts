import { connect } from "./clients.ts";
import { isLibraryName, loadLibrary } from "./roster.ts";
import { warmUp } from "./environment.ts";

// A process that waits for a lock until it is killed: `waiter.js <library> <port> <key>`. It ends with its parent.

const [name = "", port = "", key = ""] = process.argv.slice(2);
process.on("disconnect", () => process.exit());
if (!isLibraryName(name)) {
  throw new TypeError(`Expected the name of a library, got ${JSON.stringify(name)}`);
}
const library = await loadLibrary(name);
const locks = library.onServer(connect(Number(port)));
await warmUp(locks);
process.send?.("waiting");
await locks.acquire(key, { ttlMs: 20_000, waitMs: 60_000 });
