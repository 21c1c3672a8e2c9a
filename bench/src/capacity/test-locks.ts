import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import { connect } from "../run/client.ts";

/** Locks of this process. Each has its own client, as the locks of separate processes have, and all are closed together. */
export class TestLocks implements AsyncDisposable {
  readonly #cleanups: (() => Promise<void>)[] = [];

  open(
    port: number,
    { driver, locks: options }: { driver?: RedisOptions; locks?: LocksOptions } = {},
  ): Locks {
    const client = connect(port);
    const locks = createLocks(redis(client, driver), options);
    this.#cleanups.push(async () => {
      await locks.close();
      client.disconnect();
    });
    return locks;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#cleanups.map((end) => end()));
  }
}
