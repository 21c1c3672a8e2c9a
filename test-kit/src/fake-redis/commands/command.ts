import type { PubSub } from "../pub-sub.ts";
import type { Reply } from "../reply.ts";
import type { Store } from "../store.ts";

/** The view that commands have of their server. */
export interface Server {
  readonly store: Store;
  readonly pubSub: PubSub;
  micros(): number;
  /** The fields of a section of INFO; undefined: this server does not support the section. */
  info(section: string): Readonly<Record<string, string | number>> | undefined;
  /** The parameters that CONFIG GET returns; undefined: the user may not run CONFIG. */
  config(): Readonly<Record<string, string>> | undefined;
  flush(): void;
}

/** One command of Redis. */
export interface Command {
  /** The number of arguments, including the name. A negative number is a minimum. */
  readonly arity: number;
  /**
   * `write`: rejected on a replica. `memory`: rejected while the memory is full. `sharded`: only since version 7. `outside`: rejected in
   * scripts.
   */
  readonly flags?: readonly ("write" | "memory" | "sharded" | "outside")[];
  /** @param args the arguments after the name, as texts of bytes */
  readonly run: (server: Server, ...args: string[]) => Reply;
}

export type Commands = Readonly<Record<string, Command>>;

/** Throws for an option that Redis has and this server lacks, because the reply would be wrong. */
export function unknownOption(command: string, option: string): never {
  throw new TypeError(`The fake Redis does not support ${option} of ${command}: add it`);
}
