import { readFileSync, unwatchFile, watchFile, type Stats } from "node:fs";

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
 * Reads the auth file again now, after each change, and on SIGHUP. A file with an error changes nothing, and leaves a line of the log.
 * @returns ends it
 */
export function followAuthFile(service: Service, file: string, log: Log = () => undefined): () => void {
  const read = (report: Log): void => {
    try {
      const auth = readAuthFile(file);
      const ended = service.replaceAuth(auth);
      const { tokens = [], jwt = [] } = auth;
      report({ level: "info", event: "auth-reloaded", tokens: tokens.length, issuers: jwt.length, ended });
    } catch (error) {
      log({
        level: "error",
        event: "auth-not-reloaded",
        error: error instanceof Error ? error.message : String(error),
      });
    }
  };
  const reload = (): void => read(log);
  const onStatus = (now: Stats, before: Stats): void => {
    // The time of a missing file is 0: another program replaces it. The time of its content may be kept or 0, for example by a copy, and
    // a change of its rights may be what makes it readable.
    if (now.ctimeMs !== 0 && (now.ctimeMs !== before.ctimeMs || now.ino !== before.ino)) {
      reload();
    }
  };
  watchFile(file, { interval: intervalMs, persistent: false }, onStatus);
  process.on("SIGHUP", reload);
  read(() => undefined); // a change between the start of the service and now
  return () => {
    unwatchFile(file, onStatus);
    process.off("SIGHUP", reload);
  };
}
