import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import type { Client } from "../run/client.ts";
import { commandTimeoutMs } from "../run/engines.ts";
import type { History } from "./history.ts";
import { keysIn } from "../run/quiet-period.ts";
import { isFaultFree, isUse, type Schedule } from "../plan/schedule.ts";
import type { ServerMachine } from "../run/server-machine.ts";
import { wallStart, type VirtualClock } from "../run/virtual-clock.ts";

const settlingMs = 3_000;
/** How long Redis keeps a queue after its last change. */
const queueTtlMs = 60_000;

/** Keys that servers keep without a holder. */
const permanentKeys = /^holdfast:(fence$|fence:|client:|audit:)/;

/** A key that a node still stores. */
interface Residue {
  readonly node: number;
  readonly key: string;
  readonly value: string;
  /** The clients that the value names. */
  readonly owners: readonly Client[];
}

/** Checks at the end that no residue stays on servers and in processes. */
export class FinalChecks {
  readonly #schedule: Schedule;
  readonly #clock: VirtualClock;
  readonly #history: History;

  constructor(schedule: Schedule, clock: VirtualClock, history: History) {
    this.#schedule = schedule;
    this.#clock = clock;
    this.#history = history;
  }

  async run(clients: readonly Client[], machines: readonly ServerMachine[]): Promise<void> {
    const alive = clients.filter(({ isDead }) => !isDead);
    await this.#clock.advance(settlingMs + this.#history.reservedForMs);
    this.#checkMessageCount(clients);
    const { engine } = this.#schedule;
    this.#checkServers(machines, alive);
    if (engine === "memory") {
      await this.#checkMemoryEngine(clients[0] as Client);
    }
    const closing = Promise.all(alive.map(({ locks }) => locks.close()));
    await this.#clock.advance(commandTimeoutMs * 2);
    await closing;
    for (const { process, index } of alive) {
      if (process.clock.timers > 0 || process.gate.listeners > 0) {
        this.#history.fail(
          "residue",
          `client ${index} left ${process.clock.timers} timers and ${process.gate.listeners} listeners`,
        );
      }
    }
    await this.#clock.advance(this.#schedule.maxTtlMs * 2 + queueTtlMs + 25_000);
    this.#checkServers(machines);
  }

  /** Without faults no operation needs more messages. During faults requests are repeated, but never without a pause. */
  #checkMessageCount(clients: readonly Client[]): void {
    if (this.#schedule.nodes.length === 0) {
      return;
    }
    const processes = new Set(clients.map(({ process }) => process));
    const sent = [...processes].reduce((sum, { gate }) => sum + gate.sent, 0) / this.#schedule.nodes.length;
    const { operations, abandonedTtlsMs } = this.#history;
    const maxRepeated = isFaultFree(this.#schedule)
      ? splitVoteMessages(this.#schedule, clients, abandonedTtlsMs)
      : (operations + processes.size) * (this.#clock.now / 1_000) * maxRepeatsPerSecond;
    const maxMessages =
      processes.size * maxRegistrationMessages +
      operations * maxMessagesPerOperation(this.#schedule) +
      maxRepeated;
    if (sent > maxMessages) {
      this.#history.fail(
        "messages",
        `${operations} operations sent ${sent.toFixed(0)} messages to each node, more than ${maxMessages.toFixed(0)}`,
      );
    }
  }

  /**
   * @param clients only the residue of these clients is checked, and an excuse allows residue that expires soon; undefined: no residue may stay
   */
  #checkServers(machines: readonly ServerMachine[], clients?: readonly Client[]): void {
    for (const [node, machine] of machines.entries()) {
      const { server } = machine;
      for (const key of server.keys().filter((name) => !permanentKeys.test(name))) {
        const value = JSON.stringify(server.dump(key));
        const owners = (clients ?? []).filter(({ process }) => value.includes(process.id));
        if (areSharesExpired(server, key, machine.clock.wall()) || (clients && owners.length === 0)) {
          continue;
        }
        const reason = clients ? this.#excuseFor(machine, { node, key, value, owners }) : undefined;
        if (reason === undefined) {
          this.#history.fail("residue", `${server.connect().name} still stores ${key} ${value}`);
        } else {
          this.#history.findings.skip(`residue: ${reason}`);
        }
      }
    }
  }

  /** Why the residue may stay for a while; undefined: it may not. */
  #excuseFor(machine: ServerMachine, residue: Residue): string | undefined {
    const { scenario, steps, maxTtlMs } = this.#schedule;
    const { server, wasSetBack } = machine;
    const { node, key, owners } = residue;
    const isDuplicated = steps.some(
      (step) =>
        step.kind === "duplicate" && step.node === node && owners.some(({ index }) => index === step.client),
    );
    if (isDuplicated) {
      return "a duplicate of a request may have arrived after the release of its client";
    } else if (key.startsWith("holdfast:queue:")) {
      return this.#excuseForQueue(machine, residue);
    } else if (wasSetBack) {
      return "a grant lasts longer on a node whose clock was set back than its client believes";
    }
    const mayMissNotifications = scenario === "storm" || scenario === "lost-notifications";
    return mayMissNotifications && isExpiredMetadata(server, key, maxTtlMs)
      ? "the metadata of a former holder stays until its TTL has passed"
      : undefined;
  }

  #excuseForQueue(
    { clock, wasDown, wasSetBack }: ServerMachine,
    { node, key, value, owners }: Residue,
  ): string | undefined {
    const { steps } = this.#schedule;
    const isAbandoned = steps.some(
      (step) =>
        isUse(step) &&
        (step.ending === "orphan" || typeof step.ending === "object") &&
        key.endsWith(`:${step.key}}`) &&
        owners.some(({ index }) => index === step.client),
    );
    const mayHoldDeadGrant = steps.some((step) => step.kind === "kill client"); // the node then voted for a dead process
    // The request of the former process may arrive after the release of the process that adopted the lease.
    const isLate = steps.some((step) => step.kind === "slow" && step.node === node);
    if (isAbandoned && (wasDown || wasSetBack || mayHoldDeadGrant || isLate)) {
      return "no release removes the queue entry of a lease that was abandoned or transferred";
    }
    if (wasDown && !mayWait(value, clock.wall())) {
      return "an unreachable node keeps the queue entry of a waiter after its deadline";
    }
    return wasSetBack && !mayWait(value, wallStart + this.#clock.now)
      ? "a node whose clock was set back keeps the queue entry of a waiter after its deadline"
      : undefined;
  }

  async #checkMemoryEngine({ locks }: Client): Promise<void> {
    for (const key of keysIn(this.#schedule.steps)) {
      const { holders, waiterCount } = await locks.inspect(key);
      if (holders.length > 0 || waiterCount > 0) {
        this.#history.fail(
          "residue",
          `memory still has ${holders.length} holders and ${waiterCount} waiters of ${key}`,
        );
      }
    }
  }
}

