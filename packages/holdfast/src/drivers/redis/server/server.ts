import { type Clock, type Instant, instantNow } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Connection } from "../clients/connection.ts";
import {
  NotificationDispatcher,
  type NotificationListener,
  type NotificationStatus,
  Subscriber,
} from "./subscriber.ts";
import { GrantAgeEstimator, latestTime, ServerClock } from "./server-clock.ts";
import { publish } from "../../../diagnostics.ts";
import type { NodeState } from "../../../lock-state.ts";
import { Batcher, type BatcherSettings, type BatchListener, type Header } from "./batch.ts";
import { BoundedCalls, Responsiveness } from "./bounded-calls.ts";
import {
  ClientRegistration,
  type HandshakeReply,
  isRedis7,
  nodeStateOf,
  requestHealth,
  type ServerHealth,
} from "./handshake.ts";
import { clonedError } from "./errors.ts";
import { hasTokenOf } from "./releases.ts";
import { clientKey, counterKey } from "../protocol/keys.ts";
import type { Operation } from "../protocol/operation.ts";
import { clientInfoScript } from "../protocol/scripts.generated.ts";

/** Receives the notifications of one server, and the changes of its state. */
interface ServerEvents<Server> extends NotificationListener {
  /** The state of the subscription changed. Waiting requests must be sent again. */
  notificationStatusChanged(status: NotificationStatus, server: Server): void;
  /** The server was unresponsive and replies again. Failed requests should be repeated at once. */
  recovered(server: Server): void;
  /** The run of the server that replied, and its uptime. Only for a node of a quorum, and before the replies. */
  identified?(runId: string, uptimeMs: number): void;
}

/** The properties of a server that is one slot of a cluster. */
export interface ClusterSlot {
  /** The hash tag that leads to the slot. Undefined for the slot of the client's own description: it has the break subscription. */
  readonly tag: string | undefined;
  /** The clock of the slot's own server. */
  ownClock(): ServerClock;
  /** The clock of the slot's own server. Until that server has replied, the clock of another server. */
  bestClock(): ServerClock;
  /** The descriptions of clients, which may be in other slots. */
  clients(keys: readonly string[]): Promise<unknown[]>;
}

export type ServerListener = ServerEvents<RedisServer>;

export interface ServerOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly clientId: string;
  readonly commandTimeoutMs: number;
  readonly batches: BatcherSettings;
  readonly slot?: ClusterSlot | undefined;
  readonly listener: ServerListener;
}

/** One server: sends operations, receives notifications, and estimates the server's time. Knows one connection, and no waiters. */
export class RedisServer implements BatchListener {
  readonly connection: Connection;
  readonly grantAges: GrantAgeEstimator;
  /** The key of the fencing counter, if the server has one counter for all its locks. */
  readonly counter: string;
  readonly #ownClock: ServerClock;
  readonly #options: ServerOptions;
  readonly #responsiveness: Responsiveness;
  readonly #calls: BoundedCalls;
  readonly #registration: ClientRegistration;
  readonly #notifications: NotificationDispatcher;
  readonly #batcher: Batcher;
  #subscriber: Subscriber;
  /** Clones have these client IDs too. Operations with tokens of these IDs are refused. */
  readonly #formerIds = new Set<string>();
  readonly #stopListening: () => void;
  /** The time of the last operation, on the scale of `clock.now()`. Only for a slot of a cluster, because unused slots are closed. */
  usedAt: number;
  #isSharded: boolean;
  #isListening = false;
  #isClosed = false;

