import type { Script } from "../protocol/script.ts";

/** How a channel is published to: sharded pub/sub is not matched by other people's patterns, so its receivers' count means something. */
export type ChannelKind = "sharded" | "plain";

/** What a subscription tells. After each `up` it must be proved anew that messages arrive. */
export interface SubscriptionListener {
  connected(): void;
  disconnected(): void;
  message(text: string): void;
}

export interface Subscription {
  /** Ends the connection that was opened for it. */
  close(): void;
}

/**
 * All that Holdfast needs of a Redis client, in its own words. The adapters fit client libraries to it;
 * `holdfast/testing` has one that injects faults into another.
 */
export interface Connection {
  /** What the client library puts before every key; `run` takes keys that have it already. */
  readonly keyPrefix: string;
  /** Readable, without secrets: host, port, database. */
  readonly name: string;
  /** Runs a script on keys as they stand on the server. */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Sends a plain command that no script may run. */
  command(name: string, args: readonly string[]): Promise<unknown>;
  /** Subscribes on a connection of its own, again after every reconnect. */
  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription;
  /** Calls the listener whenever the connection for commands was lost. Returns its removal. */
  onDown(listener: () => void): () => void;
  /**
   * There was no answer in time, or that of a replica. Of a client that finds its primary by sentinels: finds it anew, also for
   * the subscriptions. Absent where there is only one server to go to.
   */
  refreshPrimary?(): void;
  /** Another connection to the same server, made at its first command: for commands that block it. */
  dedicatedConnection?(): CommandConnection;
  /** Ends what was opened beside the client for commands. */
  close?(): void;
}

/** A connection for commands, and nothing else. */
export interface CommandConnection extends Pick<Connection, "run" | "command" | "onDown"> {
  close(): void;
}

/**
 * EVALSHA, and EVAL where the server does not know the script (yet, or after SCRIPT FLUSH).
 * @param hasScripts the scripts that are being sent with EVAL: who needs the same one waits for that, and does not send it again
 */
export async function evalScript(
  send: (command: string, args: string[]) => Promise<unknown>,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
  hasScripts?: Map<string, Promise<unknown>>,
): Promise<unknown> {
  const command = [script.sha1, String(keys.length)].concat(keys, args);
  try {
    return await send("evalsha", command);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) {
      throw error;
    }
  }
  const loadingScripts = hasScripts?.get(script.sha1);
  if (loadingScripts) {
    await loadingScripts.catch(() => undefined);
    return evalScript(send, script, keys, args);
  }
  command[0] = script.source;
  const answer = send("eval", command);
  hasScripts?.set(script.sha1, answer);
  try {
    return await answer;
  } finally {
    hasScripts?.delete(script.sha1);
  }
}
