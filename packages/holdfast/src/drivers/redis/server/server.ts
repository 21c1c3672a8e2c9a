import { momentOf, type Clock, type Moment, type Timer } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import type { LossReason } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import type { NodeState } from "../../../lock-state.ts";
import { Batcher, type BatcherSettings, type Header } from "./batch.ts";
import { Brackets } from "./grant-age.ts";
import type { Connection } from "../clients/connection.ts";
import {
  clonedError,
  engineError,
  isForbidden,
  isOfReplica,
  outcomeOf,
  timeoutError,
  unsupportedCluster,
} from "./errors.ts";
import { readGreeting, stateOf, type Greeting } from "./handshake.ts";
import { channelOf, clientKey, counterKey, slotKey } from "../protocol/keys.ts";
import { readMessage, type PushedGrant } from "../protocol/messages.ts";
import { waitMs } from "../options.ts";
import type { Operation } from "../protocol/operation.ts";
import {
  clientInfoScript,
  executeSingleScript,
  handshakeScript,
  executeQuorumScript,
  healthScript,
} from "../protocol/scripts.generated.ts";
import { ServerTime } from "./server-clock.ts";
import { Silence } from "./responsiveness.ts";
import { readStanding, type Standing } from "./health.ts";
import { Subscriber, type Hearing } from "./subscriber.ts";
import { clientOf } from "../protocol/token.ts";

const clientTtlMs = 180_000;
const clientRenewalMs = 60_000;
const slowGreetingMs = 2;
/** How much later than a call may take the server may execute it. */
const latenessMs = 3_000;
/** A clone that repeats these does no harm: an attempt counts once. */
const latchOperations = new Set(["countDown", "awaitLatch", "leaveLatch"]);

/** The latest server time, ms, at which an operation that is sent at this time may take effect. */
export function latestTime(sentMs: number, commandTimeoutMs: number): string {
  return String(sentMs + commandTimeoutMs + latenessMs);
}

/** Who is to hear what the server pushes. */
export interface NodeListener {
  granted(grant: PushedGrant): void;
  ended(token: string, reason: LossReason, cause: unknown): void;
  /** Who waits with this token stands in the queue no more, and has to ask again. */
  askAgain?(token: string): void;
  /** Another process proves that it hears our channel: it is a clone of this one, with the same tokens. */
  cloned(): void;
  /** The latch of this K that was born then is open. A quorum has none. */
  opened?(lock: string, born: string): void;
  /** Whether messages reach us changed: waiting requests have to ask again. */
  hearingChanged(hearing: Hearing, node: Node): void;
  /** A rival that came earlier asks for the vote with this number back. Told of a quorum's node only. */
  inquired?(token: string, number: number): void;
  /** It was silent and answers again: what failed meanwhile is worth another try at once. */
  revived(node: Node): void;
  /** Which run of the server answered, and how long it has been up. Told of a quorum's node only, before the answers are. */
  identified?(runId: string, uptimeMs: number): void;
}

/** What is different about a node that is one slot of a cluster. */
export interface Membership {
  /** The hash tag that leads to the slot. Undefined: where we are at home, and hear by a plain channel what is ended by force. */
  readonly tag: string | undefined;
  /** The time of the slot's server. */
  ownTime(): ServerTime;
  /** The same, or another server's while it is not known. */
  bestTime(): ServerTime;
  /** What the hashes of clients say, wherever they are. */
  clients(keys: readonly string[]): Promise<unknown[]>;
}

export interface NodeOptions {
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
  readonly listener: NodeListener;
  readonly membership?: Membership | undefined;
}

/** One server: sends operations, hears grants, and knows the server's time. Knows one connection and nothing of waiting. */
export class Node {
  readonly connection: Connection;
  readonly brackets: Brackets;
  /** The key of the counter of fencing numbers, where a server has one for all its locks. */
  readonly counter: string;
  readonly #time: ServerTime;
  readonly #options: NodeOptions;
  readonly #silence: Silence;
  readonly #batcher: Batcher;
  #subscriber: Subscriber;
  #clientId: string;
  /** Our clones have these, too: nothing is asked with a token of theirs. */
  readonly #formerIds = new Set<string>();
  readonly #stopListening: () => void;
  #about: string[];
  /** When it was asked last, on the scale of `clock.now()`, where it is a slot of a cluster: one that is not asked is forgotten. */
  usedAt: number;
  #meeting: Promise<void> | undefined;
  #refreshing: Promise<unknown> | undefined;
  #keepKnown: Timer;
  #isSharded: boolean;
  #isListening = false;
  #isClosed = false;
  #suspectedAt = -Infinity;
  /** How many messages on our channel had a form that no script writes. */
  #malformed = 0;

