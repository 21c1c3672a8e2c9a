import { publish } from "../../diagnostics.ts";
import type { Driver } from "../../driver.ts";
import { systemRandom } from "../../runtime/random.ts";
import { parseUrl, type ConnectionUrl } from "./url.ts";
import { connectHttp, isHttpUrl } from "./http.ts";
import { loadClientLibrary } from "./load-client.ts";
import {
  resolve,
  withoutConnectionOptions,
  type Credentials,
  type ConnectionOptions,
  type DriverOptions,
} from "./options.ts";
import type { OwnedClient, ClientSettings } from "./client-settings.ts";
import { loadTls } from "./tls.ts";
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
  if (isHttpUrl(url)) {
    return connectHttp(url, options);
  }
  const target = parseUrl(url);
  if (target.topology === "memory") {
    return Promise.resolve(memory(withoutConnectionOptions(options)));
  }
  const { access, driver } = resolve(target, options);
  return open(target, access, driver);
}

async function open(
  target: ConnectionUrl,
  credentials: Credentials,
  options: DriverOptions,
): Promise<Driver> {
  const openClients = await loadClientLibrary(credentials.client);
  const node = target.endpoints
    .map((one) => ("path" in one ? one.path : `${one.host}:${one.port}`))
    .join(",");
  const settings: ClientSettings = {
    url: target,
    credentials,
    tls: await loadTls(credentials.tls),
    commandTimeoutMs: options.commandTimeoutMs ?? 2_000,
    random: options.random ?? systemRandom,
    failed: (error) =>
      publish("node", () => ({ node, event: "connection-failed", detail: messageOf(error) })),
  };
  const client = openClients(settings);
  try {
    return withClose(driverOf(target, client, options), client);
  } catch (error) {
    closeAll(client);
    throw error;
  }
}

function driverOf(
  { topology }: ConnectionUrl,
  client: readonly OwnedClient[],
  options: DriverOptions,
): Driver {
  const clients = client.map(({ client }) => client);
  const [first] = clients as [OwnedClient["client"]];
  return topology === "quorum" ? redlock(clients, options) : redis(first, options);
}

/** The same driver, that ends what was opened for it when it is closed. */
function withClose(driver: Driver, client: readonly OwnedClient[]): Driver {
  const close = driver.close.bind(driver);
  driver.close = async () => {
    try {
      await close();
    } finally {
      closeAll(client);
    }
  };
  return driver;
}

function closeAll(client: readonly OwnedClient[]): void {
  for (const one of client) {
    one.close();
  }
}

/** Of a client's error only the words: it may carry the command that failed, and with it the password. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
