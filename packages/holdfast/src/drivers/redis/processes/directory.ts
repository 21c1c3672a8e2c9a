import type { RedisServer } from "../server/server.ts";
import type {
  ProcessDirectory,
  ProcessList,
  ProcessQuery,
  ProcessState,
  ReportQuery,
} from "../../../processes/process-state.ts";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { pause, withTimeout } from "../../../runtime/timeout.ts";
import type { ProcessAnswer, ProcessQuestion } from "../protocol/messages.ts";
import { encodeAnswer, parseAnswer } from "./process-answer.ts";
import { EngineError } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import { channelOf } from "../protocol/keys.ts";
import { isTransient, messageOf } from "../server/errors.ts";

/** A server with an entry of each client, and the script of the directory there. */
export interface DirectoryLink {
  /** Its subscription receives the questions to this client. */
  readonly server: RedisServer;
  /** Whether the server counts all subscribers of a channel. A cluster counts those of one node. */
  readonly countsReceivers: boolean;
  readonly run: (args: readonly string[]) => Promise<unknown>;
}

/** A registered client that was asked. */
interface AskedClient {
  readonly clientId: string;
  /** Whether a process subscribes to the client's channel. A cluster does not report it. */
  readonly isSubscribed: boolean;
  /** The time since its last registration, ms. */
  readonly seenMs: number;
}

/** Collects the answers to one question. An unexpected answer is ignored. */
class AnswerCollector {
  readonly answers: Map<string, ProcessState[]> = new Map();
  readonly #expected = new Set<string>();
  readonly #ended = new AbortController();
  #isAsking = true;

  /** A client may answer before the reply to the question, so answers of unknown clients are kept until {@link wait}. */
  received({ clientId, body }: ProcessAnswer): void {
    if (this.answers.has(clientId) || (!this.#isAsking && !this.#expected.has(clientId))) {
      return;
    }
    const states = parseAnswer(body);
    if (states) {
      this.answers.set(clientId, states);
      this.#expected.delete(clientId);
      this.#endIfComplete();
    }
  }

  /** Waits until all subscribed clients have answered, for at most `timeoutMs`. */
  async wait(clients: readonly AskedClient[], clock: Clock, timeoutMs: number): Promise<void> {
    this.#isAsking = false;
    const known = new Set(clients.map(({ clientId }) => clientId));
    for (const clientId of this.answers.keys()) {
      if (!known.has(clientId)) {
        this.answers.delete(clientId);
      }
    }
    for (const { clientId, isSubscribed } of clients) {
      if (isSubscribed && !this.answers.has(clientId)) {
        this.#expected.add(clientId);
      }
    }
    this.#endIfComplete();
    await pause(clock, timeoutMs, true, this.#ended.signal);
  }

  end(): void {
    this.#ended.abort();
  }

  #endIfComplete(): void {
    if (!this.#isAsking && this.#expected.size === 0) {
      this.end();
    }
  }
}

/** A process that ends sooner is not registered, because a short program would leave an entry and cost two commands. */
const firstDelayMs = 1_000;
const renewalMs = 60_000;
const ttlMs = 180_000;
const maxRegistered = 10_000;

/** Registers this client in the directory of each server, once a minute. The timer does not keep the process alive. */
class DirectoryRegistration {
  readonly #clock: Clock;
  readonly #links: () => readonly DirectoryLink[];
  readonly #clientId: () => string;
  #timer: Timer;
  #isUsed = false;
  #isRegistered = false;
  #isClosed = false;

  constructor(clock: Clock, links: () => readonly DirectoryLink[], clientId: () => string) {
    this.#clock = clock;
    this.#links = links;
    this.#clientId = clientId;
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** The process acquires. Called at each acquire. */
  used(): void {
    if (!this.#isUsed && !this.#isClosed) {
      this.#isUsed = true;
      this.#registerIn(firstDelayMs);
    }
  }

  /** Notifications arrive again, perhaps from another server, which has no entry of this client. */
  verified(): void {
    if (this.#isRegistered) {
      this.#registerIn(firstDelayMs);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimer(this.#timer);
    if (this.#isRegistered) {
      this.#send(["leave", this.#clientId()]);
    }
  }

  #registerIn(delayMs: number): void {
    if (this.#isClosed) {
      return;
    }
    this.#clock.clearTimer(this.#timer);
    this.#timer = this.#clock.setTimer(() => {
      this.#isRegistered = true;
      this.#send(["register", this.#clientId(), String(ttlMs), String(maxRegistered)]);
      this.#registerIn(renewalMs);
    }, delayMs);
  }

