import { connect, type Socket } from "node:net";

import { EngineError } from "../../../errors.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { isTransient, messageOf } from "../server/errors.ts";

/** The members of a `GlideClient` of Valkey GLIDE 2 that Holdfast uses. */
export interface GlideClient {
  customCommand(args: string[], options?: { readonly decoder?: number }): Promise<unknown>;
  getPubSubMessage(): Promise<unknown>;
  subscribe(channels: Iterable<string>, timeoutMs: number): Promise<unknown>;
  unsubscribe(channels: Iterable<string>, timeoutMs: number): Promise<unknown>;
  close(errorMessage?: string): void;
}

interface GlideAddress {
  readonly host: string;
  readonly port?: number;
}

/** The configuration with which the user has created the client. */
export interface GlideConfiguration {
  readonly addresses: readonly GlideAddress[];
  readonly databaseId?: number;
  readonly credentials?: {
    readonly username?: string;
    readonly password?: string;
    readonly iamConfig?: unknown;
  };
  readonly readOnly?: boolean;
  readonly nodeDiscoveryMode?: number;
  readonly addressResolver?: (host: string, port: number) => readonly [string, number];
  readonly advancedConfiguration?: object;
}

/** The members of GLIDE that its types hide. */
interface GlideInternals {
  readonly config?: GlideConfiguration;
  readonly isClosed?: boolean;
  readonly socket?: Pick<Socket, "once" | "unref">;
  readonly constructor: { createClient?: (configuration: object) => Promise<GlideClient> };
  /** Parses a push of the server. Null for a push that is no message: a confirmed subscription, or a lost connection. */
  notificationToPubSubMessageSafe?: (push: unknown, decoder?: number) => unknown;
}

interface GlideMessage {
  readonly message: string | Uint8Array;
  readonly channel: string | Uint8Array;
}

/** The purpose of a client of Holdfast: commands, or a subscription. */
export interface GlidePurpose {
  /** Present for a client that subscribes. */
  readonly subscription?: {
    readonly channels: ReadonlySet<string>;
    readonly message: (text: string, channel: string) => void;
    /** The server has confirmed subscriptions on another connection than before, or GLIDE has lost the connection. */
    readonly changed: () => void;
  };
  /** The client was closed, and not by {@link OwnGlideClient.close}. */
  readonly ended: () => void;
}

/** Replies and messages may have bytes that are not UTF-8. GLIDE would throw for them. */
export const bytesDecoder = 0;
const resp3 = 0;
const exactChannels = 0;
const staticDiscovery = 1;
const defaultPort = 6379;
/** Longer than most `commandTimeoutMs`, because the driver has its own timeouts. It limits the commands that wait for a new connection. */
const requestTimeoutMs = 30_000;
/** At most about 400 ms between two attempts. */
const backoff = { numberOfRetries: 3, factor: 50, exponentBase: 2 };
/** How often GLIDE checks its subscriptions, ms. */
const reconciliationMs = 250;
const connectTimeoutMs = 2_000;
/** The pauses after failed attempts. They grow, because GLIDE keeps a task for each failed client, which tries to connect for ever. */
const minPauseMs = 100;
const maxPauseMs = 10_000;

/** The configuration of a client. @throws {TypeError} if it does not suit */
export function configurationOf(client: GlideClient): GlideConfiguration {
  const { config } = client as unknown as GlideInternals;
  if (!config?.addresses?.length || typeof client.subscribe !== "function") {
    throw new TypeError("Expected `client` to be of Valkey GLIDE 2.3 or newer 2.x, with its configuration");
  }
  const { credentials, readOnly } = config;
  if (readOnly === true) {
    throw new TypeError("Expected `client` to lead to the primary, got one with `readOnly`");
  } else if (credentials?.username && !credentials.password && credentials.iamConfig === undefined) {
    throw new TypeError(
      "Expected `client` to have a password beside its username (any, if the user has none), got none: GLIDE may connect as the default user",
    );
  }
  return config;
}

/** The servers of which one is the primary. */
export function candidatesOf({ addresses, nodeDiscoveryMode }: GlideConfiguration): readonly GlideAddress[] {
  return nodeDiscoveryMode === staticDiscovery ? addresses.slice(0, 1) : addresses;
}

export function addressOf({ host, port = defaultPort }: GlideAddress): string {
  return `${host}:${port}`;
}

/**
 * A client of Holdfast with the settings of the user's client. Opened at its first use, and again after its end. GLIDE itself connects
 * again after a lost connection.
 */
export class OwnGlideClient {
  readonly #user: GlideClient;
  readonly #purpose: GlidePurpose;
  #opening: Promise<GlideClient> | undefined;
  #failures = 0;
  #failure: EngineError | undefined;
  #retryAt = -Infinity;
  #current: GlideClient | undefined;
  #isClosed = false;

