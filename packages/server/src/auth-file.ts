import { readFileSync, unwatchFile, watchFile } from "node:fs";

import type { AuthOptions } from "./auth.ts";
import type { Log } from "./log.ts";
import type { Service } from "./service.ts";

/** How often the file is looked at, ms. A mounted secret of Kubernetes changes by a link, which causes no event of the file. */
const intervalMs = 1_000;

/** Reads the tokens and issuers of a file. @throws {TypeError} if it cannot be read, or is no JSON */
export function readAuthFile(file: string): AuthOptions {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new TypeError(`cannot read the auth file: ${(error as Error).message}`, { cause: error });
  }
  try {
    return JSON.parse(text) as AuthOptions;
  } catch (error) {
    throw new TypeError(`${file}: expected JSON: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Reads the auth file again after each change, and on SIGHUP. A file with an error changes nothing, and leaves a line of the log.
 * @returns ends it
 */
export function followAuthFile(service: Service, file: string, log: Log = () => undefined): () => void {
  const reload = (): void => {
    try {
      const auth = readAuthFile(file);
      const ended = service.replaceAuth(auth);
      const { tokens = [], jwt = [] } = auth;
      log({ level: "info", event: "auth-reloaded", tokens: tokens.length, issuers: jwt.length, ended });
    } catch (error) {
      log({
        level: "error",
        event: "auth-not-reloaded",
        error: error instanceof Error ? error.message : String(error),
      });
    }
  };
  watchFile(file, { interval: intervalMs, persistent: false }, (now, before) => {
    // A time of 0: the file is missing for a moment, while another program replaces it.
    if (
      now.mtimeMs !== 0 &&
      (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino || now.size !== before.size)
    ) {
      reload();
    }
  });
  process.on("SIGHUP", reload);
  return () => {
    unwatchFile(file);
    process.off("SIGHUP", reload);
  };
}
