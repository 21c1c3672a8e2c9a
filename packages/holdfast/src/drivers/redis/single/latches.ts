import type { Clock } from "../../../runtime/clock.ts";
import type { LatchEngine, LatchRef, PendingLatchWait } from "../../../driver.ts";
import { closedError, latchExpired } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineError, queueFullError } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { RedisServer } from "../server/server.ts";
import type { Reply } from "../protocol/operation.ts";
import { unqueuedPollDelay, queuedPollDelay } from "../server/poll-delays.ts";
import { ServerCall, type Wakeable } from "../server/server-call.ts";

/** The first value of a reply to an operation of a latch; 1: its state follows. */
const latchStatus = { expired: 0, queueFull: 2, executedTooLate: 3 } as const;

interface LatchHost {
  /** The server that has these keys. */
  serverFor(keys: LockKeys): RedisServer;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  keysOf(key: string): LockKeys;
  /** A new token for each call. Calls with the same attempt ID have the same attempt, in every process. */
  tokenOf(key: string, attemptId: string | undefined): string;
}

/** The latches of one server. A waiter gets a notification, and polls in case the notification is lost. */
export class RedisLatches implements LatchEngine {
  readonly host: LatchHost;
  readonly timers: TimerQueue<Wakeable>;
  /** The open calls, by the key of their latch on the server. */
  readonly #calls = new Map<string, Set<LatchCall>>();

  constructor(host: LatchHost) {
    this.host = host;
    this.timers = new TimerQueue(
      host.clock,
      (call) => call.timerDue(),
      true, // a caller waits for each call, so the timer must keep the process alive
    );
  }

  countDown(latch: LatchRef, attemptId: string | undefined): Promise<number> {
    return this.#begin(new LatchCall(this, latch, { name: "countDown", attemptId })).result;
  }

  wait(latch: LatchRef, deadline: number | null): PendingLatchWait {
    return this.#begin(new LatchCall(this, latch, { name: "waitLatch", deadline }));
  }

  /** A notification reports that the latch with this key and generation is open. */
  opened(lock: string, id: string): void {
    for (const call of this.#calls.get(lock) ?? []) {
      call.opened(id);
    }
  }

  /** The state of the server's subscription changed. */
  notificationStatusChanged(node: RedisServer): void {
    for (const call of this.#all()) {
      if (call.server === node) {
        call.notificationStatusChanged();
      }
    }
  }

  /** The server was unresponsive and replies again. */
  recovered(node: RedisServer): void {
    for (const call of this.#all()) {
      if (call.server === node) {
        call.recovered();
      }
    }
  }

  close(): void {
    for (const call of this.#all()) {
      call.cancel(closedError(call.latch.key));
    }
    this.timers.clear();
  }

  settled(call: LatchCall): void {
    this.timers.cancel(call);
    const calls = this.#calls.get(call.keys[0]);
    calls?.delete(call);
    if (calls?.size === 0) {
      this.#calls.delete(call.keys[0]);
    }
  }

  #all(): LatchCall[] {
    return Array.from(this.#calls.values(), (calls) => [...calls]).flat();
  }

  #begin(call: LatchCall): LatchCall {
    const calls = this.#calls.get(call.keys[0]) ?? new Set();
    this.#calls.set(call.keys[0], calls.add(call));
    call.begin();
    return call;
  }
}

type LatchOperation =
  | { readonly name: "countDown"; readonly attemptId: string | undefined }
  | { readonly name: "waitLatch"; readonly deadline: number | null };

/**
 * One call for a latch. The call is repeated until a final reply, its cancellation, or its deadline. Its repeats are one attempt with
 * one token, so an executed call without a reply counts once.
 *
 * The first request of a latch object only asks which latch the key has. A count names that latch, because a client library may resend
 * the count after the latch has expired, and the resent count would also count on the next latch of the key.
 */
class LatchCall extends ServerCall<number> implements PendingLatchWait {
  readonly latch: LatchRef;
  readonly #latches: RedisLatches;
  readonly #name: LatchOperation["name"];
  /** The call is repeated until the latch is open. */
  readonly #waits: boolean;
  readonly #token: string;
  /** The kind of the client's channel, if the call requests a notification. `n` if it requests none. */
  #channelKind = "n";
  /** The kind of channel with which the server may have registered this waiter. */
  #queuedAs: string | undefined;
  #remaining = 0;

