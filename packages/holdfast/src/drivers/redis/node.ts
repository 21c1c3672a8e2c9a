import { momentOf, type Clock, type Timer } from "../../clock.ts";
import { tell } from "../../diagnostics.ts";
import type { LossReason } from "../../errors.ts";
import type { Random } from "../../random.ts";
import type { NodeState } from "../../state.ts";
import { Batcher, type Operation } from "./batch.ts";
import { Brackets } from "./brackets.ts";
import type { Connection } from "./connection.ts";
import { engineError, outcomeOf, timeoutError } from "./failures.ts";
import { channelOf, clientKey } from "./keys.ts";
import type { Script } from "./script.ts";
import { hello } from "./scripts.generated.ts";
import { ServerTime } from "./server-time.ts";
import { Subscriber, type Hearing } from "./subscriber.ts";

const clientTtlMs = 180_000;
const clientRenewalMs = 60_000;
const slowGreetingMs = 2;

/** A grant that a message brought. */
export interface PushedGrant {
  readonly token: string;
  readonly first: number;
  readonly last: number;
  readonly serverMicros: number;
  readonly ttlMs: number;
  readonly runId: string;
  readonly lock: string;
}

/** Who is to hear what the server pushes. */
interface NodeListener {
  granted(grant: PushedGrant): void;
  ended(token: string, reason: LossReason, cause: unknown): void;
  /** Whether messages reach us changed: waiting requests have to ask again. */
  hearingChanged(hearing: Hearing): void;
}

export interface NodeOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly clientId: string;
  readonly commandTimeoutMs: number;
  readonly retentionMs: number;
  readonly queueBound: number;
  readonly listener: NodeListener;
}

/** One server: sends operations, hears grants, and knows the server's time. Knows one connection and nothing of waiting. */
export class Node {
  readonly connection: Connection;
  readonly brackets: Brackets;
  readonly time: ServerTime;
  readonly #options: NodeOptions;
  readonly #batcher: Batcher;
  readonly #subscriber: Subscriber;
  readonly #stopListening: () => void;
  #about: string[] = ["owner", "unknown"];
  #meeting: Promise<void> | undefined;
  #keepKnown: Timer;
  #isSharded = true;
  #isClosed = false;

