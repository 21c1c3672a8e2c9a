import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

import type { Context } from "hono";

import type { RouteEnv } from "./context.ts";
import { assertCurrent, type Principal } from "./principal.ts";

/** The open requests. A service ends them before it stops. */
export class Connections {
  readonly #open = new Set<Connection>();
  readonly #awaiting = new Set<() => void>();

  /**
   * The connection of a request, until its response has ended.
   * @throws {ServiceError} `unauthenticated` for a token that was revoked since the request began
   */
  open(c: Context<RouteEnv>): Connection {
    assertCurrent(c.var.principal);
    const connection = new Connection(c.env.outgoing, c.var.principal);
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

  /** Resolves when a request has ended, or `limitMs` have passed. */
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

  /**
   * Ends the work for the open requests of some principals.
   * @returns how many
   */
  endOf(isMeant: (principal: Principal) => boolean, reason: unknown): number {
    const meant = Array.from(this.#open).filter(({ principal }) => isMeant(principal));
    for (const connection of meant) {
      connection.end(reason);
    }
    return meant.length;
  }
}

/** The connection of one request: whether the client is connected, and whether the response was sent. */
export class Connection {
  readonly principal: Principal;
  readonly #outgoing: ServerResponse;
  #closedSignal: AbortController | undefined;

  /** @param outgoing the response to the client */
  constructor(outgoing: ServerResponse, principal: Principal) {
    this.#outgoing = outgoing;
    this.principal = principal;
  }

  /**
   * Aborted when the client disconnects before the response is complete, or when `end` is called. The signal is created at its first use,
   * because most requests need no signal.
   */
  get closed(): AbortSignal {
    return this.#over().signal;
  }

  /** Ends the work for this request, with a reason. */
  end(reason: unknown): void {
    this.#over().abort(reason);
  }

  #over(): AbortController {
    if (!this.#closedSignal) {
      const over = new AbortController();
      this.#closedSignal = over;
      this.onUndelivered(() => {
        over.abort(new ClientDisconnected());
      });
    }
    return this.#closedSignal;
  }

  /** Calls `action` once, if the response is not sent completely. */
  onUndelivered(action: () => void): void {
    this.onEnd((isDelivered) => {
      if (!isDelivered) {
        action();
      }
    });
  }

  /** Calls `action` once, at the end of the response or of the connection. A pipelined request gets no event of its own. */
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

/** Adds an action to the one listener of a connection, which serves all its requests. Returns the removal. */
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

/** The client disconnected before its response. */
export class ClientDisconnected extends Error {
  constructor() {
    super("The client has disconnected");
  }
}
