import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The requests that are open, so that a service that is about to end can end them. */
export class Connections {
  readonly #open = new Set<Connection>();
  readonly #awaiting = new Set<() => void>();

  /** @param outgoing the answer that the client waits for */
  open(outgoing: ServerResponse): Connection {
    const connection = new Connection(outgoing);
    this.#open.add(connection);
    connection.atEnd(() => {
      this.#open.delete(connection);
      for (const tell of Array.from(this.#awaiting)) {
        tell();
      }
    });
    return connection;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Resolves when one has ended, or `limitMs` have passed. */
  changed(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#awaiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, limitMs);
      this.#awaiting.add(end);
    });
  }

  endAll(reason: unknown): void {
    for (const connection of Array.from(this.#open)) {
      connection.end(reason);
    }
  }
}

/** The client's end of one request: whether it is still there, and whether the answer went out. */
export class Connection {
  readonly #outgoing: ServerResponse;
  #over: AbortController | undefined;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  /**
   * Aborted when the client goes away before its answer is complete, or the answer is to be completed. Made when somebody asks: what is
   * answered at once ends without.
   */
  get over(): AbortSignal {
    if (!this.#over) {
      const over = new AbortController();
      this.#over = over;
      this.ifUndelivered(() => {
        over.abort(new ClientGone());
      });
    }
    return this.#over.signal;
  }

  /** What is going on for the client is to end. */
  end(reason: unknown): void {
    this.#over?.abort(reason);
  }

  /** Calls back once, if the answer does not go out whole. */
  ifUndelivered(action: () => void): void {
    this.atEnd((isDelivered) => {
      if (!isDelivered) {
        action();
      }
    });
  }

  /** Of requests that were sent before the answer to an earlier one, only the connection tells that they are over. */
  atEnd(action: (isDelivered: boolean) => void): void {
    const outgoing = this.#outgoing;
    const { socket } = outgoing.req;
    let forget = (): void => undefined;
    const end = (): void => {
      outgoing.off("close", end);
      forget();
      action(outgoing.writableFinished);
    };
    if (outgoing.closed || outgoing.destroyed || socket.destroyed) {
      action(outgoing.writableFinished);
    } else {
      outgoing.once("close", end);
      forget = whenClosed(socket, end);
    }
  }
}

const audiences = new WeakMap<Socket, Set<() => void>>();

/** One listener on a connection serves all its requests. Returns the removal. */
function whenClosed(socket: Socket, action: () => void): () => void {
  let audience = audiences.get(socket);
  if (!audience) {
    const all = new Set<() => void>();
    audience = all;
    audiences.set(socket, all);
    socket.once("close", () => {
      for (const one of Array.from(all)) {
        one();
      }
    });
  }
  const own = audience.add(action);
  return () => {
    own.delete(action);
  };
}

/** Nobody is there to be answered. */
export class ClientGone extends Error {
  constructor() {
    super("The client has gone");
  }
}
