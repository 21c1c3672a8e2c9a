import type * as NodeRedis from "redis";

import { systemClock, type Timer } from "../../runtime/clock.ts";
import { LockError } from "../../errors.ts";
import type { Endpoint } from "./url.ts";
import { reconnectDelayMs, type OwnedClient, type ClientSettings } from "./client-settings.ts";
import { tlsTo } from "./tls.ts";

type Library = Partial<Pick<typeof NodeRedis, "createClient" | "createCluster" | "createSentinel">>;

/** The members of a node-redis client that are used here. */
interface Client {
  on(event: "error", listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
  destroy?(): unknown;
  disconnect?(): Promise<unknown>;
}

/** Opens clients of node-redis, and connects them. They reconnect automatically. */
export function openNodeRedis(library: object, settings: ClientSettings): OwnedClient[] {
  const { createClient, createCluster, createSentinel } = library as Required<Library>;
  const { url } = settings;
  if (url.topology === "sentinel") {
    if ((createSentinel as unknown) === undefined) {
      throw new LockError("Sentinel needs node-redis 5 or newer, or ioredis", { code: "unsupported" });
    }
    return [opened(createSentinel(sentinelOptions(settings)), settings)];
  }
  const servers = url.endpoints.map((endpoint) => clientOptions(settings, endpoint));
  if (url.topology === "cluster") {
    const rootNodes = servers.map(({ socket }) => ({ socket }));
    return [opened(createCluster({ rootNodes, defaults: clientOptions(settings) } as never), settings)];
  }
  return servers.map((options) => opened(createClient(options as never), settings));
}

function clientOptions(
  settings: ClientSettings,
  endpoint?: Endpoint,
): Record<string, unknown> & { socket: object } {
  const { credentials, random } = settings;
  const tls = endpoint === undefined ? settings.tls : tlsTo(endpoint, settings.tls);
  const { username, password, database, connectionName, connectTimeoutMs } = credentials;
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== 0 && { database }),
    ...(connectionName !== undefined && { name: connectionName }),
    socket: {
      ...endpoint,
      ...(tls !== undefined && { ...tls, tls: true }),
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries: number) => reconnectDelayMs(retries + 1, random),
    },
    disableClientInfo: true,
    maintNotifications: "disabled",
  };
}

function sentinelOptions(settings: ClientSettings): Parameters<typeof NodeRedis.createSentinel>[0] {
  const { sentinelUsername: username, sentinelPassword: password } = settings.credentials;
  const nodes = clientOptions(settings);
  const { socket, disableClientInfo, maintNotifications } = nodes;
  return {
    name: settings.url.primary as string,
    sentinelRootNodes: settings.url.endpoints as { host: string; port: number }[],
    nodeClientOptions: nodes,
    sentinelClientOptions: {
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      socket,
      disableClientInfo,
      maintNotifications,
    },
  } as never;
}

function opened(connection: object, { failed, random }: ClientSettings): OwnedClient {
  const client = connection as Client;
  let isClosed = false;
  let timer: Timer;
  client.on("error", failed); // without a listener an error would end the process
  // A client of one server retries its first connection forever. A client of a cluster or of Sentinel fails after its first attempt.
  const connect = (times: number): void => {
    client.connect().catch((error: unknown) => {
      if (!isClosed) {
        failed(error);
        timer = systemClock.setTimer(() => connect(times + 1), reconnectDelayMs(times, random), true);
      }
    });
  };
  connect(1);
  return {
    client: connection as OwnedClient["client"],
    close: () => {
      isClosed = true;
      systemClock.clearTimer(timer);
      end(client);
    },
  };
}

function end(client: Client): void {
  try {
    if (client.destroy) {
      void Promise.resolve(client.destroy()).catch(() => undefined);
    } else {
      client.disconnect?.().catch(() => undefined);
    }
  } catch {
    // The client was already closed.
  }
}
