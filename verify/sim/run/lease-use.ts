import { LeaseLostError, type Lease, type SerializedLease, type WriteLease } from "holdfast";

import { weightOf } from "../plan/lock-mode.ts";
import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import { workFailure, type Judge } from "../judge/judge.ts";
import { Nesting } from "./reentry.ts";
import { slowly } from "../judge/patience.ts";
import { Releasing } from "./releasing.ts";
import type { Use } from "../plan/schedule.ts";
import type { Wants } from "../plan/acquire-options.ts";

const done = "the work is done";

/** What callers do with the leases that they have. */
export class Keeping {
  readonly #history: History;
  readonly #judge: Judge;
  readonly #clients: readonly Client[];
  readonly #trace: (line: string) => void;
  readonly #releasing: Releasing;
  readonly #nesting: Nesting;

  constructor(
    history: History,
    judge: Judge,
    wants: Wants,
    clients: readonly Client[],
    trace: (line: string) => void,
  ) {
    this.#history = history;
    this.#judge = judge;
    this.#clients = clients;
    this.#trace = trace;
    this.#releasing = new Releasing(history, judge, wants, trace);
    this.#nesting = new Nesting(history, judge);
  }

  async keep(client: Client, use: Use, granted: Lease): Promise<void> {
    const { ending, as } = use;
    const isLetIn = as?.kind === "writer" && as.downgradeAtMs !== undefined;
    const lease = isLetIn ? await this.#downgrade(client, use, granted as WriteLease) : granted;
    if (!lease) {
      return;
    }
    await this.#hold(client, use, lease);
    if (ending === "orphan") {
      lease.orphan();
      // What was handed over in memory lasts as long as whoever had it before had asked for.
      this.#history.taken(lease, (client.handover ? client.longestTtlMs : use.ttlMs) * slowly);
      this.#trace(`client ${client.index} leaves ${lease.fencingToken} to expire`);
    } else if (typeof ending === "object" && lease.remainingMs() > 0) {
      await this.#pass(client, use, lease, this.#clients[ending.passTo]);
    } else {
      await this.#releasing.release(client, lease, false);
    }
  }

  /** What a `withLock` does. */
  async work(client: Client, use: Use, lease: Lease, nest = ""): Promise<string> {
    if (use.as?.kind === "nested") {
      await this.#nesting.within(client, use, lease, nest, use.as.depth);
    }
    await this.#hold(client, use, lease);
    this.#trace(`client ${client.index} ends its work under ${lease.fencingToken}`);
    this.#history.operations += 1;
    if (lease.remainingMs() === 0) {
      this.#history.complain("release", `client ${client.index} lost ${lease.fencingToken} at work`);
    }
    this.#history.released(lease);
    if (use.ending === "throw") {
      throw workFailure;
    }
    return done;
  }

  /** A `withLock` answered. */
  didWork({ ending, waitMs }: Use, value: unknown): void {
    const { ran, value: result } = (waitMs === 0 ? value : { ran: true, value }) as {
      ran: boolean;
      value?: unknown;
    };
    if (ending === "throw" ? ran : ran && result !== done) {
      this.#history.fail("release", `the work under a lock came to ${String(result)}`);
    }
  }

  /** @returns whether a `withLock` may have ended so: the work is done, and its lease was lost */
  didLose({ ending }: Use, error: LeaseLostError): boolean {
    if (ending !== "throw" && error.result === done) {
      this.#history.complain("release", String(error));
      return true;
    }
    return false;
  }

  /** Lets readers in. @returns undefined: it was lost */
  async #downgrade(client: Client, use: Use, writer: WriteLease): Promise<Lease | undefined> {
    await client.pause((use.as as { downgradeAtMs: number }).downgradeAtMs);
    this.#history.operations += 1;
    const leftMs = writer.remainingMs();
    this.#trace(`client ${client.index} lets readers in beside ${writer.fencingToken}`);
    this.#history.startsDowngrade(writer);
    try {
      const lease = await writer.downgrade();
      void lease.signal; // made when somebody asks for it
      this.#history.downgraded(client.index, lease, writer);
      return lease;
    } catch (error) {
      if (leftMs > 0) {
        this.#history.complain(
          "release",
          `client ${client.index} lost ${writer.fencingToken} in its downgrade`,
        );
      }
      this.#judge.told(error, ["lease-lost"]);
      return undefined;
    } finally {
      this.#history.endsDowngrade(writer);
    }
  }

  async #hold(client: Client, use: Use, lease: Lease): Promise<void> {
    const { holdMs, extendAtMs } = use;
    if (extendAtMs !== undefined) {
      await client.pause(extendAtMs);
      await this.#extend(lease, use.ttlMs);
    }
    await client.pause(holdMs - (extendAtMs ?? 0));
  }

  async #extend(lease: Lease, ttlMs: number): Promise<void> {
    this.#history.operations += 1;
    try {
      await lease.extend(ttlMs);
    } catch (error) {
      if (error instanceof LeaseLostError && lease.remainingMs() > 0) {
        this.#history.fail("loss", `${lease.fencingToken} is told to be lost and has time left`);
      }
      this.#judge.told(error, []);
    }
  }

  async #pass(client: Client, use: Use, lease: Lease, heir: Client | undefined): Promise<void> {
    const { fencingToken, key } = lease;
    const leftMs = lease.remainingMs();
    this.#trace(`client ${client.index} gives ${fencingToken} to ${heir?.index}`);
    this.#history.transferred(lease, Math.max(leftMs, use.ttlMs) * slowly); // a claim is being prolonged
    const serialized = JSON.stringify(lease.transfer());
    this.#releasing.isOver(lease);
    if (await lease.release()) {
      this.#history.fail("release", `${fencingToken} was given away, and its release says it was not`);
    }
    if (heir && !heir.isDead) {
      heir.process.gate.pass(() => {
        void this.#adopt(heir, use, JSON.parse(serialized) as SerializedLease);
      });
    } else {
      this.#trace(`nobody adopts ${key} ${fencingToken}`);
    }
  }

  async #adopt(heir: Client, use: Use, serialized: SerializedLease): Promise<void> {
    const given = BigInt(serialized.fencingToken);
    const rest: Use = { ...use, client: heir.index, holdMs: use.holdMs / 2 };
    heir.uses.add(rest);
    this.#history.operations += 1;
    try {
      const lease = await heir.locks.adopt(serialized, { renew: use.renew });
      void lease.signal; // made when somebody asks for it
      const terms = { weight: weightOf(use.as), ttlMs: use.ttlMs };
      this.#history.adopted(heir.index, lease, given, terms);
      await heir.pause(rest.holdMs);
      // What a majority of those who answered first has left may be short, and nothing prolongs it.
      await this.#releasing.release(heir, lease, !use.renew);
    } catch (error) {
      this.#history.abandoned(use.ttlMs);
      // Whose first request it is may not know enough nodes yet.
      this.#judge.told(error, this.#history.isAcquainted(heir.index) ? [] : ["quorum-not-reached"]);
    } finally {
      heir.uses.delete(rest);
    }
  }
}
