import type { Clock } from "../../clock.ts";
import type { Latches, LatchView, LatchWait } from "../../driver.ts";
import { closedError, latchExpired } from "../../errors.ts";
import type { Random } from "../../random.ts";
import { TimerQueue, type Timed } from "../../timer-queue.ts";
import { Attempts } from "./attempts.ts";
import { engineError, isTransient, queueFullError, refusalBy, timeoutError } from "./failures.ts";
import type { LockKeys } from "./keys.ts";
import type { Node } from "./node.ts";
import type { Operation, Reply } from "./operation.ts";
import { backoffDelay, impatientDelay, pollDelay } from "./pacing.ts";

interface LatchHost {
  /** The server that has these keys. */
  nodeOf(keys: LockKeys): Node;
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  keysOf(key: string): LockKeys;
  /** A token of its own for each call; with a caller's attempt the same attempt in every process. */
  tokenOf(key: string, attemptId: string | undefined): string;
}

/** The latches of one server. Who waits is told by a message, and asks again whatever message is lost. */
export class RedisLatches implements Latches {
  readonly host: LatchHost;
  readonly agenda: TimerQueue<LatchCall>;
  /** What is under way, by the K of its latch. */
  readonly #calls = new Map<string, Set<LatchCall>>();

  constructor(host: LatchHost) {
    this.host = host;
    this.agenda = new TimerQueue(
      host.clock,
      (call) => call.wake(),
      true, // somebody waits for it
    );
  }

  countDown(latch: LatchView, attemptId: string | undefined): Promise<number> {
    return this.#begin(new LatchCall(this, latch, { name: "countDown", attemptId })).result;
  }

  wait(latch: LatchView, deadline: number | null): LatchWait {
    return this.#begin(new LatchCall(this, latch, { name: "awaitLatch", deadline }));
  }

  /** A message says that the latch of this K that was born then is open. */
  opened(lock: string, id: string): void {
    for (const call of this.#calls.get(lock) ?? []) {
      call.opened(id);
    }
  }

  /** Whether messages reach us changed. */
  hearingChanged(node: Node): void {
    for (const call of this.#all()) {
      if (call.node === node) {
        call.hearingChanged();
      }
    }
  }

  /** The server answers again. */
  revived(node: Node): void {
    for (const call of this.#all()) {
      if (call.node === node) {
        call.revived();
      }
    }
  }

  close(): void {
    for (const call of this.#all()) {
      call.cancel(closedError(call.latch.key));
    }
    this.agenda.clear();
  }

