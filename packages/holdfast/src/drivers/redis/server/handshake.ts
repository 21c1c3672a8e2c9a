import { type Clock, type Instant, instantNow, type Timer } from "../../../runtime/clock.ts";
import type { Connection } from "../clients/connection.ts";
import { channelOf, clientKey, slotKey } from "../protocol/keys.ts";
import { handshakeScript, healthScript } from "../protocol/scripts.generated.ts";
import { isServerReply, noScriptReply, unsupportedCluster } from "./errors.ts";
import type { NodeState, Replication } from "../../../lock-state.ts";
import { parseReplication } from "./replication.ts";
import type { BoundedCalls } from "./bounded-calls.ts";

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

/** The reply of the script `handshake`. */
export interface HandshakeReply {
  readonly serverMicros: number;
  readonly receivers: number;
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  readonly uptimeMs: number;
  readonly replication: Replication | null;
}

export function parseHandshake(answer: readonly unknown[]): HandshakeReply {
  if (!Array.isArray(answer)) {
    throw noScriptReply(answer);
  }
  const [serverMicros, receivers, runId, version, role, uptime, replication] = answer;
  return {
    serverMicros: Number(serverMicros),
    receivers: Number(receivers),
    runId: String(runId),
    version: String(version),
    role: String(role),
    uptimeMs: Number(uptime) * 1000,
    replication: parseReplication(replication),
  };
}

/** Whether the server has the commands of Redis 7, with sharded pub/sub. */
export function isRedis7({ version }: HandshakeReply): boolean {
  return Number.parseInt(version, 10) >= 7;
}

interface NodeStateSource {
  readonly node: string;
  readonly clock: Clock;
  readonly sent: Instant;
  readonly notifications: NodeState["notifications"];
}

/** The state of a server as its handshake reports it. If the handshake fails, the state has the error instead. */
export async function nodeStateOf(
  { node, clock, sent, notifications }: NodeStateSource,
  handshake: () => Promise<HandshakeReply>,
): Promise<NodeState> {
  try {
    const { serverMicros, version, role, runId, uptimeMs, replication } = await handshake();
    const latencyMs = clock.now() - sent.now;
    const clockOffsetMs = serverMicros / 1000 - (sent.wall + latencyMs / 2);
    const reply = { latencyMs, version, role, replication, runId, uptimeMs, clockOffsetMs };
    return { node, reachable: true, ...reply, notifications, quarantine: null, error: null };
  } catch (error) {
    const unknown = {
      latencyMs: null,
      version: null,
      role: null,
      replication: null,
      runId: null,
      uptimeMs: null,
      clockOffsetMs: null,
    };
    return { node, reachable: false, ...unknown, notifications, quarantine: null, error: String(error) };
  }
}

/** The properties of a server that decide whether a quorum counts its votes. */
export interface ServerHealth {
  readonly runId: string;
  readonly uptimeMs: number;
  readonly role: string;
  /** A replica that is promoted to primary gets another one. */
  readonly replicationId: string;
  /** The server writes each change to its disk before it answers, and loads all of them at its next start. */
  readonly isDurable: boolean;
  /** This run has rewritten its append-only file. It may have been started without the file, which was switched on later. */
  readonly hasRewritten: boolean;
  /** The names of the append-only file and of its folders. A run with other names starts without the data. Empty: not read. */
  readonly files: string;
  /** The server evicts keys if its memory is full. */
  readonly evicts: boolean;
  /** How often the keys of this run were flushed. */
  readonly flushes: number;
}

/**
 * Requests the health of a server. A server counts as not durable if it refuses `CONFIG`, or if its durability is not read. Rejects with
 * an `EngineError` if the server does not answer, because its health is then unknown.
 */
export async function requestHealth(calls: BoundedCalls, readsDurability: boolean): Promise<ServerHealth> {
  const before = await requestFacts(calls);
  if (!readsDurability) {
    return before;
  }
  const { isSynced, files } = await requestFileSettings(calls);
  const health = await requestFacts(calls);
  // A client library may send CONFIG again to another run, whose settings say nothing about this one.
  return { ...health, isDurable: health.isDurable && isSynced && before.runId === health.runId, files };
}

/** The facts of INFO. `isDurable` states only whether a restart loads the append-only file. */
async function requestFacts(calls: BoundedCalls): Promise<ServerHealth> {
  const reply = (await calls.run(healthScript, [], [])) as unknown[];
  const [runId, uptime, role, replicationId, isFileLoadable, eviction, maxMemory, flushes, rewrites] = reply;
  return {
    runId: String(runId),
    uptimeMs: Number(uptime) * 1000,
    role: String(role),
    replicationId: String(replicationId),
    isDurable: isFileLoadable === 1,
    hasRewritten: rewrites === 1,
    files: "",
    evicts: Number(maxMemory) > 0 && String(eviction) !== "noeviction",
    flushes: Number(flushes),
  };
}

/** Whether the server forces each change to its disk before it answers, also during a rewrite of its file, and the names of the file. */
async function requestFileSettings(calls: BoundedCalls): Promise<{ isSynced: boolean; files: string }> {
  const settings = {
    ...(await requestSettings(calls, "*append*")),
    ...(await requestSettings(calls, "dir")),
  };
  return {
    isSynced: settings["appendfsync"] === "always" && settings["no-appendfsync-on-rewrite"] === "no",
    files: JSON.stringify(["dir", "appenddirname", "appendfilename"].map((name) => settings[name])),
  };
}

/** Requests one pattern, because Redis before 7 takes no second one. A refused request has no settings. */
async function requestSettings(calls: BoundedCalls, pattern: string): Promise<Record<string, unknown>> {
  const reply = await calls.command("CONFIG", ["GET", pattern]).catch((error: unknown) => {
    if (!isServerReply((error as Error).cause)) {
      throw error;
    }
  });
  return Array.isArray(reply) ? objectOf(reply) : ((reply ?? {}) as Record<string, unknown>);
}

function objectOf(pairs: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    object[String(pairs[index])] = pairs[index + 1];
  }
  return object;
}
