import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";

import type { Visit, VisitAnswer } from "../resource.ts";

/** The connection of a client to the protected resource. */
export class ResourceClient {
  readonly #socket: Socket;
  readonly #from: string;
  readonly #pending = new Map<number, (answer: VisitAnswer) => void>();
  #requestCount = 0;

  private constructor(socket: Socket, from: string) {
    this.#socket = socket;
    this.#from = from;
    createInterface({ input: socket }).on("line", (line) => {
      const answer = JSON.parse(line) as VisitAnswer;
      this.#pending.get(answer.visit)?.(answer);
      this.#pending.delete(answer.visit);
    });
  }

  static async open(port: number, from: string): Promise<ResourceClient> {
    const socket = connect(port, "127.0.0.1");
    socket.setNoDelay(true);
    await once(socket, "connect");
    return new ResourceClient(socket, from);
  }

  read(key: string, token: bigint): Promise<VisitAnswer> {
    return this.#send({ key, token: String(token) });
  }

  /** A read beside other readers. */
  readShared(key: string, token: bigint): Promise<VisitAnswer> {
    return this.#send({ key, token: String(token), shared: true });
  }

  write(key: string, token: bigint, write: { checked: number; unchecked: number }): Promise<VisitAnswer> {
    return this.#send({ key, token: String(token), write });
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(request: Omit<Visit, "visit" | "from">): Promise<VisitAnswer> {
    this.#requestCount += 1;
    const visit = this.#requestCount;
    return new Promise((resolve) => {
      this.#pending.set(visit, resolve);
      this.#socket.write(`${JSON.stringify({ visit, from: this.#from, ...request })}\n`);
    });
  }
}