  constructor(options: NodeOptions) {
    const { connection, clock } = options;
    this.#options = options;
    this.connection = connection;
    this.#clientId = options.clientId;
    this.brackets = new Brackets(clock);
    this.#time = new ServerTime(clock);
    this.usedAt = clock.now();
    const { nodeTimeoutMs, membership } = options;
    this.#isSharded = membership === undefined || membership.tag !== undefined;
    this.#about = membership?.tag === undefined ? ["owner", "unknown"] : [];
    const isVoter = nodeTimeoutMs !== undefined;
    this.counter = counterKey(membership?.tag);
    this.#silence = this.#silenceOf(options);
    const listener = {
      replied: ({ serverMicros, runId, uptimeMs }: Header, sent: Moment, at: number, isSteady: boolean) => {
        this.#observe(serverMicros, sent, at);
        if (isVoter) {
          if (isSteady) {
            this.brackets.observe(runId, serverMicros, sent);
          }
          options.listener.identified?.(runId, uptimeMs);
        }
      },
      suspected: this.suspect,
    };
    this.#batcher = new Batcher(
      connection,
      clock,
      batchingOf(options, this.counter),
      listener,
      this.#silence,
    );
    this.#subscriber = this.#makeSubscriber();
    this.#stopListening = connection.onDown(() => {
      if (this.isKnown && !this.#isClosed) {
        this.#interrupted("connection-lost");
        this.#subscriber.doubt();
      }
    });
  }

  #silenceOf({ connection, clock, commandTimeoutMs, listener }: NodeOptions): Silence {
    return new Silence({
      clock,
      timeoutMs: commandTimeoutMs,
      probe: () => this.#greet(null, (script, keys, args) => connection.run(script, keys, args)),
      ended: () => {
        if (!this.#isClosed) {
          this.meet().catch(() => undefined); // where a probe was its first answer
          listener.revived(this);
        }
      },
    });
  }

  /** It let a call time out and was not heard since: calls are refused. */
  get isSilent(): boolean {
    return this.#silence.isOn;
  }

  get hearing(): Hearing {
    return this.#subscriber.hearing;
  }

  /** Whether all grants that are heard are ours: no clone of this machine has the same channel. */
  get hearsAlone(): boolean {
    return this.#subscriber.isAlone;
  }

  /** How our waiters are published to: the last word of a queue member. */
  get channelKind(): string {
    return this.#isSharded ? `s${this.#tag ?? ""}` : "p";
  }

  /** How a holder is published to: in a cluster by a plain channel, which reaches it wherever it listens. */
  get forceKind(): string {
    return this.#tag === undefined ? this.channelKind : "p";
  }

  /** Whether we hear here what is ended by force. */
  get hearsForce(): boolean {
    return this.#tag === undefined;
  }

  /** Whether it hears messages, or is about to. */
  get listens(): boolean {
    return this.#isListening;
  }

  /** The server's time; of a slot whose server has not answered yet, another's. */
  get time(): ServerTime {
    return this.#options.membership?.bestTime() ?? this.#time;
  }

  /**
   * The latest server time, ms, at which an operation that is sent now may take effect. A server that executes it later refuses it,
   * because nobody expects it any more.
   */
  latestExecution(): string {
    const earliestMs = Math.floor(this.time.earliestMicros() / 1000);
    return latestTime(earliestMs, this.#options.commandTimeoutMs);
  }

  /** The server has answered once: its time and version are known, as a place in the queue needs. */
  get isKnown(): boolean {
    return this.time.isKnown;
  }

  /** What `inspect` tells of us: field, value, ... */
  introduce(about: readonly string[]): void {
    this.#about = [...about];
    if (this.isKnown) {
      this.#greet(null).catch(() => undefined);
    }
  }

  /** Whether its token, which a quorum's operation has behind the candidate, is one of a former id. */
  #isOfClones({ args: [name = "", ...rest] }: Operation): boolean {
    const isOf = (word: string): boolean => this.#formerIds.has(clientOf(word) ?? "");
    return !latchOperations.has(name) && rest.slice(0, 2).some(isOf);
  }

  /** Has another id from now on. What is under way with the former one ends, as a clone of this process has it, too. */
  rename(clientId: string): void {
    this.#formerIds.add(this.#clientId);
    this.#clientId = clientId;
    this.#subscriber.close();
    this.#subscriber = this.#makeSubscriber();
    if (this.#isListening) {
      this.#isListening = false;
      this.listen();
    }
    this.introduce(this.#about);
  }

  /** Asks the server who it is, once, and then subscribes. Rejects where it does not answer; the next call asks again. */
  meet(): Promise<void> {
    this.#meeting ??= this.#meet().catch((error: unknown) => {
      this.#meeting = undefined;
      throw error;
    });
    return this.#meeting;
  }

  /** Resolves when the server's present time is known: it is asked, unless it is known. Rejects where it does not answer. */
  knowTime(): Promise<unknown> {
    if (!this.isKnown) {
      return this.meet();
    }
    this.#refreshing ??= this.#greet(null).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  perform(operation: Operation): void {
    if (this.#options.membership) {
      this.usedAt = this.#options.clock.now();
    }
    if (this.#formerIds.size > 0 && this.#isOfClones(operation)) {
      operation.failed(clonedError());
    } else {
      this.#batcher.perform(operation);
    }
  }

  /**
   * Asks what decides whether a quorum may count it. Only a server that forbids `CONFIG` counts as not durable: without an answer
   * nothing is known, and this rejects with an `EngineError`.
   */
  async standing(): Promise<Standing> {
    const [told, policy] = await Promise.all([
      this.ask(healthScript, [], []),
      this.#within(() => this.connection.command("CONFIG", ["GET", "appendfsync"])).catch(
        (error: unknown) => {
          if (!isForbidden(error)) {
            throw error;
          }
        },
      ),
    ]);
    return readStanding(told as unknown[], policy);
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
    const { membership } = this.#options;
    return membership
      ? membership.clients(keys)
      : ((await this.ask(clientInfoScript, keys, [])) as unknown[]);
  }

  /** Runs one of the scripts that are not batched. Rejects with an `EngineError`, at the latest after the command budget. */
  readonly ask: Connection["run"] = (script, keys, args) =>
    this.#within(() => this.connection.run(script, keys, args));

  /** It may be no primary any more. Once in the time of a call: what is looked for anew has to have a chance. */
  readonly suspect = (): void => {
    const { clock, commandTimeoutMs } = this.#options;
    if (clock.now() - this.#suspectedAt >= commandTimeoutMs && !this.#isClosed) {
      this.#suspectedAt = clock.now();
      this.connection.suspect?.();
    }
  };

  async #within(send: () => Promise<unknown>): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#options;
    if (this.#silence.isOn) {
      throw this.#silence.refuse();
    }
    const question = this.#silence.ask();
    let timer: Timer;
    const tooLate = new Promise<never>((_resolve, reject) => {
      timer = clock.setTimer(() => {
        this.suspect();
        this.#silence.gaveUp(question);
        reject(timeoutError(commandTimeoutMs));
      }, commandTimeoutMs);
    });
    const sent = send();
    sent.then(
      () => this.#silence.answered(question),
      (error: unknown) => this.#silence.failed(question, error),
    );
    try {
      return await Promise.race([sent, tooLate]);
    } catch (error) {
      if (isOfReplica(error)) {
        this.suspect();
      }
      throw engineError(error, undefined, outcomeOf(error));
    } finally {
      clock.clearTimer(timer);
    }
  }

  state(): Promise<NodeState> {
    const { clock } = this.#options;
    const view = { node: this.connection.name, clock, sent: momentOf(clock), notifications: this.hearing };
    const replication = (): Promise<unknown> =>
      this.#within(() => this.connection.command("INFO", ["replication"]));
    return stateOf(view, { greet: () => this.#greet(null), replication });
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#keepKnown);
    this.#stopListening();
    this.#subscriber.close();
    this.connection.close?.();
  }

  #makeSubscriber(): Subscriber {
    const { connection, clock, random, commandTimeoutMs, listener } = this.#options;
    return new Subscriber({
      connection,
      clock,
      random,
      channel: this.#channel,
      timeoutMs: commandTimeoutMs,
      publish: async (text) => (await this.#greet(text)).receivers,
      answered: () => this.#silence.heard(),
      heard: (text) => {
        this.#hear(text);
        this.#silence.heard();
      },
      changed: (hearing) => listener.hearingChanged(hearing, this),
      lost: () => this.#interrupted("subscription-lost"),
    });
  }

  async #meet(): Promise<void> {
    const { clock } = this.#options;
    const begun = clock.now();
    const greeting = await this.#greet(null);
    if (clock.now() - begun > slowGreetingMs) {
      await this.#greet(null); // the first may have waited for the connection: places in the queue need a better estimate
    }
    if (this.#options.membership && !isSeven(greeting)) {
      throw unsupportedCluster(greeting.version);
    }
    if (!this.#isClosed && this.hearsForce) {
      this.listen();
      this.#keepIntroduced();
    }
  }

  #keepIntroduced(): void {
    this.#keepKnown = this.#options.clock.setTimer(() => {
      this.#greet(null).catch(() => undefined);
      this.#keepIntroduced();
    }, clientRenewalMs);
  }

  /** Says who we are; with a text, publishes it to our own channel. */
  async #greet(text: string | null, ask: Connection["run"] = this.ask): Promise<Greeting> {
    const { clock } = this.#options;
    const sent = momentOf(clock);
    const kind = text === null ? "n" : this.channelKind;
    const args = [this.#channel, kind, text ?? "", String(clientTtlMs), ...this.#about];
    const key = this.#tag === undefined ? clientKey(this.#clientId) : slotKey(this.#tag);
    const greeting = readGreeting((await ask(handshakeScript, [key], args)) as unknown[]);
    this.#isSharded = this.#options.membership ? this.#isSharded : isSeven(greeting);
    if (greeting.role !== "master") {
      this.suspect();
    }
    this.#observe(greeting.serverMicros, sent, clock.now());
    this.#options.listener.identified?.(greeting.runId, greeting.uptimeMs);
    return greeting;
  }

  get #tag(): string | undefined {
    return this.#options.membership?.tag;
  }

  get #channel(): string {
    return channelOf(this.#clientId, this.#tag);
  }

  #observe(serverMicros: number, sent: Moment, receivedAt: number): void {
    const time = this.#options.membership?.ownTime() ?? this.#time;
    time.observe(serverMicros, sent, receivedAt);
  }

  #interrupted(event: string): void {
    this.brackets.discard();
    this.#batcher.interrupted();
    if (!this.#options.membership) {
      this.#time.doubt(); // that of a cluster's server is its connections' to doubt
    }
    tell("node", () => ({ node: this.connection.name, event, clockOffsetMs: this.#clockOffsetMs() }));
  }

  #clockOffsetMs(): number | undefined {
    return this.isKnown ? this.time.micros() / 1000 - this.#options.clock.wall() : undefined;
  }

  /** A message of another form than the scripts write is counted and ignored. */
  #hear(text: string): void {
    const { listener } = this.#options;
    const message = readMessage(text);
    switch (message?.kind) {
      case undefined:
        this.#malformed += 1;
        tell("node", () => ({
          node: this.connection.name,
          event: "malformed-message",
          detail: { count: this.#malformed },
        }));
        break;
      case "grant":
        listener.granted(message.grant);
        break;
      case "again":
        listener.askAgain?.(message.token);
        break;
      case "open":
        listener.opened?.(message.lock, message.born);
        break;
      case "inquiry":
        listener.inquired?.(message.token, message.number);
        break;
      case "broken":
        listener.ended(message.token, "broken", new Error(message.reason));
        break;
      case "proof":
        listener.cloned();
    }
  }
}

/** How operations are sent: a server that decides alone, and a node of a quorum, have a script each. */
function batchingOf(options: NodeOptions, counter: string): BatcherSettings {
  const { nodeTimeoutMs, maxClockDifferenceMs = 0, retentionMs = 0, queueBound } = options;
  return nodeTimeoutMs === undefined
    ? {
        script: executeSingleScript,
        keys: [counter],
        args: [String(queueBound)],
        timeoutMs: options.commandTimeoutMs,
        isVoter: false,
      }
    : {
        script: executeQuorumScript,
        keys: [],
        args: [String(retentionMs), String(queueBound), String(waitMs(maxClockDifferenceMs))],
        timeoutMs: nodeTimeoutMs,
        isVoter: true,
      };
}

function isSeven({ version }: Greeting): boolean {
  return Number.parseInt(version, 10) >= 7;
}
