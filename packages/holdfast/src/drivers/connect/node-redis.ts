import type * as NodeRedis from "redis";

import { systemClock, type Timer } from "../../runtime/clock.ts";
import { LockError } from "../../errors.ts";
import type { Endpoint } from "./url.ts";
import { pauseMs, type Opened, type Plan } from "./client-settings.ts";
import { tlsTo } from "./tls.ts";

type Library = Partial<Pick<typeof NodeRedis, "createClient" | "createCluster" | "createSentinel">>;

/** What we use of every client of this library. */
interface Client {
  on(event: "error", listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
  destroy?(): unknown;
  disconnect?(): Promise<unknown>;
}

/** Clients of node-redis, made to connect, and again after every loss. */
export function openByNodeRedis(library: object, plan: Plan): Opened[] {
  const { createClient, createCluster, createSentinel } = library as Required<Library>;
  const { address } = plan;
  if (address.topology === "sentinel") {
    if ((createSentinel as unknown) === undefined) {
      throw new LockError("Sentinel needs node-redis 5 or newer, or ioredis", { code: "unsupported" });
    }
    return [opened(createSentinel(sentinelOptions(plan)), plan)];
  }
  const made = address.endpoints.map((endpoint) => clientOptions(plan, endpoint));
  if (address.topology === "cluster") {
    const rootNodes = made.map(({ socket }) => ({ socket }));
    return [opened(createCluster({ rootNodes, defaults: clientOptions(plan) } as never), plan)];
  }
  return made.map((options) => opened(createClient(options as never), plan));
}

function clientOptions(plan: Plan, endpoint?: Endpoint): Record<string, unknown> & { socket: object } {
  const { access, random } = plan;
  const tls = endpoint === undefined ? plan.tls : tlsTo(endpoint, plan.tls);
  const { username, password, database, connectionName, connectTimeoutMs } = access;
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== 0 && { database }),
    ...(connectionName !== undefined && { name: connectionName }),
    socket: {
      ...endpoint,
      ...(tls !== undefined && { ...tls, tls: true }),
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries: number) => pauseMs(retries + 1, random),
    },
    disableClientInfo: true,
    maintNotifications: "disabled",
  };
}

function sentinelOptions(plan: Plan): Parameters<typeof NodeRedis.createSentinel>[0] {
  const { sentinelUsername: username, sentinelPassword: password } = plan.access;
  const nodes = clientOptions(plan);
  const { socket, disableClientInfo, maintNotifications } = nodes;
  return {
    name: plan.address.primary as string,
    sentinelRootNodes: plan.address.endpoints as { host: string; port: number }[],
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

function opened(made: object, { failed, random }: Plan): Opened {
  const client = made as Client;
  let isClosed = false;
  let timer: Timer;
  client.on("error", failed); // without a listener an error would end the process
  // A client of one server tries for ever by itself; that of a cluster, or of Sentinel, gives up if nobody answers it at first.
  const connect = (times: number): void => {
    client.connect().catch((error: unknown) => {
      if (!isClosed) {
        failed(error);
        timer = systemClock.setTimer(() => connect(times + 1), pauseMs(times, random), true);
      }
    });
  };
  connect(1);
  return {
    client: made as Opened["client"],
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
    // It was closed already.
  }
}
