import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";

import { freePort } from "../redis-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const program = installed("zkServer.sh", "/usr/share/zookeeper/bin/zkServer.sh");

export const hasZooKeeper: boolean = program !== undefined;

/** A private, real server: alone, or a member of an ensemble. */
export interface ZooKeeperServer {
  /** `host:port` */
  readonly address: string;
  readonly port: number;
  readonly pid: number;
  /** `standalone`, `leader` or `follower`. Rejects while the server does not serve. */
  role(): Promise<string>;
  /** Ends the server without a warning to it. */
  kill(): Promise<void>;
  /** Freezes the server until `resume`. */
  freeze(): void;
  resume(): void;
  /** Starts the server again, with its data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1. @param flags of the Java virtual machine */
export async function startZooKeeper(flags: string = testFlags): Promise<ZooKeeperServer> {
  return start("", undefined, flags);
}

/** Starts the members of an ensemble. */
export async function startEnsemble(size = 3): Promise<ZooKeeperServer[]> {
  const ports = await Promise.all(Array.from({ length: 2 * size }, () => freePort()));
  const members = Array.from(
    { length: size },
    (_, index) => `server.${index + 1}=127.0.0.1:${ports[2 * index]}:${ports[2 * index + 1]}`,
  ).join("\n");
  return Promise.all(Array.from({ length: size }, (_, index) => start(members, index + 1, testFlags)));
}

/** A session timeout is between 2 and 20 ticks. */
const settings = ["tickTime=500", "initLimit=40", "syncLimit=8", "maxClientCnxns=0"];
const commonFlags =
  "-XX:-UsePerfData -Dzookeeper.admin.enableServer=false -Dzookeeper.4lw.commands.whitelist=*";
/** A fast start with little memory. A write does not wait for the disk. */
const testFlags = "-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.forceSync=no";

function start(members: string, id: number | undefined, flags: string): Promise<ZooKeeperServer> {
  return inFolder("zookeeper", async (folder) => {
    const port = await freePort();
    const data = `${folder}/data`;
    const own = [`dataDir=${data}`, `clientPort=${port}`, "clientPortAddress=127.0.0.1"];
    await mkdir(data);
    await writeFile(`${folder}/zoo.cfg`, [...settings, ...own, members, ""].join("\n"));
    if (id !== undefined) {
      await writeFile(`${data}/myid`, String(id));
    }
    const env = {
      ...process.env,
      JMXDISABLE: "true",
      JVMFLAGS: `${commonFlags} ${flags} -Dzookeeper.log.dir=${folder}`,
    };
    const run = (): Promise<ServerProcess> =>
      startServer(
        [program as string, "start-foreground", `${folder}/zoo.cfg`],
        async () => void (await roleOf(port)),
        { env },
      );
    let server = await run();
    return {
      address: `127.0.0.1:${port}`,
      port,
      get pid() {
        return server.child.pid as number;
      },
      role: () => roleOf(port),
      kill: async () => {
        const exited = once(server.child, "exit");
        server.child.kill("SIGKILL");
        await exited;
      },
      freeze: () => void server.child.kill("SIGSTOP"),
      resume: () => void server.child.kill("SIGCONT"),
      restart: async () => {
        server = await run();
      },
      stop: async () => {
        server.child.kill("SIGCONT");
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  });
}

async function roleOf(port: number): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.setTimeout(2_000, () => socket.destroy(new Error("no reply within 2000 ms")));
  socket.end("srvr");
  let reply = "";
  for await (const chunk of socket) {
    reply += String(chunk);
  }
  const [, role] = /^Mode: (\w+)/m.exec(reply) ?? [];
  if (role === undefined) {
    throw new Error(`the server does not serve: ${reply}`);
  }
  return role;
}
