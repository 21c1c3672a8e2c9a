import { tell } from "../../diagnostics.ts";
import type { Driver } from "../../driver.ts";
import { systemRandom } from "../../runtime/random.ts";
import { readAddress, type Address } from "./url.ts";
import { connectToService, isService } from "./http.ts";
import { loadLibrary } from "./load-client.ts";
import {
  resolve,
  withoutConnections,
  type Access,
  type ConnectionOptions,
  type DriverOptions,
} from "./options.ts";
import type { Opened, Plan } from "./client-settings.ts";
import { readTls } from "./tls.ts";
import { memory } from "../memory/driver.ts";
import { redis, redlock } from "../redis/index.ts";

/**
 * What may also stand in the query of the URL, but for `username`, `password`, `clock` and `random`. Nothing may be said twice.
 * With `memory:` they may be given, and only `clock` and `random` mean something.
 */
export type ConnectOptions = ConnectionOptions & DriverOptions;

/**
 * A driver from a URL, with clients of its own, which it closes when it is closed itself. It resolves as soon as the client library
 * is loaded: the servers need not answer yet. No error and no diagnostics show a secret of the URL.
 *
 * `memory:`, `redis://host`, `rediss://host`, `redis+unix:///socket`, `redis+sentinel://host,host/primary`,
 * `redis+cluster://host,host`, `redlock://host,host,host`; with TLS `rediss+sentinel:`, `rediss+cluster:`, `redlocks:`.
 * `http://host`, `https://host`: a lock service, with its token as `password`; beside that it takes `commandTimeoutMs`, and
 * with TLS the options of that.
 *
 * @throws {TypeError | RangeError} at once, for a URL or an option that is not understood
 * Rejects with a `LockError`, code `unsupported`, where the client library is not installed, or cannot do it.
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Promise<Driver> {
  if (isService(url)) {
    return connectToService(url, options);
  }
  const address = readAddress(url);
  if (address.topology === "memory") {
    return Promise.resolve(memory(withoutConnections(options)));
  }
  const { access, driver } = resolve(address, options);
  return open(address, access, driver);
}

async function open(address: Address, access: Access, options: DriverOptions): Promise<Driver> {
  const openClients = await loadLibrary(access.client);
  const node = address.endpoints
    .map((one) => ("path" in one ? one.path : `${one.host}:${one.port}`))
    .join(",");
  const plan: Plan = {
    address,
    access,
    tls: await readTls(access.tls),
    commandTimeoutMs: options.commandTimeoutMs ?? 2_000,
    random: options.random ?? systemRandom,
    failed: (error) => tell("node", () => ({ node, event: "connection-failed", detail: messageOf(error) })),
  };
  const opened = openClients(plan);
  try {
    return thatCloses(driverOf(address, opened, options), opened);
  } catch (error) {
    closeAll(opened);
    throw error;
  }
}

function driverOf({ topology }: Address, opened: readonly Opened[], options: DriverOptions): Driver {
  const clients = opened.map(({ client }) => client);
  const [first] = clients as [Opened["client"]];
  return topology === "quorum" ? redlock(clients, options) : redis(first, options);
}

/** The same driver, that ends what was opened for it when it is closed. */
function thatCloses(driver: Driver, opened: readonly Opened[]): Driver {
  const close = driver.close.bind(driver);
  driver.close = async () => {
    try {
      await close();
    } finally {
      closeAll(opened);
    }
  };
  return driver;
}

function closeAll(opened: readonly Opened[]): void {
  for (const one of opened) {
    one.close();
  }
}

/** Of a client's error only the words: it may carry the command that failed, and with it the password. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
