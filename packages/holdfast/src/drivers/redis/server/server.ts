import { instantNow, type Clock, type Instant, type Timer } from "../../../runtime/clock.ts";
import { publish } from "../../../diagnostics.ts";
import type { LossReason } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import type { NodeState } from "../../../lock-state.ts";
import { Batcher, type BatcherSettings, type Header } from "./batch.ts";
import { GrantAgeEstimator } from "./grant-age.ts";
import type { Connection } from "../clients/connection.ts";
import {
  clonedError,
  engineError,
  isForbidden,
  isReadOnlyError,
  outcomeOf,
  timeoutError,
  unsupportedCluster,
} from "./errors.ts";
import { parseHandshake, nodeStateOf, type HandshakeReply } from "./handshake.ts";
import { channelOf, clientKey, counterKey, slotKey } from "../protocol/keys.ts";
import { parseMessage, type PushedGrant } from "../protocol/messages.ts";
import { maxSkewWaitMs } from "../options.ts";
import type { Operation } from "../protocol/operation.ts";
import {
  clientInfoScript,
  executeSingleScript,
  handshakeScript,
  executeQuorumScript,
  healthScript,
} from "../protocol/scripts.generated.ts";
import { ServerClock } from "./server-clock.ts";
import { Responsiveness } from "./responsiveness.ts";
import { parseHealth, type ServerHealth } from "./health.ts";
import { Subscriber, type NotificationStatus } from "./subscriber.ts";
import { clientIdOf } from "../protocol/token.ts";

const clientTtlMs = 180_000;
const clientRenewalMs = 60_000;
const slowHandshakeMs = 2;
/** How much later than a call may take the server may execute it. */
const maxDelayMs = 3_000;
/** A clone that repeats these does no harm: an attempt counts once. */
const latchOperations = new Set(["countDown", "waitLatch", "leaveLatchQueue"]);

/** The latest server time, ms, at which an operation that is sent at this time may take effect. */
export function latestTime(sentMs: number, commandTimeoutMs: number): string {
  return String(sentMs + commandTimeoutMs + maxDelayMs);
}

/** Who is to hear what the server pushes. */
export interface ServerListener {
  granted(grant: PushedGrant): void;
  ended(token: string, reason: LossReason, cause: unknown): void;
  /** Who waits with this token stands in the queue no more, and has to ask again. */
  retry?(token: string): void;
  /** Another process proves that it hears our channel: it is a clone of this one, with the same tokens. */
  cloned(): void;
  /** The latch of this K that was born then is open. A quorum has none. */
  latchOpened?(lock: string, createdAt: string): void;
  /** Whether messages reach us changed: waiting requests have to ask again. */
  notificationStatusChanged(status: NotificationStatus, server: RedisServer): void;
  /** A rival that came earlier asks for the vote with this number back. Told of a quorum's node only. */
  voteRequestedBack?(token: string, number: number): void;
  /** It was silent and answers again: what failed meanwhile is worth another try at once. */
  recovered(server: RedisServer): void;
  /** Which run of the server answered, and how long it has been up. Told of a quorum's node only, before the answers are. */
  identified?(runId: string, uptimeMs: number): void;
}

/** What is different about a node that is one slot of a cluster. */
export interface ClusterSlot {
  /** The hash tag that leads to the slot. Undefined: where we are at home, and hear by a plain channel what is ended by force. */
  readonly tag: string | undefined;
  /** The time of the slot's server. */
  ownClock(): ServerClock;
  /** The same, or another server's while it is not known. */
  bestClock(): ServerClock;
  /** What the hashes of clients say, wherever they are. */
  clients(keys: readonly string[]): Promise<unknown[]>;
}

