import { manualClock } from "holdfast/testing";
import type { Connection } from "holdfast/redis";

import type { Instant } from "../../../../src/runtime/clock.ts";
import { quorumNodeBatches } from "../../../../src/drivers/redis/redlock/quorum-node.ts";
import { Batcher, type Header } from "../../../../src/drivers/redis/server/batch.ts";
import { singleServerBatches } from "../../../../src/drivers/redis/single/server-directory.ts";
import { counterKey, KeySpace } from "../../../../src/drivers/redis/protocol/keys.ts";
import type { Operation, Reply } from "../../../../src/drivers/redis/protocol/operation.ts";
import { Responsiveness } from "../../../../src/drivers/redis/server/bounded-calls.ts";
import { commandText } from "../../../support/diagnostics-log.ts";

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly operations: readonly string[];
  answer(answers?: readonly unknown[]): void;
  /** Answers with anything. */
  reply(value: unknown): void;
  fail(error: unknown): void;
}

export const serverMicros = 1_700_000_000_000_000;
const space = new KeySpace("", "lock:");

/** A batcher on a connection whose calls the test answers, with a clock that the test advances. */
export class BatchFixture {
  readonly clock = manualClock({ wall: 1_000_000 });
  readonly calls: Call[] = [];
  readonly probes: ((answer: unknown) => void)[] = [];
  readonly received: [serverMicros: number, sentAt: number, receivedAt: number][] = [];
  recoveries = 0;
  responsiveness!: Responsiveness;
  batcher = this.open();

  /** @param isQuorumNode whether the batcher serves a node of a quorum */
  open(isQuorumNode = false): Batcher {
    const limits = { nodeTimeoutMs: 2_000, retentionMs: 3_600_000, maxClockDifferenceMs: 0, queueBound: 100 };
    const settings = isQuorumNode
      ? quorumNodeBatches(limits)
      : singleServerBatches(counterKey(), limits.queueBound, limits.nodeTimeoutMs);
    const listener = {
      replied: ({ serverMicros: micros }: Header, sent: Instant, receivedAt: number) => {
        this.received.push([micros, sent.now, receivedAt]);
      },
      unresponsive: () => undefined,
    };
    this.responsiveness = new Responsiveness({
      clock: this.clock,
      timeoutMs: 2_000,
      probe: () => new Promise((resolve) => this.probes.push(resolve)),
      recovered: () => {
        this.recoveries += 1;
      },
    });
    return new Batcher(this.#connection(), this.clock, settings, listener, this.responsiveness);
  }

  perform(...names: string[]): RecordingOperation[] {
    return names.map((name) => {
      const operation = new RecordingOperation(name);
      this.batcher.perform(operation);
      return operation;
    });
  }

  #connection(): Connection {
    return {
      run: (_script: unknown, keys: readonly string[], args: readonly string[]) =>
        new Promise((resolve, reject) => {
          const operations = commandText(args);
          const all = (): unknown[] => operations.map((name) => `done ${name}`);
          this.calls.push({
            keys,
            args,
            operations,
            answer: (answers = all()) => {
              resolve([serverMicros, ...answers]);
            },
            reply: resolve,
            fail: reject,
          });
        }),
    } as unknown as Connection;
  }
}

export class RecordingOperation implements Operation {
  readonly keys = space.keysOf("k");
  readonly args: readonly string[];
  readonly replies: Reply[] = [];
  readonly failures: unknown[] = [];

  constructor(name: string) {
    this.args = [name];
  }

  answered(reply: Reply): void {
    this.replies.push(reply);
  }

  failed(error: unknown): void {
    this.failures.push(error);
  }

  get value(): unknown {
    return this.replies.at(-1)?.value;
  }
}

/** An operation name, which has letters only. */
export function nameOf(index: number): string {
  return `op${String(index).replace(/\d/g, (digit) => "abcdefghij"[Number(digit)] as string)}`;
}

export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => nameOf(index));
}

/** Waits until the operations of this turn are sent, and received replies are processed. */
export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
