import { existsSync } from "node:fs";

import { freePort } from "../redis-server.ts";
import { hasMariaDb, startMariaDb, type MariaDbServer } from "./mariadb-server.ts";
import { installed } from "./server-process.ts";

const library = ["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so"].find((path) =>
  existsSync(path),
);

export const hasGalera: boolean = library !== undefined && hasMariaDb && installed("rsync") !== undefined;

/** A cluster of two servers on 127.0.0.1. Each accepts writes. */
export interface GaleraCluster {
  readonly nodes: readonly [MariaDbServer, MariaDbServer];
  stop(): Promise<void>;
}

/** @param env environment variables of the second server in addition to those of this process, for example of its clock */
export async function startGalera(env: Readonly<Record<string, string>> = {}): Promise<GaleraCluster> {
  const groupPort = await freePort();
  const first = await startNode(groupPort, "");
  try {
    const second = await startNode(await freePort(), `127.0.0.1:${groupPort}`, env);
    return {
      nodes: [first, second],
      stop: async () => {
        await second.stop();
        await first.stop();
      },
    };
  } catch (error) {
    await first.stop();
    throw error;
  }
}

/**
 * The second node copies the data of the first by a daemon of rsync. A daemon that root starts changes to `nobody`, and could not write
 * in a folder of root. So the servers run as `nobody`, too.
 * @param members the address of a member; empty: the node starts a new cluster
 */
async function startNode(
  groupPort: number,
  members: string,
  env: Readonly<Record<string, string>> = {},
): Promise<MariaDbServer> {
  const [changesPort, copyPort] = [await freePort(), await freePort()];
  const provider = [
    `gmcast.listen_addr=tcp://127.0.0.1:${groupPort}`,
    `base_host=127.0.0.1`,
    `base_port=${groupPort}`,
    `ist.recv_addr=127.0.0.1:${changesPort}`,
    "gcache.size=16M",
  ];
  const options = [
    "--innodb-flush-log-at-trx-commit=0",
    "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2",
    "--wsrep-on=ON",
    `--wsrep-provider=${library}`,
    `--wsrep-cluster-address=gcomm://${members}`,
    "--wsrep-cluster-name=holdfast",
    "--wsrep-node-address=127.0.0.1",
    "--wsrep-node-incoming-address=127.0.0.1:{port}",
    `--wsrep-sst-receive-address=127.0.0.1:${copyPort}`,
    "--wsrep-sst-method=rsync",
    `--wsrep-provider-options=${provider.join(";")}`,
  ];
  return startMariaDb(options, env, true);
}