  /** A failure is not reported: an entry that is missing or stale only makes the directory incomplete. */
  #send(args: readonly string[]): void {
    for (const { server, run } of this.#links()) {
      if (server.notificationStatus === "verified") {
        run(args).catch(() => undefined);
      }
    }
  }
}

interface DirectoryOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** All nodes of a quorum, otherwise one. */
  readonly links: () => readonly DirectoryLink[];
  readonly clientId: () => string;
}

const maxAsked = 1_000;
/** All answers together must fit into the output buffer of the subscription, by default 8 MB for a minute. */
const answersLength = 4_000_000;
const ownLength = 16_000_000;
/** The delay of a timer that measures the lag of the event loop. */
const lagSampleMs = 5;
const maxAnswersPerSecond = 20;
const verificationPollMs = 10;

/**
 * The directory of the processes on Redis. A sorted set has the IDs of the clients that acquired. A question goes to the channel of
 * each client, and each process answers to the channel of the asker. Neither costs a command on the path of an acquire.
 */
export class RedisProcessDirectory implements ProcessDirectory {
  readonly #options: DirectoryOptions;
  readonly #registration: DirectoryRegistration;
  readonly #collectors = new Map<string, AnswerCollector>();
  #report: (query: ReportQuery) => ProcessState[] = () => [];
  #answersLeft = maxAnswersPerSecond;
  #answersSince = -Infinity;
  /** The last questions. A quorum asks the same question by each of its nodes. */
  readonly #answered: string[] = [];

  constructor(options: DirectoryOptions) {
    const { clock, links, clientId } = options;
    this.#options = options;
    this.#registration = new DirectoryRegistration(clock, links, clientId);
  }

  serve(report: (query: ReportQuery) => ProcessState[]): void {
    this.#report = report;
  }

  /** The process acquires. Called at each acquire, so it must be cheap. */
  used(): void {
    this.#registration.used();
  }

  /** Notifications arrive from a server, for the first time or again. */
  verified(): void {
    this.#registration.verified();
  }

  async ask(query: ProcessQuery): Promise<ProcessList> {
    const { clock, random, clientId } = this.#options;
    const { key, timeoutMs, signal } = query;
    signal?.throwIfAborted();
    const asOf = clock.wall();
    const nonce = random.id();
    const collector = new AnswerCollector();
    const stop = (): void => collector.end();
    this.#collectors.set(nonce, collector);
    signal?.addEventListener("abort", stop);
    try {
      const question = `processes ${nonce} ${clientId()}`;
      const asked = await Promise.allSettled(this.#askAll(question, query));
      const { clients, registered, problem } = summary(asked);
      const others = clients.filter((client) => client.clientId !== clientId());
      await collector.wait(others, clock, timeoutMs);
      signal?.throwIfAborted();
      const own = this.#registration.isUsed ? this.#report({ key, maxLength: ownLength }) : [];
      const answers = Array.from(collector.answers.values()).flat();
      const silent = await this.#describe(others.filter((one) => !collector.answers.has(one.clientId)));
      return {
        processes: [...own, ...answers, ...silent],
        scope: "engine",
        complete: problem === null && silent.length === 0 && registered <= maxAsked,
        problem,
        asOf,
      };
    } finally {
      signal?.removeEventListener("abort", stop);
      this.#collectors.delete(nonce);
    }
  }

  /** Answers a question of another process, at most so often, because any client with the right to publish can ask. */
  asked(question: ProcessQuestion, link: DirectoryLink): void {
    const { clock, clientId } = this.#options;
    if (this.#answered.includes(question.nonce) || !this.#mayAnswer()) {
      return;
    }
    this.#answered.push(question.nonce);
    this.#answered.splice(0, this.#answered.length - maxAnswersPerSecond);
    const dueAt = clock.now() + lagSampleMs;
    clock.setTimer(() => {
      const lagMs = Math.max(0, clock.now() - dueAt);
      const report = this.#report({ key: question.key, maxLength: question.maxLength });
      const text = `process ${question.nonce} ${clientId()} ${encodeAnswer(report, lagMs)}`;
      const kind = link.server.breakChannel.slice(0, 1);
      link.run(["answer", channelOf(question.asker), kind, text]).catch(() => undefined);
    }, lagSampleMs);
  }

  answered(answer: ProcessAnswer): void {
    this.#collectors.get(answer.nonce)?.received(answer);
  }

  close(): void {
    this.#registration.close();
    for (const collector of this.#collectors.values()) {
      collector.end();
    }
  }

  /** A node of a quorum that does not reply in time delays no answer of the other nodes. */
  #askAll(question: string, query: ProcessQuery): Promise<Asked>[] {
    const { clock, links } = this.#options;
    const all = links();
    return all.map(async (link) => {
      const asking = this.#ask(link, question, query);
      const asked = all.length === 1 ? await asking : await withTimeout(clock, query.timeoutMs, asking);
      if (asked === undefined) {
        throw new Error(`${link.server.connection.name} did not reply within ${query.timeoutMs} ms`);
      }
      return asked;
    });
  }

