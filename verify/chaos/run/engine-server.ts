import type { ServerClock } from "@holdfast/test-kit";

import { ChaosServer } from "./chaos-server.ts";

/** A server with its data on a disk. */
interface DurableServer {
  readonly port: number;
  /** Ends the server by SIGKILL. */
  kill(): Promise<void>;
  /** Starts the server again. */
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
}

/** The commands of an operator. */
interface Operator {
  /** The grants and queue entries of the server, as text. */
  readonly residue: () => Promise<string[]>;
  readonly endConnections?: () => Promise<unknown>;
  readonly endSubscriptions?: () => Promise<unknown>;
}

/** A server of another engine than Redis. */
export class EngineServer extends ChaosServer {
  readonly port: number;
  readonly #server: DurableServer;
  readonly #operator: Operator;
  #runs = 1;

  constructor(server: DurableServer, operator: Operator, clock?: ServerClock) {
    super(clock);
    this.port = server.port;
    this.#server = server;
    this.#operator = operator;
    const { endConnections, endSubscriptions } = operator;
    if (endConnections) {
      this.endConnections = () => unlessDown(endConnections);
    }
    if (endSubscriptions) {
      this.endSubscriptions = () => unlessDown(endSubscriptions);
    }
  }

  protected get runId(): string {
    return `run-${this.#runs}`;
  }

  /** A server that does not reply yet counts as one with residue. */
  residue(): Promise<string[]> {
    return this.#operator.residue().catch((error: unknown) => [`no reply: ${String(error)}`]);
  }

  protected kill(): Promise<void> {
    return this.#server.kill();
  }

  protected async start(): Promise<void> {
    await this.#server.restart();
    this.#runs += 1;
  }

  protected stopProcess(): void {
    this.#server.freeze();
  }

  protected continueProcess(): void {
    this.#server.thaw();
  }
}

/** On a slow machine the next fault may end the server before its operator has done. */
function unlessDown(command: () => Promise<unknown>): Promise<unknown> {
  return command().catch(() => undefined);
}
