import { LeaseLostError, type Lease, type SerializedLease, type WriteLease } from "holdfast";

import { weightOf } from "../plan/lock-mode.ts";
import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import { workFailure, type CallJudge } from "../judge/judge.ts";
import { ReentrantUse } from "./reentry.ts";
import { slowestClockFactor } from "../judge/patience.ts";
import { LeaseRelease } from "./releasing.ts";
import type { Transfer, Use } from "../plan/schedule.ts";
import type { Fault } from "../plan/faults.ts";
import type { AcquireSpecs } from "../plan/acquire-options.ts";

const done = "the work is done";

/** Uses the leases of callers: holds, extends, downgrades, transfers and releases the leases. */
export class LeaseUse {
  readonly #history: History;
  readonly #judge: CallJudge;
  readonly #clients: readonly Client[];
  readonly #trace: (line: string) => void;
  readonly #inject: (fault: Fault) => void;
  readonly #releases: LeaseRelease;
  readonly #reentrantUse: ReentrantUse;

  constructor(
    history: History,
    judge: CallJudge,
    acquireSpecs: AcquireSpecs,
    clients: readonly Client[],
    trace: (line: string) => void,
    inject: (fault: Fault) => void,
  ) {
    this.#history = history;
    this.#judge = judge;
    this.#clients = clients;
    this.#trace = trace;
    this.#inject = inject;
    this.#releases = new LeaseRelease(history, judge, acquireSpecs, trace);
    this.#reentrantUse = new ReentrantUse(history, judge);
  }

  async useLease(client: Client, use: Use, granted: Lease): Promise<void> {
    const { ending, mode } = use;
    const downgrades = mode?.kind === "writer" && mode.downgradeAtMs !== undefined;
    const lease = downgrades ? await this.#downgrade(client, use, granted as WriteLease) : granted;
    if (!lease) {
      return;
    }
    await this.#holdFor(client, use, lease);
    if (ending === "orphan") {
      lease.orphan();
      // A lease that was handed over in memory has the TTL of its earlier holder.
      const mostMs = client.handover ? client.longestTtlMs : use.ttlMs;
      this.#history.handedOn(client.index, lease, mostMs * slowestClockFactor);
      this.#trace(`client ${client.index} leaves ${lease.fencingToken} to expire`);
    } else if (typeof ending === "object" && lease.remainingMs() > 0) {
      await this.#transfer(client, use, lease, ending);
    } else {
      await this.#releases.release(client, lease, false);
      await this.#keepFor(client, lease, use.minHoldMs);
    }
  }

