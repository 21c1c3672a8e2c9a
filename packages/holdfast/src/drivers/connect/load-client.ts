import { LockError } from "../../errors.ts";
import { isNotInstalled } from "./own-client.ts";
import { openIoredis } from "./ioredis.ts";
import { openNodeRedis } from "./node-redis.ts";
import type { OwnedClient, ClientSettings } from "./client-settings.ts";

export type ClientName = "ioredis" | "node-redis";

/** Opens the clients for a URL: one for each node of a quorum, else a single one. */
export type ClientOpener = (settings: ClientSettings) => OwnedClient[];

/**
 * Loads the requested client library; without a request ioredis, or else node-redis.
 * @throws {LockError} `unsupported` if no library is installed; an error of the loading itself is thrown unchanged
 */
export async function loadClientLibrary(requested: ClientName | undefined): Promise<ClientOpener> {
  const names: readonly ClientName[] = requested === undefined ? ["ioredis", "node-redis"] : [requested];
  for (const name of names) {
    const opener = await loaders[name]();
    if (opener !== undefined) {
      return opener;
    }
  }
  throw new LockError(
    `connect() needs a client library, and ${names.join(" or ")} is not installed: npm install ${packages[names[0] as ClientName]}`,
    { code: "unsupported" },
  );
}

const packages: Readonly<Record<ClientName, string>> = { ioredis: "ioredis", "node-redis": "redis" };

// Bundlers need literal names in the imports, and a `try` around each import to treat the library as optional.
const loaders: Readonly<Record<ClientName, () => Promise<ClientOpener | undefined>>> = {
  ioredis: async () => {
    try {
      const library = await import("ioredis");
      return (settings) => openIoredis(library, settings);
    } catch (error) {
      return ifMissing("ioredis", error);
    }
  },
  "node-redis": async () => {
    try {
      const library = await import("redis");
      return (settings) => openNodeRedis(library, settings);
    } catch (error) {
      return ifMissing("redis", error);
    }
  },
};

/** Throws the error of an installed library that cannot be loaded, because a broken library must not be skipped silently. */
function ifMissing(name: string, error: unknown): undefined {
  if (!isNotInstalled(name, error)) {
    throw error;
  }
}