  constructor(options: ServerOptions) {
    const { connection, clock, batches, slot } = options;
    this.#options = options;
    this.connection = connection;
    this.grantAges = new GrantAgeEstimator(clock);
    this.#ownClock = new ServerClock(clock);
    this.usedAt = clock.now();
    this.#isSharded = slot === undefined || slot.tag !== undefined;
    this.counter = counterKey(slot?.tag);
    this.#responsiveness = this.#createResponsiveness();
    this.#calls = new BoundedCalls({ ...options, responsiveness: this.#responsiveness });
    this.#registration = new ClientRegistration(this, { ...options, run: this.#calls.run });
    this.#notifications = new NotificationDispatcher(connection, options.listener);
    this.#batcher = new Batcher(connection, clock, batches, this, this.#responsiveness);
    this.#subscriber = this.#createSubscriber();
    this.#stopListening = connection.onDown(() => {
      if (this.isTimeKnown && !this.#isClosed) {
        this.#interrupted("connection-lost");
        this.#subscriber.verifyAgain();
      }
    });
  }

  /** A call was unanswered in time, and nothing was received from the server since. Calls are refused. */
  get isUnresponsive(): boolean {
    return this.#responsiveness.isUnresponsive;
  }

  get notificationStatus(): NotificationStatus {
    return this.#subscriber.status;
  }

  /** How the server publishes to this client's waiters: the last field of a queue entry. */
  get channelKind(): string {
    return this.#isSharded ? `s${this.#options.slot?.tag ?? ""}` : "p";
  }

  /** How the server publishes to a holder. In a cluster by a plain channel, because a plain channel reaches subscribers on every node. */
  get breakChannel(): string {
    return this.hasBreakSubscription ? this.channelKind : "p";
  }

  /** Whether the subscription of this server also receives the breaks of this client's grants. */
  get hasBreakSubscription(): boolean {
    return this.#options.slot?.tag === undefined;
  }

  /** Whether the server has a subscription, or is about to have one. */
  get isListening(): boolean {
    return this.#isListening;
  }

  /** The server's clock. For a slot whose own server has not replied yet, the clock of another server. */
  get serverClock(): ServerClock {
    return this.#options.slot?.bestClock() ?? this.#ownClock;
  }

  /**
   * The latest server time, ms, at which an operation that is sent now may take effect. The server refuses a later execution, because
   * the client no longer expects it.
   */
  latestExecution(at?: Instant): string {
    const earliestMs = Math.floor(this.serverClock.earliestMicros(at) / 1000);
    return latestTime(earliestMs, this.#options.commandTimeoutMs);
  }

  /** How long until the server's clock shows this time, ms, by the estimate; 0 for a time that has passed. */
  msUntil(serverMs: number): number {
    return serverMs > 0 ? Math.max(0, serverMs - this.serverClock.micros() / 1000) : 0;
  }

  /** The server has replied once. Its time and version are then known, and a queue entry requires both. */
  get isTimeKnown(): boolean {
    return this.serverClock.isKnown;
  }

  /** Sets the client's description for `inspect`: field, value, ... */
  setClientInfo(info: readonly string[]): void {
    this.#registration.setInfo(info);
  }

  /** Changes the client ID. Operations with tokens of the former ID fail from now on, because a clone of this process has these tokens too. */
  rename(clientId: string): void {
    this.#formerIds.add(this.#registration.clientId);
    this.#registration.clientId = clientId;
    this.#subscriber.close();
    this.#subscriber = this.#createSubscriber();
    if (this.#isListening) {
      this.#isListening = false;
      this.listen();
    }
    this.#registration.setInfo(this.#registration.info);
  }

  /** The first handshake with the server, then the subscription. Rejects if the server does not answer; the next call repeats both. */
  handshake(): Promise<void> {
    return this.#registration.handshake();
  }

  /** Resolves when a reply has measured the server's time again. Rejects if the server does not answer. */
  refreshTime(): Promise<unknown> {
    return this.#registration.refreshTime();
  }

  perform(operation: Operation): void {
    if (this.#options.slot) {
      this.usedAt = this.#options.clock.now();
    }
    if (this.#formerIds.size > 0 && hasTokenOf(this.#formerIds, operation)) {
      operation.failed(clonedError());
    } else {
      this.#batcher.perform(operation);
    }
  }

  /** Requests the server's health. See {@link requestHealth} for its rejections. */
  health(readsDurability: boolean): Promise<ServerHealth> {
    return requestHealth(this.#calls, readsDurability);
  }

  /** Starts the subscription. A slot of a cluster starts it only for its first waiter. */
  listen(): void {
    if (!this.#isListening && !this.#isClosed) {
      this.#isListening = true;
      this.#subscriber.start(this.#isSharded ? "sharded" : "plain");
    }
  }

  /** The descriptions of clients: [field, value, ...] for each ID. */
  async clients(ids: readonly string[]): Promise<unknown[]> {
    const keys = ids.map(clientKey);
    const { slot } = this.#options;
    return slot ? slot.clients(keys) : ((await this.#calls.run(clientInfoScript, keys, [])) as unknown[]);
  }

  /** Runs a script that is not batched. Rejects with an `EngineError`, at the latest after `commandTimeoutMs`. */
  readonly run: Connection["run"] = (script, keys, args) => this.#calls.run(script, keys, args);

  readonly command: Connection["command"] = (name, args) => this.#calls.command(name, args);

  /** Looks for the primary again, because this server may be a replica now. */
  refreshPrimary(): void {
    this.#calls.refreshPrimary();
  }

  state(): Promise<NodeState> {
    const { connection, notificationStatus: notifications } = this;
    const { clock } = this.#options;
    return nodeStateOf({ node: connection.name, clock, sent: instantNow(clock), notifications }, () =>
      this.#registration.send(null),
    );
  }

  /** A batch was answered. */
  replied(header: Header, sent: Instant, receivedAt: number, sameConnection: boolean): void {
    const { batches, listener } = this.#options;
    const { serverMicros, runId, uptimeMs } = header;
    this.#observe(serverMicros, sent, receivedAt);
    if (batches.isQuorumNode) {
      if (sameConnection) {
        this.grantAges.observe(runId, serverMicros, sent);
      }
      listener.identified?.(runId, uptimeMs);
    }
  }

  /** A batch had no reply in time, or the reply of a replica. */
  unresponsive(): void {
    this.refreshPrimary();
  }

  /** A handshake was answered. */
  shookHands(reply: HandshakeReply, sent: Instant): void {
    const { slot, clock, listener } = this.#options;
    this.#isSharded = slot ? this.#isSharded : isRedis7(reply) && !this.connection.hasPlainChannelsOnly;
    if (reply.role !== "master") {
      this.refreshPrimary();
    }
    this.#observe(reply.serverMicros, sent, clock.now());
    listener.identified?.(reply.runId, reply.uptimeMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#calls.close();
    this.#registration.close();
    this.#stopListening();
    this.#subscriber.close();
    this.connection.close?.();
  }

  #createResponsiveness(): Responsiveness {
    const { connection, clock, commandTimeoutMs, listener } = this.#options;
    return new Responsiveness({
      clock,
      timeoutMs: commandTimeoutMs,
      probe: () => this.#registration.send(null, (script, keys, args) => connection.run(script, keys, args)),
      recovered: () => {
        if (!this.#isClosed) {
          this.handshake().catch(() => undefined); // in case the probe's reply was the server's first
          listener.recovered(this);
        }
      },
    });
  }

  #createSubscriber(): Subscriber {
    const { connection, clock, random, commandTimeoutMs, listener } = this.#options;
    return new Subscriber({
      connection,
      clock,
      random,
      channel: this.#registration.channel,
      timeoutMs: commandTimeoutMs,
      publish: async (text) => (await this.#registration.send(text)).receivers,
      answered: () => this.#responsiveness.messageReceived(),
      received: (text) => {
        this.#notifications.dispatch(text);
        this.#responsiveness.messageReceived();
      },
      changed: (status) => listener.notificationStatusChanged(status, this),
      lost: () => this.#interrupted("subscription-lost"),
    });
  }

  #observe(serverMicros: number, sent: Instant, receivedAt: number): void {
    const time = this.#options.slot?.ownClock() ?? this.#ownClock;
    time.observe(serverMicros, sent, receivedAt);
  }

  #interrupted(event: string): void {
    this.grantAges.discard();
    this.#batcher.interrupted();
    if (!this.#options.slot) {
      this.#ownClock.invalidate(); // the connections of a cluster's node invalidate the clock of that node themselves
    }
    publish("node", () => ({
      node: this.connection.name,
      event,
      clockOffsetMs: this.serverClock.wallOffsetMs(),
    }));
  }
}