export interface ServerOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly clientId: string;
  readonly commandTimeoutMs: number;
  /** Of a quorum's node: how long one call may take, how far the clocks of two may differ, how long a counter outlives its lock. */
  readonly nodeTimeoutMs?: number | undefined;
  readonly maxClockDifferenceMs?: number | undefined;
  readonly retentionMs?: number | undefined;
  readonly queueBound: number;
  readonly listener: ServerListener;
  readonly slot?: ClusterSlot | undefined;
}

/** One server: sends operations, hears grants, and knows the server's time. Knows one connection and nothing of waiting. */
export class RedisServer {
  readonly connection: Connection;
  readonly grantAges: GrantAgeEstimator;
  /** The key of the counter of fencing numbers, where a server has one for all its locks. */
  readonly counter: string;
  readonly #ownClock: ServerClock;
  readonly #options: ServerOptions;
  readonly #responsiveness: Responsiveness;
  readonly #batcher: Batcher;
  #subscriber: Subscriber;
  #clientId: string;
  /** Our clones have these, too: nothing is asked with a token of theirs. */
  readonly #formerIds = new Set<string>();
  readonly #stopListening: () => void;
  #clientInfo: string[];
  /** When it was asked last, on the scale of `clock.now()`, where it is a slot of a cluster: one that is not asked is forgotten. */
  usedAt: number;
  #handshaking: Promise<void> | undefined;
  #refreshing: Promise<unknown> | undefined;
  #clientInfoTimer: Timer;
  #isSharded: boolean;
  #isListening = false;
  #isClosed = false;
  #primaryRefreshedAt = -Infinity;
  /** How many messages on our channel had a form that no script writes. */
  #malformed = 0;

