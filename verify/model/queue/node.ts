import { bitOf, flags, notHolder, phases } from "./fields.ts";
import type { StateLayout } from "./state-layout.ts";
import type { QueueSettings } from "./settings.ts";

/** The operations of a node, as in its scripts. */
export class NodeRules {
  /** The candidate number of the operation's client. */
  proposal: number = 1;
  readonly #layout: StateLayout;
  readonly #settings: QueueSettings;

  constructor(layout: StateLayout, settings: QueueSettings) {
    this.#layout = layout;
    this.#settings = settings;
  }

  acquire(a: number, n: number): void {
    const layout = this.#layout;
    const holder = layout.holder(n);
    if (holder === 0) {
      this.#acquireFree(a, n);
    } else if (holder === a + 1) {
      layout.dequeue(n, a);
      this.#notifyGrant(a, n);
    } else {
      this.#inquire(a, n, holder - 1);
      layout.enqueue(n, a);
    }
  }

  /** Yields the vote with the number y, and no other. */
  yield(a: number, n: number): void {
    const layout = this.#layout;
    const isSameGrant =
      layout.fence(n) === layout.yielded(a, n) || this.#settings.mutant === "yield-without-number";
    if (layout.holder(n) === a + 1 && isSameGrant) {
      this.#acquireFree(a, n);
    } else {
      this.acquire(a, n);
    }
  }

  /** Releases a grant, or removes a waiter from the queue. If the node is free then, it grants to the first waiter. */
  release(a: number, n: number): void {
    const layout = this.#layout;
    const holder = layout.holder(n);
    layout.dequeue(n, a);
    if (holder === a + 1 || holder === 0 || this.#settings.mutant === "release-without-comparing") {
      this.#grantNext(n);
    }
  }

  /** Raises the number of the attempt's grant, and replies with the resulting number. */
  raiseFence(a: number, n: number): void {
    const layout = this.#layout;
    if (layout.holder(n) !== a + 1) {
      layout.setReply(a, n, notHolder);
      return;
    }
    layout.setFence(n, Math.max(layout.fence(n), layout.proposed(a)));
    layout.setReply(a, n, layout.fence(n));
  }

  /** Extends a grant, but never creates one. If the node is free, it grants to the first waiter. */
  extend(a: number, n: number): void {
    const layout = this.#layout;
    if (layout.holder(n) === 0) {
      if (this.#settings.mutant === "extend-re-creates") {
        layout.setHolder(n, a + 1);
      } else {
        this.#grantNext(n);
      }
    }
  }

  /** Grants to a holder again on a node that lost its grant, unless another attempt holds the vote or waits for it there. */
  refill(a: number, n: number): void {
    const layout = this.#layout;
    const holder = layout.holder(n);
    if (holder !== 0 && holder !== a + 1) {
      return;
    }
    layout.dequeue(n, a);
    if (holder === 0 && layout.queue(n) !== 0) {
      this.#grantNext(n);
    } else if (holder === 0) {
      this.#acquireFree(a, n);
    } else {
      this.#notifyGrant(a, n);
    }
  }

  /** Ends the current grant, and grants to the first waiter. */
  grantNextWaiter(n: number): void {
    this.#grantNext(n);
  }

  /** Adds the attempt to the queue, and grants to the first waiter. */
  #acquireFree(a: number, n: number): void {
    this.#layout.enqueue(n, a);
    this.#grantNext(n);
  }

  #grantNext(n: number): void {
    const layout = this.#layout;
    layout.setHolder(n, 0);
    for (let a = 0; a < layout.attempts; a += 1) {
      if ((layout.queue(n) & (1 << a)) !== 0) {
        layout.dequeue(n, a);
        if (layout.phase(a) !== phases.dead) {
          layout.setFence(n, Math.max(layout.fence(n) + 1, this.proposal));
          layout.setHolder(n, a + 1);
          this.#notifyGrant(a, n);
          return;
        }
      }
    }
  }

  #notifyGrant(a: number, n: number): void {
    const layout = this.#layout;
    layout.setGrants(a, n, layout.grants(a, n) | bitOf(layout.fence(n)));
  }

  /** Sends an inquiry to a holder with a later ticket. */
  #inquire(a: number, n: number, holder: number): void {
    const layout = this.#layout;
    const { equalTickets, mutant } = this.#settings;
    const precedes = a < holder && !(equalTickets && mutant === "no-tie-break");
    if (precedes && layout.phase(holder) !== phases.dead) {
      layout.setInquiries(holder, n, layout.inquiries(holder, n) | bitOf(layout.fence(n)));
    }
  }

  /** Executes a request in transit. */
  execute(a: number, n: number, request: number): void {
    if (request === flags.acquire) {
      this.acquire(a, n);
    } else if (request === flags.yield) {
      this.yield(a, n);
    } else if (request === flags.release) {
      this.release(a, n);
    } else if (request === flags.extend) {
      this.extend(a, n);
    } else if (request === flags.refill) {
      this.refill(a, n);
    } else {
      this.raiseFence(a, n);
    }
  }
}
