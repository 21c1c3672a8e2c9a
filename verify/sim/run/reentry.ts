import { isLockError, type Lease } from "holdfast";

import type { Nested } from "../plan/lock-mode.ts";
import type { Client } from "./client.ts";
import { wasNotified } from "../judge/losses.ts";
import type { History } from "../judge/history.ts";
import type { CallJudge } from "../judge/judge.ts";
import type { SharedGroup } from "../judge/leases.ts";
import type { Use } from "../plan/schedule.ts";

const longestMs = 30;

/** Enters a reentrant lock again inside its hold. */
export class ReentrantUse {
  readonly #history: History;
  readonly #judge: CallJudge;

  constructor(history: History, judge: CallJudge) {
    this.#history = history;
    this.#judge = judge;
  }

  /** Enters in several branches at the same time, each up to the remaining depth, inside the `withLock` of `outer`. */
  async runNested(client: Client, use: Use, outer: Lease, name: string, depth: number): Promise<void> {
    const { branches } = use.mode as Nested;
    let inside = 0;
    const enter = async (branch: number): Promise<void> => {
      await this.#enterAgain(client, use, outer, name, async (lease) => {
        inside += 1;
        if (inside > 1) {
          this.#history.fail(
            "reentry",
            `${inside} branches of client ${client.index} hold ${use.key} at the same time`,
          );
        }
        await client.pause(Math.min(use.holdMs, longestMs) / (branch + 1));
        if (depth > 1) {
          await this.runNested(client, use, lease, name, depth - 1);
        }
        inside -= 1;
      });
    };
    await Promise.all(Array.from({ length: depth > 0 ? branches : 0 }, (_, branch) => enter(branch)));
  }

  async #enterAgain(
    client: Client,
    use: Use,
    outer: Lease,
    name: string,
    work: (lease: Lease) => Promise<void>,
  ): Promise<void> {
    const { session } = use.mode as Nested;
    this.#history.operations += 1;
    try {
      const again = client.locks.reentrant(use.key);
      const options = { waitMs: Infinity, ...(session === undefined ? {} : { session }) };
      await again.withLock(options, async (lease) => {
        this.#recordEntry(client, use, lease, outer, { name });
        await work(lease);
        this.#history.released(lease);
      });
      this.#checkStillHeld(client, outer);
    } catch (error) {
      if (!isLockError(error, "lease-lost")) {
        this.#judge.errorReported(error, []);
      } else if (outer.remainingMs() > 0) {
        this.#history.fail(
          "reentry",
          `client ${client.index} got lease-lost, but its hold has remaining time`,
        );
      }
    }
  }

  #recordEntry({ index }: Client, use: Use, lease: Lease, outer: Lease, sharedGroup: SharedGroup): void {
    if (lease.fencingToken !== outer.fencingToken) {
      this.#history.fail(
        "reentry",
        `client ${index} entered ${outer.fencingToken} again and got ${lease.fencingToken}`,
      );
    }
    void lease.signal; // the lease creates its signal at the first access
    const request = this.#history.requestStarted({ ...use, kind: "try", client: index }, false);
    this.#history.granted(request, lease, sharedGroup, true);
    this.#history.requestSettled(request);
  }

  /** The release of an inner lease keeps the outer lease. */
  #checkStillHeld({ index }: Client, outer: Lease): void {
    if (outer.remainingMs() === 0 && !wasNotified(outer)) {
      this.#history.fail(
        "reentry",
        `client ${index} lost its outer lease with the release of an inner lease`,
      );
    }
  }
}
