import { rm } from "node:fs/promises";

import { killProcess } from "../child-process.ts";
import { stablePort } from "../redis-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const program = installed("etcd");

/** Whether the program is installed. */
export const hasEtcd: boolean = program !== undefined;

/** A private, real member. */
export interface EtcdMember {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** Ends the member without a warning to it. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Starts the member again, with its data. Resolves when the member has a leader. */
  restart(): Promise<void>;
}

/** A cluster of one member. */
export interface EtcdServer extends EtcdMember {
  stop(): Promise<void>;
}

export interface EtcdCluster {
  readonly members: readonly EtcdMember[];
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

/** Options of the program, by their names. */
type Settings = Readonly<Record<string, string>>;

/** The PEM files of a server with TLS. */
interface Tls {
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * Starts a member on free ports of 127.0.0.1.
 * @param tls encrypts the connections of clients
 * @param settings further options of the program
 */
export async function startEtcd(tls?: Tls, settings?: Settings): Promise<EtcdServer> {
  const cluster = await startEtcdCluster(1, tls, settings);
  const [member] = cluster.members as [EtcdMember];
  return Object.assign(member, { stop: () => cluster.stop() });
}

/** Starts the members of one cluster on free ports of 127.0.0.1. */
export function startEtcdCluster(size: number, tls?: Tls, settings: Settings = {}): Promise<EtcdCluster> {
  return inFolder("etcd", async (folder) => {
    const peers = new Map<string, string>();
    for (let number = 1; number <= size; number += 1) {
      peers.set(`m${number}`, `http://127.0.0.1:${await stablePort()}`);
    }
    const started = await Promise.all(
      [...peers.keys()].map((name) => startMember(folder, name, { peers, tls, settings })),
    );
    const members = started.map(({ member }) => member);
    return {
      members,
      urls: members.map(({ url }) => url),
      stop: async () => {
        await Promise.all(started.map(({ stop }) => stop()));
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}

async function startMember(
  folder: string,
  name: string,
  {
    peers,
    tls,
    settings,
  }: {
    readonly peers: ReadonlyMap<string, string>;
    readonly tls: Tls | undefined;
    readonly settings: Settings;
  },
): Promise<{ member: EtcdMember; stop: () => Promise<void> }> {
  const port = await stablePort();
  const url = `${tls ? "https" : "http"}://127.0.0.1:${port}`;
  const health = `http://127.0.0.1:${await stablePort()}`;
  const peer = peers.get(name) as string;
  const cluster = [...peers].map(([other, address]) => `${other}=${address}`).join(",");
  const options = {
    name,
    "data-dir": `${folder}/${name}`,
    "log-level": "error",
    "listen-client-urls": url,
    "advertise-client-urls": url,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": cluster,
    ...(tls && { "cert-file": tls.certFile, "key-file": tls.keyFile, "listen-metrics-urls": health }),
    ...settings,
  };
  const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
  const start = (): Promise<ServerProcess> =>
    startServer([program as string, ...args], () => (tls ? isHealthy(health) : answers(url)));
  let server = await start();
  const member: EtcdMember = {
    port,
    url,
    get pid() {
      return server.child.pid as number;
    },
    kill: () => killProcess(server.child),
    freeze: () => void server.child.kill("SIGSTOP"),
    thaw: () => void server.child.kill("SIGCONT"),
    restart: async () => {
      server = await start();
    },
  };
  return { member, stop: () => server.stop() };
}

/** A reply to a linearizable read proves that there is a leader, even if the reply demands a user. */
async function answers(url: string): Promise<void> {
  const response = await fetch(`${url}/v3/kv/range`, {
    method: "POST",
    body: JSON.stringify({ key: "YQ==" }),
  });
  await response.text();
  if (response.status >= 500) {
    throw new Error(`HTTP status ${response.status}`);
  }
}

async function isHealthy(url: string): Promise<void> {
  const response = await fetch(`${url}/health`);
  const text = await response.text();
  if (!response.ok) {
    throw new Error(text);
  }
}
