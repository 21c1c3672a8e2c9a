import { bitOf, flags, notOurs, phases, type Board } from "./board.ts";
import type { TurnsSettings } from "./settings.ts";

/** What a node does at once, as its scripts do. */
export class NodeRules {
  /** The number that the client of this operation would like the node to give. */
  candidate: number = 1;
  readonly #board: Board;
  readonly #settings: TurnsSettings;

  constructor(board: Board, settings: TurnsSettings) {
    this.#board = board;
    this.#settings = settings;
  }

  acquire(a: number, n: number): void {
    const board = this.#board;
    const holder = board.holder(n);
    if (holder === 0) {
      this.#takeTurn(a, n);
    } else if (holder === a + 1) {
      board.dequeue(n, a);
      this.#tellGrant(a, n);
    } else {
      this.#inquire(a, n, holder - 1);
      board.enqueue(n, a);
    }
  }

  /** Gives up the vote with the number y, and only that. */
  yield(a: number, n: number): void {
    const board = this.#board;
    const isTheSame =
      board.number(n) === board.yielded(a, n) || this.#settings.mutant === "yield-without-number";
    if (board.holder(n) === a + 1 && isTheSame) {
      this.#takeTurn(a, n);
    } else {
      this.acquire(a, n);
    }
  }

  /** Also of who only waits: leaves the queue. A node that is found free serves the first in its queue. */
  release(a: number, n: number): void {
    const board = this.#board;
    const holder = board.holder(n);
    board.dequeue(n, a);
    if (holder === a + 1 || holder === 0 || this.#settings.mutant === "release-without-comparing") {
      this.#grantNext(n);
    }
  }

  /** Raises the number of the attempt's grant, and answers what it is now. */
  agree(a: number, n: number): void {
    const board = this.#board;
    if (board.holder(n) !== a + 1) {
      board.setAnswer(a, n, notOurs);
      return;
    }
    board.setNumber(n, Math.max(board.number(n), board.proposed(a)));
    board.setAnswer(a, n, board.number(n));
  }

  /** Never a grant where there is none; a node that is found free serves the first in its queue. */
  extend(a: number, n: number): void {
    const board = this.#board;
    if (board.holder(n) === 0) {
      if (this.#settings.mutant === "extend-re-creates") {
        board.setHolder(n, a + 1);
      } else {
        this.#grantNext(n);
      }
    }
  }

  /** A node without the grant has it again, unless another has or waits for the vote there. */
  refill(a: number, n: number): void {
    const board = this.#board;
    const holder = board.holder(n);
    if (holder !== 0 && holder !== a + 1) {
      return;
    }
    board.dequeue(n, a);
    if (holder === 0 && board.queue(n) !== 0) {
      this.#grantNext(n);
    } else if (holder === 0) {
      this.#takeTurn(a, n);
    } else {
      this.#tellGrant(a, n);
    }
  }

  /** Whoever has the vote has it no more: it is the first's in the queue. */
  serve(n: number): void {
    this.#grantNext(n);
  }

  /** A place in the queue, and the vote to whoever stands first. */
  #takeTurn(a: number, n: number): void {
    this.#board.enqueue(n, a);
    this.#grantNext(n);
  }

  #grantNext(n: number): void {
    const board = this.#board;
    board.setHolder(n, 0);
    for (let a = 0; a < board.attempts; a += 1) {
      if ((board.queue(n) & (1 << a)) !== 0) {
        board.dequeue(n, a);
        if (board.phase(a) !== phases.dead) {
          board.setNumber(n, Math.max(board.number(n) + 1, this.candidate));
          board.setHolder(n, a + 1);
          this.#tellGrant(a, n);
          return;
        }
      }
    }
  }

  #tellGrant(a: number, n: number): void {
    const board = this.#board;
    board.setGrants(a, n, board.grants(a, n) | bitOf(board.number(n)));
  }

  /** Who has the vote although it came later is asked to give it back. */
  #inquire(a: number, n: number, holder: number): void {
    const board = this.#board;
    const { equalTickets, mutant } = this.#settings;
    const precedes = a < holder && !(equalTickets && mutant === "no-tie-break");
    if (precedes && board.phase(holder) !== phases.dead) {
      board.setInquiries(holder, n, board.inquiries(holder, n) | bitOf(board.number(n)));
    }
  }

  /** Executes a request that is under way. */
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
      this.agree(a, n);
    }
  }
}
