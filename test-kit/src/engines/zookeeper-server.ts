import { mkdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";

import { killProcess } from "../child-process.ts";
import { stablePort } from "../redis-server.ts";
import { inFolder, installed, startServer, type ServerProcess } from "./server-process.ts";

const program = installed("zkServer.sh", "/usr/share/zookeeper/bin/zkServer.sh");

/** Whether the program is installed. */
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

type Variables = Readonly<Record<string, string>>;

/**
 * Starts a server on a free port of 127.0.0.1.
 * @param flags of the Java virtual machine
 * @param variables environment variables in addition to those of this process
 */
export async function startZooKeeper(
  flags: string = testFlags,
  variables: Variables = {},
): Promise<ZooKeeperServer> {
  return start("", undefined, { flags, variables });
}

/** Starts the members of an ensemble. @param variables environment variables of each member */
export async function startEnsemble(
  size = 3,
  variables: readonly Variables[] = [],
): Promise<ZooKeeperServer[]> {
  const ports = await Promise.all(Array.from({ length: 2 * size }, () => stablePort()));
  const members = Array.from(
    { length: size },
    (_, index) => `server.${index + 1}=127.0.0.1:${ports[2 * index]}:${ports[2 * index + 1]}`,
  ).join("\n");
  return Promise.all(
    Array.from({ length: size }, (_, index) => {
      return start(members, index + 1, { flags: testFlags, variables: variables[index] ?? {} });
    }),
  );
}

/** A session timeout is between 2 and 20 ticks. */
const settings = ["tickTime=500", "initLimit=40", "syncLimit=8", "maxClientCnxns=0"];
const commonFlags =
  "-XX:-UsePerfData -Dzookeeper.admin.enableServer=false -Dzookeeper.4lw.commands.whitelist=*";
/** A fast start with little memory. A write does not wait for the disk. */
const testFlags = "-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dzookeeper.forceSync=no";

function start(
  members: string,
  id: number | undefined,
  { flags, variables }: { readonly flags: string; readonly variables: Variables },
): Promise<ZooKeeperServer> {
  return inFolder("zookeeper", async (folder) => {
    const port = await stablePort();
    const data = `${folder}/data`;
    const own = [`dataDir=${data}`, `clientPort=${port}`, "clientPortAddress=127.0.0.1"];
    await mkdir(data);
    await writeFile(`${folder}/zoo.cfg`, [...settings, ...own, members, ""].join("\n"));
    if (id !== undefined) {
      await writeFile(`${data}/myid`, String(id));
    }
    const env = {
      ...process.env,
      ...variables,
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
      kill: () => killProcess(server.child),
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