  constructor(user: GlideClient, purpose: GlidePurpose) {
    this.#user = user;
    this.#purpose = purpose;
  }

  /** Rejects with an `EngineError` with outcome `none`, because nothing was sent. */
  open(): Promise<GlideClient> {
    if (this.#isClosed || (this.#user as unknown as GlideInternals).isClosed === true) {
      this.close();
      return Promise.reject(refusal(new Error("The client is closed")));
    }
    if (!this.#opening && this.#failure && systemClock.now() < this.#retryAt) {
      return Promise.reject(this.#failure);
    }
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** Ends an open connection, and looks for the primary at the next use. */
  reopen(): void {
    const former = this.#current;
    if (former) {
      this.#current = undefined;
      this.#opening = undefined;
      former.close();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.reopen();
  }

  async #open(): Promise<GlideClient> {
    try {
      const client = await this.#create();
      if (this.#isClosed) {
        client.close();
        throw new Error("The client is closed");
      }
      this.#failures = 0;
      this.#failure = undefined;
      this.#current = client;
      this.#listen(client);
      return client;
    } catch (error) {
      this.#retryAt = systemClock.now() + Math.min(minPauseMs * 2 ** this.#failures, maxPauseMs);
      this.#failures += 1;
      this.#failure = refusal(error);
      this.#opening = undefined;
      throw this.#failure;
    }
  }

  /** Tries one address after the other. GLIDE refuses a replica. */
  async #create(): Promise<GlideClient> {
    const config = configurationOf(this.#user);
    const { createClient } = this.#user.constructor as GlideInternals["constructor"];
    let failure: unknown;
    for (const address of candidatesOf(config)) {
      try {
        await assertReachable(config, address);
        return await (createClient as (configuration: object) => Promise<GlideClient>).call(
          this.#user.constructor,
          this.#ownConfiguration(config, address),
        );
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  #ownConfiguration(config: GlideConfiguration, address: GlideAddress): object {
    const { subscription } = this.#purpose;
    const own = {
      ...config,
      addresses: [address],
      nodeDiscoveryMode: config.nodeDiscoveryMode === staticDiscovery ? staticDiscovery : undefined,
      requestTimeout: requestTimeoutMs,
      connectionBackoff: backoff,
      readFrom: undefined,
      lazyConnect: false,
      inflightRequestsLimit: undefined,
      compression: undefined,
      clientSideCache: undefined,
      clientCircuitBreaker: undefined,
      pubsubSubscriptions: undefined,
    };
    return subscription
      ? {
          ...own,
          protocol: resp3,
          defaultDecoder: bytesDecoder,
          advancedConfiguration: {
            ...config.advancedConfiguration,
            pubsubReconciliationIntervalMs: reconciliationMs,
          },
          pubsubSubscriptions: {
            channelsAndPatterns: { [exactChannels]: new Set(subscription.channels) },
            callback: ({ message, channel }: GlideMessage) =>
              subscription.message(textOf(message), textOf(channel)),
          },
        }
      : own;
  }

  /** GLIDE reports neither a lost connection nor a renewed subscription. Both arrive as a push that is no message. */
  #listen(client: GlideClient): void {
    const { subscription, ended } = this.#purpose;
    const internals = client as unknown as GlideInternals;
    internals.socket?.unref();
    internals.socket?.once("close", () => {
      if (client === this.#current) {
        this.#current = undefined;
        this.#opening = undefined;
        ended();
      }
    });
    const parse = internals.notificationToPubSubMessageSafe?.bind(client);
    if (subscription && parse) {
      internals.notificationToPubSubMessageSafe = (push, decoder) => {
        const message = parse(push, decoder);
        if (message === null && client === this.#current) {
          subscription.changed();
        }
        return message;
      };
    }
  }
}

/**
 * Rejects if the server accepts no connection. A failed `createClient` would leave a task of GLIDE that tries to connect for ever.
 */
function assertReachable(
  { addressResolver }: GlideConfiguration,
  { host, port = defaultPort }: GlideAddress,
): Promise<void> {
  const [resolvedHost, resolvedPort] = addressResolver?.(host, port) ?? [host, port];
  return new Promise((resolve, reject) => {
    const socket = connect({ host: resolvedHost, port: resolvedPort, timeout: connectTimeoutMs });
    const failed = (error: unknown): void => {
      socket.destroy();
      reject(error);
    };
    socket.once("timeout", () => failed(new Error(`no connection within ${connectTimeoutMs} ms`)));
    socket.once("error", failed);
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
  });
}

export function textOf(value: string | Uint8Array): string {
  return typeof value === "string" ? value : Buffer.from(value).toString();
}

function refusal(error: unknown): EngineError {
  return error instanceof EngineError
    ? error
    : new EngineError(`Redis: ${messageOf(error).trim()}`, {
        outcome: "none",
        retryable: isTransient(error),
        cause: new Error(messageOf(error)),
      });
}
