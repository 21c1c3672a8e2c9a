import { createConnection } from "mysql2/promise";
import { connect } from "node:net";
import pg from "pg";
import type { Engine } from "./engine.ts";

/** The work of the benchmark on a server, beside the contestants. */
export interface Administration {
  readonly version: string;
  /** The requests that the server has received; NaN: it has no exact count. */
  requests(): Promise<number>;
  /** Removes the data of a contestant, so that the next contestant has an empty server. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export function administrate(engine: Engine, address: string): Promise<Administration> {
  return administrations[engine](address);
}

const administrations: Readonly<Record<Engine, (address: string) => Promise<Administration>>> = {
  postgres: async (connectionString) => {
    const client = new pg.Client({ connectionString });
    client.on("error", () => {});
    await client.connect();
    const { rows } = await client.query("SELECT current_setting('server_version') AS version");
    const [{ version }] = rows as [{ version: string }];
    return {
      version: `PostgreSQL ${version.split(" ")[0]}`,
      // Each connection reports its transactions up to a second late, which is too late for a window of a second.
      requests: async () => Number.NaN,
      clear: async () => {
        await client.query("DROP SCHEMA IF EXISTS holdfast CASCADE; DROP TABLE IF EXISTS by_hand");
      },
      close: () => client.end(),
    };
  },
  mysql: async (uri) => {
    const connection = await createConnection(uri);
    const read = async (sql: string): Promise<string> => {
      const [rows] = await connection.query(sql);
      return (rows as [{ Value: string }])[0].Value;
    };
    return {
      version: `MariaDB ${(await read("SHOW VARIABLES LIKE 'version'")).split("-")[0]}`,
      requests: async () => Number(await read("SHOW GLOBAL STATUS LIKE 'Questions'")),
      clear: async () => {
        await connection.query("DROP DATABASE holdfast");
        await connection.query("CREATE DATABASE holdfast");
      },
      close: () => connection.end(),
    };
  },
  etcd: async (url) => {
    const response = await fetch(`${url}/version`);
    const { etcdserver } = (await response.json()) as { etcdserver: string };
    const everyKey = Buffer.from("\0").toString("base64");
    return {
      version: `etcd ${etcdserver}`,
      requests: async () => {
        const metrics = await (await fetch(`${url}/metrics`)).text();
        return sumOf(metrics.matchAll(/^grpc_server_started_total\{.*\} (\S+)$/gm));
      },
      clear: async () => {
        const body = JSON.stringify({ key: everyKey, range_end: everyKey });
        await (await fetch(`${url}/v3/kv/deleterange`, { method: "POST", body })).text();
      },
      close: async () => {},
    };
  },
  zookeeper: async (address) => ({
    version: `ZooKeeper ${/^zk_version\s+([\d.]+)/m.exec(await statusOf(address))?.[1]}`,
    requests: async () => sumOf((await statusOf(address)).matchAll(/^zk_packets_received\s+(\d+)$/gm)),
    // The contestants use different nodes, and each process uses different keys.
    clear: async () => {},
    close: async () => {},
  }),
};

/** The reply of ZooKeeper to the command `mntr`, whose lines are names and values. */
async function statusOf(address: string): Promise<string> {
  const [host = "", port] = address.split(":");
  const socket = connect({ host, port: Number(port) });
  socket.end("mntr");
  let reply = "";
  for await (const chunk of socket) reply += String(chunk);
  return reply;
}

function sumOf(matches: Iterable<RegExpExecArray>): number {
  let total = 0;
  for (const [, value] of matches) total += Number(value);
  return total;
}
