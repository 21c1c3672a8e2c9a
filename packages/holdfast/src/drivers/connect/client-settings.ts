import { backoffMs, type Random } from "../../runtime/random.ts";
import type { RedisClient } from "../redis/clients/detect.ts";
import type { ConnectionUrl } from "./url.ts";
import type { Credentials } from "./options.ts";
import type { TlsSettings } from "./tls.ts";

/** The settings with which a client is created. */
export interface ClientSettings {
  readonly url: ConnectionUrl;
  readonly credentials: Credentials;
  readonly tls: TlsSettings | undefined;
  readonly commandTimeoutMs: number;
  readonly random: Random;
  /** Called with the error when a connection cannot be opened, or is lost. */
  readonly failed: (error: unknown) => void;
}

/** A client that `connect` opened, and so must close. */
export interface OwnedClient {
  readonly client: RedisClient;
  /** Closes the client at once, without waiting for unanswered commands. */
  close(): void;
}

/** The delay before a reconnection. @param times the number of the reconnection, from 1 */
export function reconnectDelayMs(times: number, random: Random): number {
  return backoffMs(random, times - 1, 1_000);
}
