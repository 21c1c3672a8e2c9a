import { instantNow, type Clock, type Instant, type Timer } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { channelOf, clientKey, slotKey } from "../protocol/keys.ts";
import { handshakeScript } from "../protocol/scripts.generated.ts";
import { unsupportedCluster } from "./errors.ts";
import { isRedis7, parseHandshake, type HandshakeReply } from "./handshake.ts";

const clientTtlMs = 180_000;
const clientRenewalMs = 60_000;
const slowHandshakeMs = 2;

/** The server of a registration. */
interface RegistrationHost {
  readonly channelKind: string;
  readonly hasBreakSubscription: boolean;
  readonly isTimeKnown: boolean;
  listen(): void;
  /** A handshake was answered. */
  shookHands(reply: HandshakeReply, sent: Instant): void;
}

interface RegistrationOptions {
  readonly clock: Clock;
  readonly clientId: string;
  /** If the server is one slot of a cluster: its hash tag, or undefined for the slot of the client's own description. */
  readonly slot?: { readonly tag: string | undefined } | undefined;
  readonly run: Connection["run"];
}

/** Registers this client on one server: its ID, its description for `inspect`, and its channel. A timer renews the registration. */
export class ClientRegistration {
  readonly #host: RegistrationHost;
  readonly #options: RegistrationOptions;
  clientId: string;
  #info: readonly string[];
  #handshaking: Promise<void> | undefined;
  #refreshing: Promise<unknown> | undefined;
  #renewal: Timer;
  #isClosed = false;

  constructor(host: RegistrationHost, options: RegistrationOptions) {
    this.#host = host;
    this.#options = options;
    this.clientId = options.clientId;
    this.#info = options.slot?.tag === undefined ? ["owner", "unknown"] : [];
  }

  get channel(): string {
    return channelOf(this.clientId, this.#options.slot?.tag);
  }

  /** The client's description for `inspect`: field, value, ... */
  get info(): readonly string[] {
    return this.#info;
  }

  setInfo(info: readonly string[]): void {
    this.#info = [...info];
    if (this.#host.isTimeKnown) {
      this.send(null).catch(() => undefined);
    }
  }

  /** The first handshake with the server, then the subscription. Rejects if the server does not answer; the next call repeats both. */
  handshake(): Promise<void> {
    this.#handshaking ??= this.#connect().catch((error: unknown) => {
      this.#handshaking = undefined;
      throw error;
    });
    return this.#handshaking;
  }

  /** Resolves when a reply has measured the server's time again. Rejects if the server does not answer. */
  refreshTime(): Promise<unknown> {
    if (!this.#host.isTimeKnown) {
      return this.handshake();
    }
    this.#refreshing ??= this.send(null).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** Sends the client's ID and description. With a text, the server also publishes the text to the client's channel. */
  async send(text: string | null, run: Connection["run"] = this.#options.run): Promise<HandshakeReply> {
    const { clock, slot } = this.#options;
    const sent = instantNow(clock);
    const kind = text === null ? "n" : this.#host.channelKind;
    const args = [this.channel, kind, text ?? "", String(clientTtlMs), ...this.#info];
    const key = slot?.tag === undefined ? clientKey(this.clientId) : slotKey(slot.tag);
    const reply = parseHandshake((await run(handshakeScript, [key], args)) as unknown[]);
    this.#host.shookHands(reply, sent);
    return reply;
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#renewal);
  }

  async #connect(): Promise<void> {
    const { clock, slot } = this.#options;
    const startedAt = clock.now();
    const reply = await this.send(null);
    if (clock.now() - startedAt > slowHandshakeMs) {
      // The first handshake may have waited for the connection. Queue positions need a better estimate of the server's time.
      await this.send(null);
    }
    if (slot && !isRedis7(reply)) {
      throw unsupportedCluster(reply.version);
    }
    if (!this.#isClosed && this.#host.hasBreakSubscription) {
      this.#host.listen();
      this.#renew();
    }
  }

  #renew(): void {
    this.#renewal = this.#options.clock.setTimer(() => {
      this.send(null).catch(() => undefined);
      this.#renew();
    }, clientRenewalMs);
  }
}