  settled(call: LatchCall): void {
    this.agenda.cancel(call);
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

type Purpose =
  | { readonly name: "countDown"; readonly attemptId: string | undefined }
  | { readonly name: "awaitLatch"; readonly deadline: number | null };

/**
 * One call about a latch: sent again until it is answered for good, cancelled, or its time is over. Repeats are one attempt with one
 * token, so what was carried out and not answered counts once.
 */
class LatchCall implements Operation, LatchWait, Timed {
  dueAt = 0;
  slot = -1;
  readonly keys: LockKeys;
  readonly node: Node;
  readonly latch: LatchView;
  readonly result: Promise<number>;
  readonly #latches: RedisLatches;
  readonly #name: Purpose["name"];
  /** It goes on asking until the latch is open. */
  readonly #isPatient: boolean;
  readonly #token: string;
  readonly #since: number;
  readonly #deadline: number;
  readonly #attempts = new Attempts();
  #isDone = false;
  /** The kind of our channel where we ask to be told; n: we only look. */
  #channelKind = "n";
  /** With which kind we may stand on the server among those who are to be told. */
  #standsAs: string | undefined;
  #left = 0;
  #resolve!: (left: number) => void;
  #reject!: (reason: unknown) => void;

  constructor(latches: RedisLatches, latch: LatchView, purpose: Purpose) {
    const { clock, commandTimeoutMs } = latches.host;
    this.#latches = latches;
    this.latch = latch;
    this.keys = latches.host.keysOf(latch.key);
    this.node = latches.host.nodeOf(this.keys);
    this.#name = purpose.name;
    const attemptId = purpose.name === "countDown" ? purpose.attemptId : undefined;
    this.#token = latches.host.tokenOf(latch.key, attemptId);
    const deadline = purpose.name === "countDown" ? null : purpose.deadline;
    this.#isPatient = deadline !== null;
    this.#since = clock.now();
    this.#deadline = deadline ?? this.#since + commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get args(): readonly string[] {
    const { count, ttlMs, id = "" } = this.latch;
    const { clock, commandTimeoutMs } = this.#latches.host;
    const patienceMs = this.#isPatient ? commandTimeoutMs : this.#deadline - clock.now();
    const latest = Math.ceil(this.node.time.micros() / 1000 + patienceMs);
    const told = [this.#token, String(count), String(ttlMs), id, String(latest)];
    const kind = this.#name === "countDown" ? [] : [this.#channelKind];
    return [this.#name, ...told, ...kind];
  }

  begin(): void {
    this.#latches.agenda.schedule(this, this.#deadline);
    this.attempt();
  }

  /** Asks (again), unless it is settled. */
  attempt(): void {
    if (this.#isDone) {
      return;
    }
    this.#attempts.count += 1;
    const { node } = this;
    if (node.isKnown) {
      this.#send();
      return;
    }
    node.meet().then(
      () => this.#send(),
      (error: unknown) => this.#failedToReach(error),
    );
  }

  /** Its moment has come: the deadline, or the poll. */
  wake(): void {
    if (this.#latches.host.clock.now() >= this.#deadline) {
      this.#timeOut();
    } else {
      this.#latches.agenda.schedule(this, this.#deadline);
      this.attempt();
    }
  }

  opened(id: string): void {
    if (this.#isPatient && this.latch.id === id) {
      this.#finish();
      this.#resolve(0);
    } else if (this.#isPatient && this.latch.id === undefined) {
      this.attempt(); // the message overtook the answer
    }
  }

  hearingChanged(): void {
    if (this.#isPatient) {
      this.attempt();
    }
  }

  revived(): void {
    if (this.#attempts.failures > 0) {
      this.attempt();
    }
  }

  cancel(reason: unknown): void {
    if (!this.#isDone) {
      this.#leave();
      this.#finish();
      this.#reject(reason);
    }
  }

  answered({ value }: Reply): void {
    const [status, left, id, remainingMs, more] = value as unknown[];
    if (Number(status) === 3) {
      this.failed(timeoutError(this.#deadline - this.#since)); // it came too late, or the server's clock was set, which we know now
      return;
    }
    this.#attempts.answered();
    if (Number(more) === 1) {
      this.node.perform(this); // others are left to be told, whether we are settled or not
    }
    if (this.#isDone) {
      return;
    } else if (status === "error") {
      this.#refused(String(left));
    } else if (Number(status) === 2) {
      this.#fail(queueFullError(this.latch.key));
    } else if (Number(status) === 0 || (this.latch.id ??= String(id)) !== String(id)) {
      this.#fail(latchExpired(this.latch.key));
    } else {
      this.#told(Number(left), Number(remainingMs));
    }
  }

  failed(error: unknown): void {
    this.#attempts.failed(error);
    this.#failedToReach(error);
  }

  #send(): void {
    if (this.#isDone) {
      return;
    }
    const { node } = this;
    const mayBeTold = this.#isPatient && node.hearing === "proved";
    this.#channelKind = mayBeTold ? node.channelKind : "n";
    this.#standsAs = mayBeTold ? node.channelKind : this.#standsAs;
    this.#attempts.sent();
    node.perform(this);
  }

  #told(left: number, remainingMs: number): void {
    this.#left = left;
    if (left === 0 || !this.#isPatient) {
      this.#finish();
      this.#resolve(left);
      return;
    }
    const { random } = this.#latches.host;
    const { node } = this;
    node.listen();
    if (this.#channelKind !== "n") {
      this.#askAgainIn(pollDelay(random, 0, remainingMs, Infinity));
    } else if (node.hearing === "proved") {
      this.attempt(); // proved since we asked: now we can be told
    } else {
      this.#askAgainIn(impatientDelay(random, this.#attempts.count, remainingMs));
    }
  }

  /** No answer came, or none could: tried again until the time is over, unless it cannot pass by itself. */
  #failedToReach(error: unknown): void {
    if (this.#isDone) {
      return;
    }
    this.#attempts.lastError = error;
    if (!isTransient(error)) {
      this.#fail(engineError(error, this.latch.key, this.#attempts.outcome));
      return;
    }
    this.#attempts.failures += 1;
    this.#askAgainIn(backoffDelay(this.#latches.host.random, this.#attempts.failures));
  }

  /** The script ran and refused. */
  #refused(message: string): void {
    const error = engineError(refusalBy(message), this.latch.key, "none");
    if (error.retryable) {
      this.#failedToReach(error);
    } else {
      this.#fail(error);
    }
  }

  #askAgainIn(delayMs: number): void {
    const { agenda, host } = this.#latches;
    agenda.schedule(this, Math.min(host.clock.now() + delayMs, this.#deadline));
  }

  #timeOut(): void {
    const { lastError, wasAnswered, outcome } = this.#attempts;
    const failure = lastError ?? (wasAnswered ? undefined : timeoutError(this.#deadline - this.#since));
    if (failure !== undefined) {
      this.#fail(engineError(failure, this.latch.key, outcome));
      return;
    }
    this.#leave();
    this.#finish();
    this.#resolve(this.#left);
  }

  #fail(error: unknown): void {
    this.#leave();
    this.#finish();
    this.#reject(error);
  }

  /** Said once: what is left of us there if it is lost is forgotten in a while, and costs no more than a message to nobody. */
  #leave(): void {
    const kind = this.#standsAs;
    if (kind !== undefined) {
      const { keys } = this;
      const args = ["leaveLatch", this.#token, kind];
      this.node.perform({ keys, args, answered: () => undefined, failed: () => undefined });
    }
  }

  #finish(): void {
    this.#isDone = true;
    this.#latches.settled(this);
  }
}
