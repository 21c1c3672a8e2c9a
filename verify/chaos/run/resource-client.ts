import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";

import type { Visit, VisitAnswer } from "../resource.ts";

/** A client's way to the protected resource. */
export class ResourceVisitor {
  readonly #socket: Socket;
  readonly #from: string;
  readonly #pending = new Map<number, (answer: VisitAnswer) => void>();
  #visits = 0;

  private constructor(socket: Socket, from: string) {
    this.#socket = socket;
    this.#from = from;
    createInterface({ input: socket }).on("line", (line) => {
      const answer = JSON.parse(line) as VisitAnswer;
      this.#pending.get(answer.visit)?.(answer);
      this.#pending.delete(answer.visit);
    });
  }

  static async open(port: number, from: string): Promise<ResourceVisitor> {
    const socket = connect(port, "127.0.0.1");
    socket.setNoDelay(true);
    await once(socket, "connect");
    return new ResourceVisitor(socket, from);
  }

  read(key: string, token: bigint): Promise<VisitAnswer> {
    return this.#visit({ key, token: String(token) });
  }

  /** Beside other readers. */
  readShared(key: string, token: bigint): Promise<VisitAnswer> {
    return this.#visit({ key, token: String(token), shared: true });
  }

  write(key: string, token: bigint, write: { checked: number; unchecked: number }): Promise<VisitAnswer> {
    return this.#visit({ key, token: String(token), write });
  }

  close(): void {
    this.#socket.destroy();
  }

  #visit(asked: Omit<Visit, "visit" | "from">): Promise<VisitAnswer> {
    this.#visits += 1;
    const visit = this.#visits;
    return new Promise((resolve) => {
      this.#pending.set(visit, resolve);
      this.#socket.write(`${JSON.stringify({ visit, from: this.#from, ...asked })}\n`);
    });
  }
}