  /** The engine keeps the grant of the released lease until its shortest hold has passed. */
  async #keepFor(client: Client, lease: Lease, minHoldMs: number | undefined): Promise<void> {
    if (minHoldMs !== undefined) {
      this.#history.operations += 1; // the grant is extended first, and released later
      if (await lease.release().catch(() => false)) {
        this.#history.kept(lease, minHoldMs);
      }
      await client.pause(minHoldMs);
    }
  }

  /** The callback of a `withLock`. */
  async runCallback(client: Client, use: Use, lease: Lease, reentrantUse = ""): Promise<string> {
    if (use.mode?.kind === "nested") {
      await this.#reentrantUse.runNested(client, use, lease, reentrantUse, use.mode.depth);
    }
    await this.#holdFor(client, use, lease);
    this.#trace(`client ${client.index} ends its work under ${lease.fencingToken}`);
    this.#history.operations += 1;
    if (lease.remainingMs() === 0) {
      this.#history.failUnlessFaulty(
        "release",
        `client ${client.index} lost ${lease.fencingToken} during its callback`,
      );
    }
    this.#history.released(lease);
    if (use.ending === "throw") {
      throw workFailure;
    }
    return done;
  }

  /** A `withLock` returned. */
  checkResult({ ending, waitMs }: Use, value: unknown): void {
    const { ran, value: result } = (waitMs === 0 ? value : { ran: true, value }) as {
      ran: boolean;
      value?: unknown;
    };
    if (ending === "throw" ? ran : ran && result !== done) {
      this.#history.fail("release", `withLock returned ${String(result)}, which its callback did not return`);
    }
  }

  /** @returns whether a `withLock` may have failed with this error: the callback had returned, and the lease was lost */
  checkLoss({ ending }: Use, error: LeaseLostError): boolean {
    if (ending !== "throw" && error.result === done) {
      this.#history.failUnlessFaulty("release", String(error));
      return true;
    }
    return false;
  }

  /** @returns undefined: the lease was lost */
  async #downgrade(client: Client, use: Use, writer: WriteLease): Promise<Lease | undefined> {
    await client.pause((use.mode as { downgradeAtMs: number }).downgradeAtMs);
    this.#history.operations += 1;
    const leftMs = writer.remainingMs();
    this.#trace(`client ${client.index} lets readers in beside ${writer.fencingToken}`);
    this.#history.startsDowngrade(writer);
    try {
      const lease = await writer.downgrade();
      void lease.signal; // the lease creates its signal at the first access
      this.#history.downgraded(client.index, lease, writer);
      return lease;
    } catch (error) {
      if (leftMs > 0) {
        this.#history.failUnlessFaulty(
          "release",
          `client ${client.index} lost ${writer.fencingToken} during its downgrade`,
        );
      }
      this.#judge.errorReported(error, ["lease-lost"]);
      await writer.release().catch(() => false); // as a program does in `finally`: nothing else removes a queue entry on a node without its grant
      return undefined;
    } finally {
      this.#history.endsDowngrade(writer);
    }
  }

  async #holdFor(client: Client, use: Use, lease: Lease): Promise<void> {
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
        this.#history.fail(
          "loss",
          `an extension reports ${lease.fencingToken} as lost, but the lease has remaining time`,
        );
      }
      this.#judge.errorReported(error, []);
    }
  }

  async #transfer(client: Client, use: Use, lease: Lease, transfer: Transfer): Promise<void> {
    const { fencingToken, key } = lease;
    const recipient = this.#clients[transfer.transferTo];
    const leftMs = lease.remainingMs();
    this.#trace(`client ${client.index} gives ${fencingToken} to ${recipient?.index}`);
    this.#history.released(lease);
    const mostMs = Math.max(leftMs, use.ttlMs); // an extension of the claim may be in flight
    this.#history.handedOn(client.index, lease, mostMs * slowestClockFactor);
    const serialized = JSON.stringify(lease.transfer());
    this.#releases.checkUnusable(lease);
    if (await lease.release()) {
      this.#history.fail("release", `the release of ${fencingToken} returned true after its transfer`);
    }
    if (recipient && !recipient.isDead) {
      recipient.process.gate.pass(() => {
        void this.#adopt(recipient, use, JSON.parse(serialized) as SerializedLease, transfer);
      });
    } else {
      this.#trace(`no process adopts ${key} ${fencingToken}`);
      this.#history.leaseAbandoned(use.ttlMs);
    }
    if (transfer.pausesForMs !== undefined) {
      this.#inject({
        kind: "freeze client",
        client: client.index,
        forMs: transfer.pausesForMs,
        sleeps: false,
      });
    }
  }

  async #adopt(
    recipient: Client,
    use: Use,
    serialized: SerializedLease,
    { holdMs = use.holdMs / 2 }: Transfer,
  ): Promise<void> {
    const transferredToken = BigInt(serialized.fencingToken);
    const rest: Use = { ...use, client: recipient.index, holdMs };
    recipient.uses.add(rest);
    this.#history.operations += 1;
    try {
      const lease = await recipient.locks.adopt(serialized, { renew: use.renew });
      void lease.signal; // the lease creates its signal at the first access
      const bounds = { weight: weightOf(use.mode), ttlMs: use.ttlMs };
      this.#history.adopted(recipient.index, lease, transferredToken, bounds);
      await recipient.pause(rest.holdMs);
      // The remaining time at the first majority of replies may be short, and without renewal nothing extends the lease.
      await this.#releases.release(recipient, lease, !use.renew);
    } catch (error) {
      this.#history.leaseAbandoned(use.ttlMs);
      // A client may not know enough nodes yet at its first request.
      this.#judge.errorReported(
        error,
        this.#history.isRegistered(recipient.index) ? [] : ["quorum-not-reached"],
      );
    } finally {
      recipient.uses.delete(rest);
    }
  }
}