  constructor(latches: RedisLatches, latch: LatchRef, operation: LatchOperation) {
    const { host, timers } = latches;
    const keys = host.keysOf(latch.key);
    const deadline = operation.name === "countDown" ? null : operation.deadline;
    super({ ...host, timers }, { key: latch.key, keys, server: host.serverFor(keys), deadline });
    this.#latches = latches;
    this.latch = latch;
    this.#name = operation.name;
    const attemptId = operation.name === "countDown" ? operation.attemptId : undefined;
    this.#token = host.tokenOf(latch.key, attemptId);
    this.#waits = deadline !== null;
  }

  get args(): readonly string[] {
    const { count, ttlMs, generation } = this.latch;
    const { clock, commandTimeoutMs } = this.#latches.host;
    const waitMs = this.#waits ? commandTimeoutMs : this.deadline - clock.now();
    const latest = Math.ceil(this.server.serverClock.micros() / 1000 + waitMs);
    const args = [this.#token, String(count), String(ttlMs), generation ?? "", String(latest)];
    return this.#name === "countDown" && generation !== undefined
      ? [this.#name, ...args]
      : ["waitLatch", ...args, this.#channelKind];
  }

  opened(id: string): void {
    if (this.#waits && this.latch.generation === id) {
      this.#finish();
      this.resolve(0);
    } else if (this.#waits && this.latch.generation === undefined) {
      this.sendIfOpen(); // the notification arrived before the reply
    }
  }

  notificationStatusChanged(): void {
    if (this.#waits) {
      this.sendIfOpen();
    }
  }

  answered({ value }: Reply): void {
    const [status, remaining, id, remainingMs, more, counted] = value as unknown[];
    if (Number(status) === latchStatus.executedTooLate) {
      this.failed(this.timedOutError()); // the server executed the call too late, or its clock was set, and the reply has its present time
      return;
    }
    this.history.answered();
    if (Number(more) === 1) {
      this.server.perform(this); // other waiters still need a notification, even if this call has ended
    }
    if (!this.isOpen) {
      return;
    } else if (status === "error") {
      this.refused(String(remaining));
    } else if (Number(status) === latchStatus.queueFull) {
      this.fail(queueFullError(this.key));
    } else if (
      Number(status) === latchStatus.expired ||
      (this.latch.generation ??= String(id)) !== String(id)
    ) {
      this.fail(latchExpired(this.key));
    } else if (this.#name === "countDown" && Number(counted) !== 1) {
      this.sendIfOpen();
    } else {
      this.#handleState(Number(remaining), Number(remainingMs));
    }
  }

  protected prepare(): Promise<unknown> | undefined {
    return this.server.isTimeKnown ? undefined : this.server.handshake();
  }

  protected send(): void {
    const { server } = this;
    const isSubscribed = this.#waits && server.notificationStatus === "verified";
    this.#channelKind = isSubscribed ? server.channelKind : "n";
    this.#queuedAs = isSubscribed ? server.channelKind : this.#queuedAs;
    this.history.sent();
    server.perform(this);
  }

  #handleState(remaining: number, remainingMs: number): void {
    this.#remaining = remaining;
    if (remaining === 0 || !this.#waits) {
      this.#finish();
      this.resolve(remaining);
      return;
    }
    const { random } = this.#latches.host;
    const { server } = this;
    server.listen();
    if (this.#channelKind !== "n") {
      this.retryIn(queuedPollDelay(random, 0, remainingMs, Infinity));
    } else if (server.notificationStatus === "verified") {
      this.sendIfOpen(); // the subscription was verified after the sending, so a repeat can request a notification
    } else {
      this.retryIn(unqueuedPollDelay(random, this.history.count, remainingMs));
    }
  }

  protected expired(): void {
    if (this.#name === "countDown") {
      this.fail(engineError(this.timedOutError(), this.key, this.history.outcome));
      return;
    }
    this.abandon();
    this.resolve(this.#remaining);
  }

  protected abandon(): void {
    this.#dequeue();
    this.#finish();
  }

  /** Removes the waiter from the server. Sent once, because a lost removal costs only one notification without a receiver. */
  #dequeue(): void {
    const kind = this.#queuedAs;
    if (kind !== undefined) {
      const { keys } = this;
      const args = ["leaveLatchQueue", this.#token, kind];
      this.server.perform({ keys, args, answered: () => undefined, failed: () => undefined });
    }
  }

  #finish(): void {
    this.isOpen = false;
    this.#latches.settled(this);
  }
}
