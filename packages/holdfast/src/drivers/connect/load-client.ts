import { LockError } from "../../errors.ts";
import { openIoredis } from "./ioredis.ts";
import { openNodeRedis } from "./node-redis.ts";
import type { OwnedClient, ClientSettings } from "./client-settings.ts";

export type ClientName = "ioredis" | "node-redis";

/** Opens what a library's clients are needed for. */
export type ClientOpener = (plan: ClientSettings) => OwnedClient[];

/**
 * Loads the library that was asked for, or of both the first that is installed: ioredis before node-redis.
 * @throws {LockError} `unsupported` where it is not installed; what fails while it is loaded, as it is
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

// The names are written out, and each import stands in a `try` of its own, so that bundlers find them and can do without.
const loaders: Readonly<Record<ClientName, () => Promise<ClientOpener | undefined>>> = {
  ioredis: async () => {
    try {
      const library = await import("ioredis");
      return (plan) => openIoredis(library, plan);
    } catch (error) {
      return ifMissing("ioredis", error);
    }
  },
  "node-redis": async () => {
    try {
      const library = await import("redis");
      return (plan) => openNodeRedis(library, plan);
    } catch (error) {
      return ifMissing("redis", error);
    }
  },
};

/** A library that is there and cannot be loaded is broken, and not to be passed over in silence. */
function ifMissing(name: string, error: unknown): undefined {
  const { code, message } = error as NodeJS.ErrnoException;
  const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  if (!isMissing || !message.includes(`'${name}'`)) {
    throw error;
  }
}
