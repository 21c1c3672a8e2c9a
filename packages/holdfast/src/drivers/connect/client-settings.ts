import { backoffMs, type Random } from "../../runtime/random.ts";
import type { RedisClient } from "../redis/clients/detect.ts";
import type { ConnectionUrl } from "./url.ts";
import type { Credentials } from "./options.ts";
import type { TlsSettings } from "./tls.ts";

/** All that a client is made of. */
export interface ClientSettings {
  readonly url: ConnectionUrl;
  readonly credentials: Credentials;
  readonly tls: TlsSettings | undefined;
  readonly commandTimeoutMs: number;
  readonly random: Random;
  /** Why a connection could not be opened, or was lost. */
  readonly failed: (error: unknown) => void;
}

/** A client that is ours. */
export interface OwnedClient {
  readonly client: RedisClient;
  /** Ends it at once. What it was asked and has not answered is not waited for. */
  close(): void;
}

/** How long to wait before the connection is tried for the so-and-so-manieth time, from 1. */
export function reconnectDelayMs(times: number, random: Random): number {
  return backoffMs(random, times - 1, 1_000);
}
