import type { RedisServer } from "../server/server.ts";

/** A server with an entry of each client, and the script of the directory there. */
export interface DirectoryLink {
  /** Its subscription receives the questions to this client. */
  readonly server: RedisServer;
  /** Whether the server counts all subscribers of a channel. A cluster counts those of one node. */
  readonly countsReceivers: boolean;
  readonly run: (args: readonly string[]) => Promise<unknown>;
}
