import { connect } from "../../../compare/clients.ts";
import type { Lease, Locks } from "../../../compare/library.ts";
import { isLibraryName, loadLibrary } from "../../../compare/roster.ts";
import { serve, type WorkerGrant, type WorkerLibrary } from "./serve.ts";

// The worker of the npm libraries, with the set-up of the comparison: `node npm.js LIBRARY PORT`.

class NpmLibrary implements WorkerLibrary {
  readonly extend = null;
  readonly #locks: Locks;
  readonly #disconnect: () => void;
  #held: Lease | undefined;

  constructor(locks: Locks, disconnect: () => void) {
    this.#locks = locks;
    this.#disconnect = disconnect;
  }

  async acquire(key: string, ttlMs: number, waitMs: number): Promise<WorkerGrant | null> {
    const started = performance.now();
    try {
      this.#held = await this.#locks.acquire(key, { ttlMs, waitMs });
      return {};
    } catch (error) {
      // Each library has its own error for the end of the wait.
      if (performance.now() - started > waitMs / 2) {
        return null;
      }
      throw error;
    }
  }

  async release(): Promise<boolean> {
    try {
      const answer = await this.#held?.release();
      return answer !== false;
    } catch {
      return false;
    }
  }

  close(): Promise<void> {
    this.#disconnect();
    return Promise.resolve();
  }
}

const [name = "", port] = process.argv.slice(2);
if (!isLibraryName(name)) {
  throw new Error(`unknown library: ${name}`);
}
const client = connect(Number(port));
const { onServer } = await loadLibrary(name);
await serve(new NpmLibrary(onServer(client), () => client.disconnect()));
process.exit(0); // some libraries have timers of their own
