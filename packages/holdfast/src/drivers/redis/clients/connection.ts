import { messageOf } from "../../../runtime/error-message.ts";
import type { Script } from "../protocol/script.ts";

/** How notifications are published. Pattern subscriptions of other programs do not match sharded channels, so the count of receivers is exact. */
export type ChannelKind = "sharded" | "plain";

/** Receives the events of a subscription. After each `connected` the subscriber must verify again that notifications arrive. */
export interface SubscriptionListener {
  connected(): void;
  disconnected(): void;
  /** @param channel given if the subscription can have several channels */
  message(text: string, channel?: string): void;
}

export interface Subscription {
  /** Ends the connection of the subscription. */
  close(): void;
  /**
   * Subscribes to another channel on the same connection. Absent: not supported.
   * @returns whether the server has confirmed it; false: the next `connected` confirms it
   */
  add?(channel: string): Promise<boolean>;
  /** Ends the subscription to an added channel. */
  remove?(channel: string): void;
}

/**
 * The connection to one server, as Holdfast needs it. An adapter implements it for each client library. `holdfast/testing` has an
 * implementation that injects faults into another one.
 */
export interface Connection {
  /** The prefix that the client library adds to every key. The keys of `run` have the prefix already. */
  readonly keyPrefix: string;
  /** A readable name without secrets: host, port, database. */
  readonly name: string;
  /** Whether the client library cannot receive the messages of sharded channels. @defaultValue false */
  readonly hasPlainChannelsOnly?: boolean;
  /** Runs a script. Its keys are complete, as on the server. */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Sends a plain command that scripts cannot run. */
  command(name: string, args: readonly string[]): Promise<unknown>;
  /** Subscribes on a separate connection, and again after every reconnect. */
  subscribe(channel: string, kind: ChannelKind, listener: SubscriptionListener): Subscription;
  /** Calls the listener whenever the command connection is lost. Returns a function that removes the listener. */
  onDown(listener: () => void): () => void;
  /** Why the last attempt to connect failed; undefined while the connection is open. Absent if the client library does not report it. */
  failure?(): unknown;
  /** The command of the program that blocks the connection now, in capitals. Absent if the client library does not show its queue. */
  blockedBy?(): string | undefined;
  /**
   * Looks for the primary again, also for the subscriptions, after a missing reply or the reply of a replica. Only for a client that
   * finds its primary by sentinels. Absent if the client has only one server.
   */
  refreshPrimary?(): void;
  /** Another connection to the same server, for commands that block their connection. Opened at its first command. */
  dedicatedConnection?(): CommandConnection;
  /** Ends the connections that the adapter has opened. */
  close?(): void;
}

/** The failures of a server that accepts a connection and then speaks another protocol, or ends the connection. */
const strange = /ECONNRESET|EPIPE|Socket closed unexpectedly|Unknown RESP type/;

/** The failure of a connection that is not ready, with what to examine. @param error undefined: the client library has reported none */
export function handshakeFailure(error: unknown): unknown {
  if (error !== undefined && !strange.test(messageOf(error))) {
    return error;
  }
  const fact = error === undefined ? "no handshake is complete" : messageOf(error);
  const advice =
    "is it a Redis, with TLS at both ends or at neither, and fewer than `maxclients` connections?";
  return new Error(`${fact}; ${advice}`, error === undefined ? undefined : { cause: error });
}

/** A connection for commands only. */
export interface CommandConnection extends Pick<Connection, "run" | "command" | "onDown"> {
  close(): void;
}

/**
 * Runs a script with `EVALSHA`, and with `EVAL` if the server does not have the script.
 * @param loading the scripts that are being sent with `EVAL`. A concurrent caller waits for the same script, and does not send it again.
 */
export async function evalScript(
  send: (command: string, args: string[]) => Promise<unknown>,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
  loading?: Map<string, Promise<unknown>>,
): Promise<unknown> {
  const command = [script.sha1, String(keys.length)].concat(keys, args);
  try {
    return await send("evalsha", command);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) {
      throw error;
    }
  }
  const loaded = loading?.get(script.sha1);
  if (loaded) {
    await loaded.catch(() => undefined);
    return evalScript(send, script, keys, args);
  }
  command[0] = script.source;
  const answer = send("eval", command);
  loading?.set(script.sha1, answer);
  try {
    return await answer;
  } finally {
    loading?.delete(script.sha1);
  }
}
