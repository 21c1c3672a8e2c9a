import { messageOf } from "../../../runtime/error-message.ts";
import type { Connection, Subscription } from "../clients/connection.ts";
import { evalScript } from "../clients/connection.ts";
import type { Script } from "../protocol/script.ts";

/** The members of a `Redis` of @upstash/redis that Holdfast uses. */
export interface UpstashClient {
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
  scan(
    cursor: string | number,
    options?: { match?: string; count?: number; type?: string },
  ): Promise<[string | number, unknown[]]>;
}

/** Added to an error reply in a pipeline. The client combines the commands of one turn of the event loop. */
const addedWords = /^Command (\d+ \[.*?\] )?failed: /;

export function isUpstashClient(client: object): client is UpstashClient {
  return ["eval", "evalsha", "scan"].every(
    (name) => typeof (client as Record<string, unknown>)[name] === "function",
  );
}

/** Commands by REST. Each may take another connection, so they have no order, and there are no channels. */
export class UpstashConnection implements Connection {
  readonly keyPrefix: string = "";
  readonly name: string = "upstash";
  readonly #client: UpstashClient;
  readonly #loading = new Map<string, Promise<unknown>>();

  constructor(client: UpstashClient) {
    this.#client = client;
  }

  async run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return textsOf(await evalScript(this.#evaluate, script, keys, args, this.#loading));
  }

  /** `SCAN` only: the client has no other command that this library needs. */
  async command(name: string, args: readonly string[]): Promise<unknown> {
    const [cursor = "0", , match = "*", , count = "10", , type = "string"] = args;
    if (name !== "SCAN") {
      throw new Error(`ERR unknown command '${name}' by REST`);
    }
    return this.#cleaned(this.#client.scan(cursor, { match, count: Number(count), type }));
  }

  subscribe(): Subscription {
    return { close: () => undefined };
  }

  onDown(): () => void {
    return () => undefined;
  }

  readonly #evaluate = (command: string, [script = "", count, ...rest]: string[]): Promise<unknown> => {
    const keys = rest.slice(0, Number(count));
    const args = rest.slice(Number(count));
    return this.#cleaned(
      command === "evalsha"
        ? this.#client.evalsha(script, keys, args)
        : this.#client.eval(script, keys, args),
    );
  };

  /** The client adds words to the reply of the server, and the command, whose token must not get into a log. */
  async #cleaned<T>(reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (error) {
      throw new Error(
        messageOf(error)
          .replace(/, command was: .*$/s, "")
          .replace(addedWords, ""),
      );
    }
  }
}

/** The client turns texts with the form of JSON into values. */
function textsOf(reply: unknown): unknown {
  if (Array.isArray(reply)) {
    return reply.map(textsOf);
  }
  return typeof reply === "object" && reply !== null ? JSON.stringify(reply) : reply;
}
