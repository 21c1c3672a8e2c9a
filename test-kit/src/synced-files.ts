import { rmSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { compileShim } from "./shim.ts";

/**
 * The parts of a server's files that are on its disk for certain. A loss of power is simulated: the server is killed, and its files are cut to their sizes at
 * the last `fsync`. Needs Linux and a C compiler.
 */
export class SyncedFiles implements AsyncDisposable {
  /** Environment variables for the start of the server. */
  readonly env: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #removeOnExit = (): void => {
    rmSync(this.#folder, { recursive: true, force: true });
  };

  private constructor(folder: string, library: string) {
    this.#folder = folder;
    this.env = { LD_PRELOAD: library, HOLDFAST_SYNC_FOLDER: folder };
    process.once("exit", this.#removeOnExit);
  }

  static async make(): Promise<SyncedFiles> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-synced-"));
    try {
      await chmod(folder, 0o777); // a server may run as another user
      return new SyncedFiles(folder, compileShim("sync-shim", folder));
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Removes from the files of the dead server what a loss of power may lose. @returns the number of removed bytes */
  async losePower(serverFolder: string): Promise<number> {
    let lost = 0;
    for (const entry of await readdir(serverFolder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile()) {
        const { ino, size } = await stat(path);
        const synced = await this.#syncedSize(ino);
        if (size > synced) {
          await truncate(path, synced);
          lost += size - synced;
        }
      }
    }
    return lost;
  }

  async #syncedSize(inode: number): Promise<number> {
    const record = await readFile(join(this.#folder, String(inode))).catch(() => undefined);
    return record ? Number(record.readBigInt64LE()) : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#removeOnExit);
    await rm(this.#folder, { recursive: true, force: true });
  }
}