  constructor(options: ServerOptions) {
    const { connection, clock } = options;
    this.#options = options;
    this.connection = connection;
    this.#clientId = options.clientId;
    this.grantAges = new GrantAgeEstimator(clock);
    this.#ownClock = new ServerClock(clock);
    this.usedAt = clock.now();
    const { nodeTimeoutMs, slot } = options;
    this.#isSharded = slot === undefined || slot.tag !== undefined;
    this.#clientInfo = slot?.tag === undefined ? ["owner", "unknown"] : [];
    const withRunId = nodeTimeoutMs !== undefined;
    this.counter = counterKey(slot?.tag);
    this.#responsiveness = this.#createResponsiveness(options);
    const listener = {
      replied: (
        { serverMicros, runId, uptimeMs }: Header,
        sent: Instant,
        at: number,
        sameConnection: boolean,
      ) => {
        this.#observe(serverMicros, sent, at);
        if (withRunId) {
          if (sameConnection) {
            this.grantAges.observe(runId, serverMicros, sent);
          }
          options.listener.identified?.(runId, uptimeMs);
        }
      },
      unresponsive: this.refreshPrimary,
    };
    this.#batcher = new Batcher(
      connection,
      clock,
      batchSettings(options, this.counter),
      listener,
      this.#responsiveness,
    );
    this.#subscriber = this.#createSubscriber();
    this.#stopListening = connection.onDown(() => {
      if (this.isTimeKnown && !this.#isClosed) {
        this.#interrupted("connection-lost");
        this.#subscriber.verifyAgain();
      }
    });
  }

  #createResponsiveness({ connection, clock, commandTimeoutMs, listener }: ServerOptions): Responsiveness {
    return new Responsiveness({
      clock,
      timeoutMs: commandTimeoutMs,
      probe: () => this.#sendHandshake(null, (script, keys, args) => connection.run(script, keys, args)),
      recovered: () => {
        if (!this.#isClosed) {
          this.handshake().catch(() => undefined); // where a probe was its first answer
          listener.recovered(this);
        }
      },
    });
  }

  /** It let a call time out and was not heard since: calls are refused. */
  get isUnresponsive(): boolean {
    return this.#responsiveness.isUnresponsive;
  }

  get notificationStatus(): NotificationStatus {
    return this.#subscriber.status;
  }

  /** Whether all grants that are heard are ours: no clone of this machine has the same channel. */
  get hasOwnChannel(): boolean {
    return this.#subscriber.isAlone;
  }

  /** How our waiters are published to: the last word of a queue member. */
  get channelKind(): string {
    return this.#isSharded ? `s${this.#tag ?? ""}` : "p";
  }

  /** How a holder is published to: in a cluster by a plain channel, which reaches it wherever it listens. */
  get breakChannel(): string {
    return this.#tag === undefined ? this.channelKind : "p";
  }

  /** Whether we hear here what is ended by force. */
  get hasBreakSubscription(): boolean {
    return this.#tag === undefined;
  }

  /** Whether it hears messages, or is about to. */
  get isListening(): boolean {
    return this.#isListening;
  }

  /** The server's time; of a slot whose server has not answered yet, another's. */
  get serverClock(): ServerClock {
    return this.#options.slot?.bestClock() ?? this.#ownClock;
  }

  /**
   * The latest server time, ms, at which an operation that is sent now may take effect. A server that executes it later refuses it,
   * because nobody expects it any more.
   */
  latestExecution(): string {
    const earliestMs = Math.floor(this.serverClock.earliestMicros() / 1000);
    return latestTime(earliestMs, this.#options.commandTimeoutMs);
  }

  /** The server has answered once: its time and version are known, as a place in the queue needs. */
  get isTimeKnown(): boolean {
    return this.serverClock.isKnown;
  }

  /** What `inspect` tells of us: field, value, ... */
  setClientInfo(info: readonly string[]): void {
    this.#clientInfo = [...info];
    if (this.isTimeKnown) {
      this.#sendHandshake(null).catch(() => undefined);
    }
  }

  /** Whether its token, which a quorum's operation has behind the candidate, is one of a former id. */
  #hasFormerToken({ args: [name = "", ...rest] }: Operation): boolean {
    const isOf = (word: string): boolean => this.#formerIds.has(clientIdOf(word) ?? "");
    return !latchOperations.has(name) && rest.slice(0, 2).some(isOf);
  }

  /** Has another id from now on. What is under way with the former one ends, as a clone of this process has it, too. */
  rename(clientId: string): void {
    this.#formerIds.add(this.#clientId);
    this.#clientId = clientId;
    this.#subscriber.close();
    this.#subscriber = this.#createSubscriber();
    if (this.#isListening) {
      this.#isListening = false;
      this.listen();
    }
    this.setClientInfo(this.#clientInfo);
  }

  /** Asks the server who it is, once, and then subscribes. Rejects where it does not answer; the next call asks again. */
  handshake(): Promise<void> {
    this.#handshaking ??= this.#connect().catch((error: unknown) => {
      this.#handshaking = undefined;
      throw error;
    });
    return this.#handshaking;
  }

  /** Resolves when the server's present time is known: it is asked, unless it is known. Rejects where it does not answer. */
  refreshTime(): Promise<unknown> {
    if (!this.isTimeKnown) {
      return this.handshake();
    }
    this.#refreshing ??= this.#sendHandshake(null).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  perform(operation: Operation): void {
    if (this.#options.slot) {
      this.usedAt = this.#options.clock.now();
    }
    if (this.#formerIds.size > 0 && this.#hasFormerToken(operation)) {
      operation.failed(clonedError());
    } else {
      this.#batcher.perform(operation);
    }
  }

  /**
   * Asks what decides whether a quorum may count it. Only a server that forbids `CONFIG` counts as not durable: without an answer
   * nothing is known, and this rejects with an `EngineError`.
   */
  async health(): Promise<ServerHealth> {
    const [reply, policy] = await Promise.all([
      this.ask(healthScript, [], []),
      this.#withTimeout(() => this.connection.command("CONFIG", ["GET", "appendfsync"])).catch(
        (error: unknown) => {
          if (!isForbidden(error)) {
            throw error;
          }
        },
      ),
    ]);
    return parseHealth(reply as unknown[], policy);
  }

  /** Begins to hear messages, where that is not done at once: a slot of a cluster is heard only when somebody waits there. */
  listen(): void {
    if (!this.#isListening && !this.#isClosed) {
      this.#isListening = true;
      this.#subscriber.start(this.#isSharded ? "sharded" : "plain");
    }
  }

  /** What the hashes of clients say: for each [field, value, ...]. */
  async clients(ids: readonly string[]): Promise<unknown[]> {
    const keys = ids.map(clientKey);
    const { slot } = this.#options;
    return slot ? slot.clients(keys) : ((await this.ask(clientInfoScript, keys, [])) as unknown[]);
  }

  /** Runs one of the scripts that are not batched. Rejects with an `EngineError`, at the latest after the command budget. */
  readonly ask: Connection["run"] = (script, keys, args) =>
    this.#withTimeout(() => this.connection.run(script, keys, args));

  /** It may be no primary any more. Once in the time of a call: what is looked for anew has to have a chance. */
  readonly refreshPrimary = (): void => {
    const { clock, commandTimeoutMs } = this.#options;
    if (clock.now() - this.#primaryRefreshedAt >= commandTimeoutMs && !this.#isClosed) {
      this.#primaryRefreshedAt = clock.now();
      this.connection.refreshPrimary?.();
    }
  };

  async #withTimeout(send: () => Promise<unknown>): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#options;
    if (this.#responsiveness.isUnresponsive) {
      throw this.#responsiveness.rejection();
    }
    const callNumber = this.#responsiveness.callSent();
    let timer: Timer;
    const timedOut = new Promise<never>((_resolve, reject) => {
      timer = clock.setTimer(() => {
        this.refreshPrimary();
        this.#responsiveness.callTimedOut(callNumber);
        reject(timeoutError(commandTimeoutMs));
      }, commandTimeoutMs);
    });
    const sent = send();
    sent.then(
      () => this.#responsiveness.callAnswered(callNumber),
      (error: unknown) => this.#responsiveness.callFailed(callNumber, error),
    );
    try {
      return await Promise.race([sent, timedOut]);
    } catch (error) {
      if (isReadOnlyError(error)) {
        this.refreshPrimary();
      }
      throw engineError(error, undefined, outcomeOf(error));
    } finally {
      clock.clearTimer(timer);
    }
  }

  state(): Promise<NodeState> {
    const { clock } = this.#options;
    const view = {
      node: this.connection.name,
      clock,
      sent: instantNow(clock),
      notifications: this.notificationStatus,
    };
    const replication = (): Promise<unknown> =>
      this.#withTimeout(() => this.connection.command("INFO", ["replication"]));
    return nodeStateOf(view, { handshake: () => this.#sendHandshake(null), replication });
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#clientInfoTimer);
    this.#stopListening();
    this.#subscriber.close();
    this.connection.close?.();
  }

  #createSubscriber(): Subscriber {
    const { connection, clock, random, commandTimeoutMs, listener } = this.#options;
    return new Subscriber({
      connection,
      clock,
      random,
      channel: this.#channel,
      timeoutMs: commandTimeoutMs,
      publish: async (text) => (await this.#sendHandshake(text)).receivers,
      answered: () => this.#responsiveness.messageReceived(),
      received: (text) => {
        this.#handleMessage(text);
        this.#responsiveness.messageReceived();
      },
      changed: (status) => listener.notificationStatusChanged(status, this),
      lost: () => this.#interrupted("subscription-lost"),
    });
  }

  async #connect(): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.now();
    const reply = await this.#sendHandshake(null);
    if (clock.now() - startedAt > slowHandshakeMs) {
      await this.#sendHandshake(null); // the first may have waited for the connection: places in the queue need a better estimate
    }
    if (this.#options.slot && !isSeven(reply)) {
      throw unsupportedCluster(reply.version);
    }
    if (!this.#isClosed && this.hasBreakSubscription) {
      this.listen();
      this.#renewClientInfo();
    }
  }

  #renewClientInfo(): void {
    this.#clientInfoTimer = this.#options.clock.setTimer(() => {
      this.#sendHandshake(null).catch(() => undefined);
      this.#renewClientInfo();
    }, clientRenewalMs);
  }

  /** Says who we are; with a text, publishes it to our own channel. */
  async #sendHandshake(text: string | null, ask: Connection["run"] = this.ask): Promise<HandshakeReply> {
    const { clock } = this.#options;
    const sent = instantNow(clock);
    const kind = text === null ? "n" : this.channelKind;
    const args = [this.#channel, kind, text ?? "", String(clientTtlMs), ...this.#clientInfo];
    const key = this.#tag === undefined ? clientKey(this.#clientId) : slotKey(this.#tag);
    const reply = parseHandshake((await ask(handshakeScript, [key], args)) as unknown[]);
    this.#isSharded = this.#options.slot ? this.#isSharded : isSeven(reply);
    if (reply.role !== "master") {
      this.refreshPrimary();
    }
    this.#observe(reply.serverMicros, sent, clock.now());
    this.#options.listener.identified?.(reply.runId, reply.uptimeMs);
    return reply;
  }

  get #tag(): string | undefined {
    return this.#options.slot?.tag;
  }

  get #channel(): string {
    return channelOf(this.#clientId, this.#tag);
  }

  #observe(serverMicros: number, sent: Instant, receivedAt: number): void {
    const time = this.#options.slot?.ownClock() ?? this.#ownClock;
    time.observe(serverMicros, sent, receivedAt);
  }

  #interrupted(event: string): void {
    this.grantAges.discard();
    this.#batcher.interrupted();
    if (!this.#options.slot) {
      this.#ownClock.invalidate(); // that of a cluster's server is its connections' to doubt
    }
    publish("node", () => ({ node: this.connection.name, event, clockOffsetMs: this.#clockOffsetMs() }));
  }

  #clockOffsetMs(): number | undefined {
    return this.isTimeKnown ? this.serverClock.micros() / 1000 - this.#options.clock.wall() : undefined;
  }

  /** A message of another form than the scripts write is counted and ignored. */
  #handleMessage(text: string): void {
    const { listener } = this.#options;
    const message = parseMessage(text);
    switch (message?.kind) {
      case undefined:
        this.#malformed += 1;
        publish("node", () => ({
          node: this.connection.name,
          event: "malformed-message",
          detail: { count: this.#malformed },
        }));
        break;
      case "grant":
        listener.granted(message.grant);
        break;
      case "retry":
        listener.retry?.(message.token);
        break;
      case "latch-open":
        listener.latchOpened?.(message.lock, message.createdAt);
        break;
      case "inquiry":
        listener.voteRequestedBack?.(message.token, message.number);
        break;
      case "broken":
        listener.ended(message.token, "broken", new Error(message.reason));
        break;
      case "ping":
        listener.cloned();
    }
  }
}

/** How operations are sent: a server that decides alone, and a node of a quorum, have a script each. */
function batchSettings(options: ServerOptions, counter: string): BatcherSettings {
  const { nodeTimeoutMs, maxClockDifferenceMs = 0, retentionMs = 0, queueBound } = options;
  return nodeTimeoutMs === undefined
    ? {
        script: executeSingleScript,
        keys: [counter],
        args: [String(queueBound)],
        timeoutMs: options.commandTimeoutMs,
        withRunId: false,
      }
    : {
        script: executeQuorumScript,
        keys: [],
        args: [String(retentionMs), String(queueBound), String(maxSkewWaitMs(maxClockDifferenceMs))],
        timeoutMs: nodeTimeoutMs,
        withRunId: true,
      };
}

function isSeven({ version }: HandshakeReply): boolean {
  return Number.parseInt(version, 10) >= 7;
}
