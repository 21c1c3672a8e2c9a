import { join } from "node:path";

import { HistoryFile, type ClientRecord, type Instant } from "../../chaos/judge/history.ts";
import { WorkerProcess, type WorkerCommand } from "./worker-process.ts";

/** `ours` is Holdfast. */
export type Side = "ours" | "theirs";

export interface Grant {
  readonly at: Instant;
  readonly validUntil: Instant;
}

export interface Release {
  /** When the library was called. */
  readonly sentAt: Instant;
  readonly wasHeld: boolean;
}

/**
 * If a library reports no validity, its holder may rely on this part of the TTL after the call returned. The rest covers the reply of the
 * server.
 */
const usablePart = 0.9;

/** A worker whose requests are recorded as the history of a client of the chaos checker. */
export class Participant {
  static #lastForeignToken = 0n;
  readonly name: string;
  readonly side: Side;
  readonly worker: WorkerProcess;
  readonly #history: HistoryFile<ClientRecord>;
  #requestId = 0;
  #validUntil = 0;
  turns = 0;
  readonly errors: string[] = [];

  private constructor(name: string, side: Side, worker: WorkerProcess, folder: string) {
    this.name = name;
    this.side = side;
    this.worker = worker;
    this.#history = new HistoryFile(join(folder, "history", `client-${name}.ndjson`));
    this.#history.write({ e: "opened", at: 0, pid: 0, handover: false });
  }

  static async start(name: string, side: Side, command: WorkerCommand, folder: string): Promise<Participant> {
    return new Participant(name, side, await WorkerProcess.start(command), folder);
  }

  /** Loads the classes and scripts of the library, which may keep this TTL for later locks. */
  async warmUp(ttlMs: number): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) {
      if (await this.acquire(`warm-${this.name}`, ttlMs, 5_000)) {
        await this.release();
      }
    }
  }

  /** @returns null if the wait ended, or if the library reported an error, which is recorded in `errors` */
  async acquire(key: string, ttlMs: number, waitMs: number): Promise<Grant | null> {
    const [reply, sent, at, valid, token, ...rest] = await this.worker.request(
      `acquire ${key} ${ttlMs} ${waitMs}`,
    );
    if (reply === "error") {
      this.errors.push([valid, token, ...rest].join(" "));
    }
    if (reply !== "granted") {
      return null;
    }
    const grantedAt = Number(at);
    this.#validUntil = valid === "-" ? grantedAt + ttlMs * usablePart : Number(valid);
    this.#requestId += 1;
    const requestId = this.#requestId;
    this.#history.write({ e: "requested", at: Number(sent), requestId, key, kind: "acquire", waitMs });
    this.#history.write({
      e: "granted",
      at: grantedAt,
      requestId,
      token: token === undefined || token === "-" ? Participant.#foreignToken() : token,
      validUntil: this.#validUntil,
    });
    this.turns += 1;
    return { at: grantedAt, validUntil: this.#validUntil };
  }

  /** Each grant without a fencing token has a unique negative number in the history. */
  static #foreignToken(): string {
    Participant.#lastForeignToken -= 1n;
    return String(Participant.#lastForeignToken);
  }

  async release(): Promise<Release> {
    const [reply, sent, at, wasHeld, ...rest] = await this.worker.request("release");
    const requestId = this.#requestId;
    if (reply === "error") {
      this.errors.push([wasHeld, ...rest].join(" "));
    }
    const sentAt = Number(sent);
    this.#history.write({ e: "releasing", at: sentAt, requestId, validUntil: this.#validUntil });
    this.#history.write({ e: "released", at: Number(at), requestId, answer: String(wasHeld) });
    return { sentAt, wasHeld: reply === "released" && wasHeld === "true" };
  }

  /** @returns whether the library reports that the lock is held; undefined: the library has no extension */
  async extend(ttlMs: number): Promise<boolean | undefined> {
    const [reply] = await this.worker.request(`extend ${ttlMs}`);
    return reply === "unsupported" ? undefined : reply === "extended";
  }
}
