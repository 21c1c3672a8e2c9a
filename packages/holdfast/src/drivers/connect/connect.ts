import { publish } from "../../diagnostics.ts";
import { messageOf } from "../../runtime/error-message.ts";
import type { Driver } from "../../driver.ts";
import { systemRandom } from "../../runtime/random.ts";
import { parseUrl, type ConnectionUrl } from "./url.ts";
import { connectEngine } from "./engines.ts";
import { connectHttp, isHttpUrl } from "./http.ts";
import { loadClientLibrary } from "./load-client.ts";
import {
  resolve,
  withoutConnectionOptions,
  type Credentials,
  type ConnectionOptions,
  type DriverOptions,
  type LayoutName,
} from "./options.ts";
import type { OwnedClient, ClientSettings } from "./client-settings.ts";
import { withClose } from "./own-client.ts";
import { loadTls } from "./tls.ts";
import { memory } from "../memory/driver.ts";
import { redis, redlock, type RedisLayout } from "../redis/index.ts";

/**
 * The options of a connection and of its driver. All but `username`, `password`, `clock` and `random` are also accepted in the query
 * of the URL, but none in both places. With `memory:` all options are accepted, and only `clock` and `random` have an effect.
 */
export type ConnectOptions = ConnectionOptions & DriverOptions;

/**
 * Creates a driver from a URL. The driver has its own clients, and closes them when the driver is closed. The promise resolves when
 * the client library is loaded, before any server has replied. No error and no diagnostic event contains a secret of the URL.
 *
 * `memory:`, `redis://host`, `rediss://host`, `redis+unix:///socket`, `redis+sentinel://host,host/primary`,
 * `redis+cluster://host,host`, `redlock://host,host,host`; with TLS `rediss+sentinel:`, `rediss+cluster:`, `redlocks:`.
 * `http://host`, `https://host`: a lock service, with its token as `password`. The lock service also accepts `commandTimeoutMs`, and
 * with `https:` the TLS options.
 * `postgres://host/database`, `postgresql://`, `mysql://host/database`, `mariadb://`: the query has the options of the driver, the options
 * of the client library, and `maxConnections`. Here an invalid URL or option rejects.
 *
 * Rejects with a `LockError`, code `unsupported`, if the client library is not installed, or does not support the topology.
 * @throws {TypeError | RangeError} synchronously, for an invalid URL or option
 * @example
 * ```ts
 * const locks = createLocks(await connect(process.env.LOCK_URL)); // redis://…, postgres://…, etcd://…
 * ```
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Promise<Driver> {
  if (isHttpUrl(url)) {
    return connectHttp(url, options);
  }
  const engine = connectEngine(url, options);
  if (engine) {
    return engine;
  }
  const target = parseUrl(url);
  if (target.topology === "memory") {
    return Promise.resolve(memory(withoutConnectionOptions(options)));
  }
  const { access, driver } = resolve(target, options);
  return open(target, access, driver);
}

type OpenOptions = Omit<DriverOptions, "layout"> & { readonly layout: RedisLayout | undefined };

async function open(
  target: ConnectionUrl,
  credentials: Credentials,
  options: DriverOptions,
): Promise<Driver> {
  const openClients = await loadClientLibrary(credentials.client);
  const layout = options.layout && (await loadLayout(options.layout));
  const node = target.endpoints
    .map((endpoint) => ("path" in endpoint ? endpoint.path : `${endpoint.host}:${endpoint.port}`))
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
  const owned = openClients(settings);
  try {
    return withClose(driverOf(target, owned, { ...options, layout }), () => closeAll(owned));
  } catch (error) {
    closeAll(owned);
    throw error;
  }
}

function driverOf(
  { topology }: ConnectionUrl,
  owned: readonly OwnedClient[],
  { layout, ...options }: OpenOptions,
): Driver {
  const clients = owned.map(({ client }) => client);
  const [first] = clients as [OwnedClient["client"]];
  return topology === "quorum" ? redlock(clients, options) : redis(first, { ...options, layout });
}

/** The code of the layouts is loaded only for a URL with a layout. */
async function loadLayout(name: LayoutName): Promise<RedisLayout | undefined> {
  const layouts = await import("../redis/layouts/index.ts");
  return Object.values(layouts).find((layout) => layout.name === name);
}

function closeAll(owned: readonly OwnedClient[]): void {
  for (const client of owned) {
    client.close();
  }
}