  constructor(options: NodeOptions) {
    const { connection, clock, random, clientId, commandTimeoutMs, retentionMs, queueBound } = options;
    this.#options = options;
    this.connection = connection;
    this.brackets = new Brackets(clock);
    this.time = new ServerTime(clock);
    const settings = { retentionMs, queueBound, timeoutMs: commandTimeoutMs };
    this.#batcher = new Batcher(connection, clock, settings, (serverMicros, sent, received) => {
      this.time.observe(serverMicros, sent.now, received);
    });
    this.#subscriber = new Subscriber({
      connection,
      clock,
      random,
      channel: channelOf(clientId),
      timeoutMs: commandTimeoutMs,
      publish: async (text) => (await this.#greet(text)).receivers,
      heard: (text) => {
        this.#hear(text);
      },
      changed: (hearing) => {
        options.listener.hearingChanged(hearing);
      },
      lost: () => {
        this.#interrupted("subscription-lost");
      },
    });
    this.#stopListening = connection.onDown(() => {
      if (this.isKnown && !this.#isClosed) {
        this.#interrupted("connection-lost");
        this.#subscriber.doubt();
      }
    });
  }

  get hearing(): Hearing {
    return this.#subscriber.hearing;
  }

  /** How our waiters are published to: the last word of a queue member. */
  get channelKind(): "s" | "p" {
    return this.#isSharded ? "s" : "p";
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

  /** Asks the server who it is, once, and then subscribes. Rejects where it does not answer; the next call asks again. */
  meet(): Promise<void> {
    this.#meeting ??= this.#meet().catch((error: unknown) => {
      this.#meeting = undefined;
      throw error;
    });
    return this.#meeting;
  }

  perform(operation: Operation): void {
    this.#batcher.perform(operation);
  }

  /** Runs one of the scripts that are not batched. Rejects with an `EngineError`, at the latest after the command budget. */
  async ask(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const { clock, commandTimeoutMs } = this.#options;
    let timer: Timer;
    const tooLate = new Promise<never>((_resolve, reject) => {
      timer = clock.setTimer(() => {
        reject(timeoutError(commandTimeoutMs));
      }, commandTimeoutMs);
    });
    try {
      return await Promise.race([this.connection.run(script, keys, args), tooLate]);
    } catch (error) {
      throw engineError(error, undefined, outcomeOf(error));
    } finally {
      clock.clearTimer(timer);
    }
  }

  async state(): Promise<NodeState> {
    const { clock } = this.#options;
    const node = this.connection.name;
    const notifications = this.hearing;
    const sent = momentOf(clock);
    try {
      const greeting = await this.#greet(null);
      const latencyMs = clock.now() - sent.now;
      const clockOffsetMs = greeting.serverMicros / 1000 - (sent.wall + latencyMs / 2);
      const { version, role, runId, uptimeMs } = greeting;
      return {
        node,
        reachable: true,
        latencyMs,
        version,
        role,
        runId,
        uptimeMs,
        clockOffsetMs,
        notifications,
        error: null,
      };
    } catch (error) {
      const unknown = {
        latencyMs: null,
        version: null,
        role: null,
        runId: null,
        uptimeMs: null,
        clockOffsetMs: null,
      };
      return { node, reachable: false, ...unknown, notifications, error: String(error) };
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#options.clock.clearTimer(this.#keepKnown);
    this.#stopListening();
    this.#subscriber.close();
  }

  async #meet(): Promise<void> {
    const { clock } = this.#options;
    const begun = clock.now();
    const { version } = await this.#greet(null);
    if (clock.now() - begun > slowGreetingMs) {
      await this.#greet(null); // the first may have waited for the connection: places in the queue need a better estimate
    }
    this.#isSharded = Number.parseInt(version, 10) >= 7;
    if (!this.#isClosed) {
      this.#subscriber.start(this.#isSharded ? "sharded" : "plain");
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
  async #greet(text: string | null): Promise<Greeting> {
    const { clock, clientId } = this.#options;
    const sent = momentOf(clock);
    const kind = text === null ? "n" : this.channelKind;
    const args = [channelOf(clientId), kind, text ?? "", String(clientTtlMs), ...this.#about];
    const answer = (await this.ask(hello, [clientKey(clientId)], args)) as unknown[];
    const greeting = readGreeting(answer);
    this.time.observe(greeting.serverMicros, sent.now, clock.now());
    return greeting;
  }

  #interrupted(event: string): void {
    this.brackets.discard();
    this.#batcher.interrupted();
    this.time.doubt();
    tell("node", () => ({ node: this.connection.name, event, clockOffsetMs: this.#clockOffsetMs() }));
  }

  #clockOffsetMs(): number | undefined {
    return this.isKnown ? this.time.micros() / 1000 - this.#options.clock.wall() : undefined;
  }

  #hear(text: string): void {
    const [kind, ...words] = text.split(" ");
    if (kind === "grant") {
      const [token = "", first, last, serverMicros, ttlMs, runId = "", ...lock] = words;
      this.#options.listener.granted({
        token,
        first: Number(first),
        last: Number(last),
        serverMicros: Number(serverMicros),
        ttlMs: Number(ttlMs),
        runId,
        lock: lock.join(" "),
      });
    } else if (kind === "broken") {
      const [token, , reason] = JSON.parse(text.slice("broken ".length)) as [string, string, string];
      this.#options.listener.ended(token, "broken", new Error(reason));
    }
  }
}

interface Greeting {
  readonly serverMicros: number;
  readonly receivers: number;
  readonly runId: string;
  readonly version: string;
  readonly role: string;
  readonly uptimeMs: number;
}

function readGreeting(answer: readonly unknown[]): Greeting {
  const [serverMicros, receivers, runId, version, role, uptime] = answer;
  return {
    serverMicros: Number(serverMicros),
    receivers: Number(receivers),
    runId: String(runId),
    version: String(version),
    role: String(role),
    uptimeMs: Number(uptime) * 1000,
  };
}
