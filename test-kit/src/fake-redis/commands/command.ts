import type { PubSub } from "../pub-sub.ts";
import type { Reply } from "../reply.ts";
import type { Store } from "../store.ts";

/** The view that commands have of their server. */
export interface Server {
  readonly store: Store;
  readonly pubSub: PubSub;
  micros(): number;
  /** The lines of a section of INFO; undefined: it is not known here. */
  info(section: string): Readonly<Record<string, string | number>> | undefined;
  /** The parameters that CONFIG knows here; undefined: it may not be run. */
  config(): Readonly<Record<string, string>> | undefined;
  flush(): void;
}

/** One of Redis' commands. */
export interface Command {
  /** How many words it has, with its name; negative: at least so many. */
  readonly arity: number;
  /** `write`: not on a replica. `sharded`: only since version 7. `outside`: not in scripts. */
  readonly flags?: readonly ("write" | "sharded" | "outside")[];
  /** @param args the words behind its name, of bytes */
  readonly run: (server: Server, ...args: string[]) => Reply;
}

export type Commands = Readonly<Record<string, Command>>;

/** An option that Redis has and this server has not: the command would answer something that is not true. */
export function unknownOption(command: string, option: string): never {
  throw new TypeError(`The fake Redis knows no ${option} of ${command}: add it`);
}