  async #ask(link: DirectoryLink, question: string, query: ProcessQuery): Promise<Asked> {
    await this.#verified(link.server, query);
    const kind = link.server.breakChannel.slice(0, 1);
    const limits = [String(maxAsked), String(answersLength)];
    const reply = await link.run(["ask", channelOf(""), kind, question, query.key ?? "", ...limits]);
    return parseAsked(reply, link);
  }

  /** Resolves when this process receives notifications, because the answers are notifications. */
  async #verified(server: RedisServer, { timeoutMs, signal }: ProcessQuery): Promise<void> {
    const { clock } = this.#options;
    await server.handshake();
    const end = clock.now() + timeoutMs;
    while (server.notificationStatus === "unverified" && clock.now() < end && signal?.aborted !== true) {
      await pause(clock, verificationPollMs, true, signal);
    }
    if (server.notificationStatus !== "verified") {
      throw new Error(
        "this process receives no notifications, because its user or its connection cannot subscribe",
      );
    }
  }

  /** The clients without an answer, by their own descriptions. */
  async #describe(clients: readonly AskedClient[]): Promise<ProcessState[]> {
    const [link] = this.#options.links();
    if (clients.length === 0 || !link) {
      return [];
    }
    const ids = clients.map(({ clientId }) => clientId);
    const described = await link.server.clients(ids).catch(() => []);
    return clients.map(({ seenMs }, index) => silentState(described[index], seenMs));
  }

  #mayAnswer(): boolean {
    const now = this.#options.clock.now();
    if (now - this.#answersSince >= 1_000) {
      this.#answersSince = now;
      this.#answersLeft = maxAnswersPerSecond;
    }
    this.#answersLeft -= 1;
    return this.#answersLeft >= 0;
  }
}

/** The reply of one server. */
interface Asked {
  readonly registered: number;
  readonly clients: readonly AskedClient[];
}

const registrationTtlMs = 180_000;

function parseAsked(reply: unknown, { countsReceivers }: DirectoryLink): Asked {
  const [registered, ...clients] = reply as [unknown, ...(readonly [unknown, unknown, unknown])[]];
  return {
    registered: Number(registered),
    clients: clients.map(([clientId, receivers, remainingMs]) => ({
      clientId: String(clientId),
      isSubscribed: !countsReceivers || Number(receivers) > 0,
      seenMs: Math.max(0, registrationTtlMs - Number(remainingMs)),
    })),
  };
}

/** All servers together. Throws the first error if no server has replied and a later call may succeed. */
function summary(asked: readonly PromiseSettledResult<Asked>[]): Asked & { readonly problem: string | null } {
  const clients = new Map<string, AskedClient>();
  const failures = asked.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  const replies = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  for (const client of replies.flatMap((reply) => reply.clients)) {
    const known = clients.get(client.clientId);
    if (!known?.isSubscribed) {
      clients.set(client.clientId, client);
    }
  }
  const [failure] = failures;
  if (replies.length === 0 && failure instanceof EngineError && isTransient(failure)) {
    throw failure;
  }
  const problem = replies.length === 0 ? messageOf(failure) : null; // one node of a quorum is enough
  return {
    clients: Array.from(clients.values()),
    registered: Math.max(0, ...replies.map((reply) => reply.registered)),
    problem,
  };
}

/** @param described field, value, ... of the client's record; empty or undefined: no record */
function silentState(described: unknown, seenMs: number): ProcessState {
  const fields = Array.isArray(described) ? described.map(String) : [];
  const field = (name: string): string | undefined => {
    const index = fields.indexOf(name);
    return index < 0 ? undefined : fields[index + 1];
  };
  const [host, pid] = [field("host"), Number(field("pid"))];
  return {
    owner: field("owner") ?? "unknown",
    ...(host !== undefined && { host }),
    ...(Number.isSafeInteger(pid) && { pid }),
    answered: false,
    seenMs,
    holds: [],
    holdCount: 0,
    waits: [],
    waitCount: 0,
  };
}