/** Each holder of a shared key has its own expiry. An expired holder stays until the next request, or until the last expiry. */
function areSharesExpired(server: FakeRedis, key: string, wall: number): boolean {
  const stored = server.dump(lockKeyOf(key));
  return stored?.type === "zset" && stored.value.every(([, expiry]) => expiry <= wall);
}

/** If a grant to an unreachable waiter expires, the metadata of the holder before it stays until that holder's TTL has passed. */
function isExpiredMetadata(server: FakeRedis, key: string, maxTtlMs: number): boolean {
  const leftMs = server.dump(key)?.ttlMs ?? 0;
  const endsInTime = leftMs > 0 && leftMs <= maxTtlMs;
  return key.startsWith("holdfast:info:") && !server.keys().includes(lockKeyOf(key)) && endsInTime;
}

function lockKeyOf(key: string): string {
  return key.replace(/^holdfast:info:\{(.*)\}$/, "$1");
}

/** How many messages a process sends until a node knows the process and its notifications arrive. */
const maxRegistrationMessages = 10;
/** How often an operation repeats its request to each node during faults, per second of the schedule, as a mean. */
const maxRepeatsPerSecond = 2;
/**
 * How many messages one call sends to each node. The largest measured averages are 1.14, and 2.14 for contention on a quorum, in 2 700
 * schedules.
 */
function maxMessagesPerOperation({ engine, scenario }: Schedule): number {
  return engine === "quorum" && scenario === "contention" ? 2.5 : 1.5;
}

/**
 * A waiter with some votes repeats its request within a third of the claim time, so that its votes outlast those of a dead rival. The
 * grant of a released lease may be kept for long, too.
 */
function splitVoteMessages(
  { engine, claimMs, steps }: Schedule,
  clients: readonly Client[],
  abandonedTtlsMs: readonly number[],
): number {
  const deadMs = clients.flatMap(({ isDead, uses }) =>
    isDead ? Array.from(uses, ({ ttlMs }) => ttlMs) : [],
  );
  const keptMs = steps.map((step) => (isUse(step) ? (step.minHoldMs ?? 0) : 0));
  const alive = clients.filter(({ isDead }) => !isDead).length;
  const longestMs = Math.max(0, ...deadMs, ...abandonedTtlsMs, ...keptMs);
  return engine === "quorum" ? (alive * longestMs) / (claimMs / 6) : 0;
}

/** Whether a queue has an entry before its deadline. An entry ends with its deadline (0: none) and the kind of its channel. */
function mayWait(queue: string, wall: number): boolean {
  const deadlines = Array.from(queue.matchAll(/ (\d+) [sp]"/g), ([, deadline]) => Number(deadline));
  return deadlines.some((deadline) => deadline === 0 || deadline >= wall);
}
