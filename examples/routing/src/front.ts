import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { createRing, type Ring } from "holdfast/routing";

import { shards, type FromInstance, type Outcome, type ToInstance } from "./messages.ts";

const program = new URL("./instance.js", import.meta.url);
const retryMs = 5;
const publishMs = 100;
const giveUpMs = 30_000;

/** Sends each request to the instance that owns its order. Starts and ends the instances. */
export class Front {
  /** The ring of the last published members. */
  ring: Ring = createRing([], { shards });
  /** While members are published, requests use the old ring and the new one at random, as those of several fronts would. */
  #views: readonly Ring[] = [this.ring];
  readonly #redis: { readonly redisUrl: string; readonly prefix: string };
  readonly #instances = new Map<string, ChildProcess>();
  readonly #waiting = new Map<number, (outcome: Outcome) => void>();

  constructor(redisUrl: string, prefix: string) {
    this.#redis = { redisUrl, prefix };
  }

  /** Starts an instance, which knows the members at once. The others learn of it by `publish`. */
  async start(name: string): Promise<void> {
    const child = fork(program, { stdio: ["ignore", 2, 2, "ipc"] });
    this.#instances.set(name, child);
    child.on("message", (message: FromInstance) => {
      if (message.kind === "reply") {
        this.#waiting.get(message.id)?.(message.outcome);
      }
    });
    const members = [...this.#instances.keys()];
    child.send({ kind: "start", name, members, ...this.#redis } satisfies ToInstance);
    await once(child, "message");
  }

  /** Publishes the members to one instance after another, so that their views differ for a moment, as on a real network. */
  async publish(): Promise<void> {
    const members = [...this.#instances.keys()];
    const next = createRing(members, { shards });
    this.#views = this.ring.members.length === 0 ? [next] : [this.ring, next];
    for (const child of this.#instances.values()) {
      child.send({ kind: "members", members } satisfies ToInstance, () => undefined);
      await pause(publishMs);
    }
    this.ring = next;
    this.#views = [next];
  }

  async kill(name: string): Promise<void> {
    const child = this.#instances.get(name);
    this.#instances.delete(name);
    if (child && child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
  }

  /** Resolves when an instance has served the request. Repeats it, with the same id, until then. */
  async request(id: number, order: string): Promise<void> {
    const deadline = performance.now() + giveUpMs;
    while ((await this.#attempt(id, order)) !== "done") {
      if (performance.now() > deadline) {
        throw new Error(`request ${id} for ${order} was not served within ${giveUpMs} ms`);
      }
      await pause(retryMs);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#instances.keys()].map((name) => this.kill(name)));
  }

  #attempt(id: number, order: string): Promise<Outcome> {
    const view = this.#views[Math.floor(Math.random() * this.#views.length)] as Ring;
    const child = this.#instances.get(view.ownerOf(order));
    if (!child) {
      return Promise.resolve("not-owner");
    }
    return new Promise((resolve) => {
      const settle = (outcome: Outcome): void => {
        this.#waiting.delete(id);
        child.off("exit", fail);
        resolve(outcome);
      };
      const fail = (): void => settle("failed"); // the request may have been served; the instance knows the id of a repeat
      this.#waiting.set(id, settle);
      child.once("exit", fail).setMaxListeners(0);
      child.send({ kind: "request", id, order } satisfies ToInstance, (error) => error && fail());
    });
  }
}
