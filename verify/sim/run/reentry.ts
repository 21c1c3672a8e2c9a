import { isLockError, type Lease } from "holdfast";

import type { Nested } from "../plan/lock-mode.ts";
import type { Client } from "./client.ts";
import type { History } from "../judge/history.ts";
import type { Sharing } from "../judge/holdings.ts";
import type { Judge } from "../judge/judge.ts";
import type { Use } from "../plan/schedule.ts";

const longestMs = 30;

/** Those who hold a reentrant lock enter it again. */
export class Nesting {
  readonly #history: History;
  readonly #judge: Judge;

  constructor(history: History, judge: Judge) {
    this.#history = history;
    this.#judge = judge;
  }

  /** Branches that enter again at the same time, each as deep as is left, inside the `withLock` of `outer`. */
  async within(client: Client, use: Use, outer: Lease, name: string, depth: number): Promise<void> {
    const { branches } = use.as as Nested;
    let inside = 0;
    const enter = async (branch: number): Promise<void> => {
      await this.#again(client, use, outer, name, async (lease) => {
        inside += 1;
        if (inside > 1) {
          this.#history.fail("nesting", `${inside} branches of client ${client.index} are in ${use.key}`);
        }
        await client.pause(Math.min(use.holdMs, longestMs) / (branch + 1));
        if (depth > 1) {
          await this.within(client, use, lease, name, depth - 1);
        }
        inside -= 1;
      });
    };
    await Promise.all(Array.from({ length: depth > 0 ? branches : 0 }, (_, branch) => enter(branch)));
  }

  async #again(
    client: Client,
    use: Use,
    outer: Lease,
    name: string,
    work: (lease: Lease) => Promise<void>,
  ): Promise<void> {
    const { session } = use.as as Nested;
    this.#history.operations += 1;
    try {
      const again = client.locks.reentrant(use.key);
      const options = { waitMs: Infinity, ...(session === undefined ? {} : { session }) };
      await again.withLock(options, async (lease) => {
        this.#entered(client, use, lease, outer, { name });
        await work(lease);
        this.#history.released(lease);
      });
      this.#stillIn(client, outer);
    } catch (error) {
      if (!isLockError(error, "lease-lost")) {
        this.#judge.told(error, []);
      } else if (outer.remainingMs() > 0) {
        this.#history.fail("nesting", `client ${client.index} is told that its hold is lost, and it is not`);
      }
    }
  }

  #entered({ index }: Client, use: Use, lease: Lease, outer: Lease, sharing: Sharing): void {
    if (lease.fencingToken !== outer.fencingToken) {
      this.#history.fail(
        "nesting",
        `client ${index} entered ${outer.fencingToken} again and has ${lease.fencingToken}`,
      );
    }
    void lease.signal; // made when somebody asks for it
    const asking = this.#history.asks({ ...use, kind: "try", client: index }, false);
    this.#history.granted(asking, lease, sharing, true);
    this.#history.answered(asking);
  }

  /** Who left the inner one is in the outer one. */
  #stillIn({ index }: Client, outer: Lease): void {
    if (outer.remainingMs() === 0 && !outer.signal.aborted) {
      this.#history.fail("nesting", `client ${index} left an inner lease, and has no outer one any more`);
    }
  }
}
