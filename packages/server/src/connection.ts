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
    connection.onEnd(() => {
      this.#open.delete(connection);
      for (const report of Array.from(this.#awaiting)) {
        report();
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
  #closedSignal: AbortController | undefined;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  /**
   * Aborted when the client goes away before its answer is complete, or the answer is to be completed. Made when somebody asks: what is
   * answered at once ends without.
   */
  get closed(): AbortSignal {
    if (!this.#closedSignal) {
      const over = new AbortController();
      this.#closedSignal = over;
      this.onUndelivered(() => {
        over.abort(new ClientDisconnected());
      });
    }
    return this.#closedSignal.signal;
  }

  /** What is going on for the client is to end. */
  end(reason: unknown): void {
    this.#closedSignal?.abort(reason);
  }

  /** Calls back once, if the answer does not go out whole. */
  onUndelivered(action: () => void): void {
    this.onEnd((isDelivered) => {
      if (!isDelivered) {
        action();
      }
    });
  }

  /** Of requests that were sent before the answer to an earlier one, only the connection tells that they are over. */
  onEnd(action: (isDelivered: boolean) => void): void {
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
      forget = onDisconnect(socket, end);
    }
  }
}

const closeListeners = new WeakMap<Socket, Set<() => void>>();

/** One listener on a connection serves all its requests. Returns the removal. */
function onDisconnect(socket: Socket, action: () => void): () => void {
  let listeners = closeListeners.get(socket);
  if (!listeners) {
    const all = new Set<() => void>();
    listeners = all;
    closeListeners.set(socket, all);
    socket.once("close", () => {
      for (const one of Array.from(all)) {
        one();
      }
    });
  }
  const own = listeners.add(action);
  return () => {
    own.delete(action);
  };
}

/** Nobody is there to be answered. */
export class ClientDisconnected extends Error {
  constructor() {
    super("The client has gone");
  }
}
