import type { Clock } from "../../../runtime/clock.ts";
import type { Latches, LatchView, LatchWait } from "../../../driver.ts";
import { closedError, latchExpired } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { queueFullError } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Node } from "../server/server.ts";
import type { Reply } from "../protocol/operation.ts";
import { impatientDelay, pollDelay } from "../server/poll-delays.ts";
import { RepeatedCall, type Waking } from "../server/server-call.ts";

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
  readonly agenda: TimerQueue<Waking>;
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
class LatchCall extends RepeatedCall<number> implements LatchWait {
  readonly latch: LatchView;
  readonly #latches: RedisLatches;
  readonly #name: Purpose["name"];
  /** It goes on asking until the latch is open. */
  readonly #isPatient: boolean;
  readonly #token: string;
  /** The kind of our channel where we ask to be told; n: we only look. */
  #channelKind = "n";
  /** With which kind we may stand on the server among those who are to be told. */
  #standsAs: string | undefined;
  #left = 0;

  constructor(latches: RedisLatches, latch: LatchView, purpose: Purpose) {
    const { host, agenda } = latches;
    const keys = host.keysOf(latch.key);
    const deadline = purpose.name === "countDown" ? null : purpose.deadline;
    super({ ...host, agenda }, { key: latch.key, keys, node: host.nodeOf(keys), deadline });
    this.#latches = latches;
    this.latch = latch;
    this.#name = purpose.name;
    const attemptId = purpose.name === "countDown" ? purpose.attemptId : undefined;
    this.#token = host.tokenOf(latch.key, attemptId);
    this.#isPatient = deadline !== null;
  }

  get args(): readonly string[] {
    const { count, ttlMs, id = "" } = this.latch;
    const { clock, commandTimeoutMs } = this.#latches.host;
    const patienceMs = this.#isPatient ? commandTimeoutMs : this.deadline - clock.now();
    const latest = Math.ceil(this.node.time.micros() / 1000 + patienceMs);
    const told = [this.#token, String(count), String(ttlMs), id, String(latest)];
    const kind = this.#name === "countDown" ? [] : [this.#channelKind];
    return [this.#name, ...told, ...kind];
  }

  opened(id: string): void {
    if (this.#isPatient && this.latch.id === id) {
      this.#finish();
      this.resolve(0);
    } else if (this.#isPatient && this.latch.id === undefined) {
      this.attempt(); // the message overtook the answer
    }
  }

  hearingChanged(): void {
    if (this.#isPatient) {
      this.attempt();
    }
  }

  answered({ value }: Reply): void {
    const [status, left, id, remainingMs, more] = value as unknown[];
    if (Number(status) === 3) {
      this.failed(this.late()); // it came too late, or the server's clock was set, which we know now
      return;
    }
    this.attempts.answered();
    if (Number(more) === 1) {
      this.node.perform(this); // others are left to be told, whether we are settled or not
    }
    if (!this.isOpen) {
      return;
    } else if (status === "error") {
      this.refused(String(left));
    } else if (Number(status) === 2) {
      this.fail(queueFullError(this.key));
    } else if (Number(status) === 0 || (this.latch.id ??= String(id)) !== String(id)) {
      this.fail(latchExpired(this.key));
    } else {
      this.#told(Number(left), Number(remainingMs));
    }
  }

  protected unready(): Promise<unknown> | undefined {
    return this.node.isKnown ? undefined : this.node.meet();
  }

  protected send(): void {
    const { node } = this;
    const mayBeTold = this.#isPatient && node.hearing === "proved";
    this.#channelKind = mayBeTold ? node.channelKind : "n";
    this.#standsAs = mayBeTold ? node.channelKind : this.#standsAs;
    this.attempts.sent();
    node.perform(this);
  }

  #told(left: number, remainingMs: number): void {
    this.#left = left;
    if (left === 0 || !this.#isPatient) {
      this.#finish();
      this.resolve(left);
      return;
    }
    const { random } = this.#latches.host;
    const { node } = this;
    node.listen();
    if (this.#channelKind !== "n") {
      this.askAgainIn(pollDelay(random, 0, remainingMs, Infinity));
    } else if (node.hearing === "proved") {
      this.attempt(); // proved since we asked: now we can be told
    } else {
      this.askAgainIn(impatientDelay(random, this.attempts.count, remainingMs));
    }
  }

  protected expired(): void {
    this.abandon();
    this.resolve(this.#left);
  }

  protected abandon(): void {
    this.#leave();
    this.#finish();
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
    this.isOpen = false;
    this.#latches.settled(this);
  }
}
