import type { Clock, Timer } from "../../../runtime/clock.ts";
import type { DirectoryLink } from "./directory-link.ts";

/** A process that ends sooner is not registered, because a short program would leave an entry and cost two commands. */
const firstDelayMs = 1_000;
const renewalMs = 60_000;
const ttlMs = 180_000;
const maxClients = 10_000;

/** Registers this client in the directory of each server, once a minute. The timer does not keep the process alive. */
export class DirectoryRegistration {
  readonly #clock: Clock;
  readonly #links: () => readonly DirectoryLink[];
  readonly #clientId: () => string;
  #timer: Timer;
  #isUsed = false;
  #isRegistered = false;
  #isClosed = false;

  constructor(clock: Clock, links: () => readonly DirectoryLink[], clientId: () => string) {
    this.#clock = clock;
    this.#links = links;
    this.#clientId = clientId;
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** The process acquires. Called at each acquire. */
  used(): void {
    if (!this.#isUsed && !this.#isClosed) {
      this.#isUsed = true;
      this.#registerIn(firstDelayMs);
    }
  }

  /** Notifications arrive again, perhaps from another server, which has no entry of this client. */
  verified(): void {
    if (this.#isRegistered) {
      this.#registerIn(firstDelayMs);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimer(this.#timer);
    if (this.#isRegistered) {
      this.#send(["leave", this.#clientId()]);
    }
  }

  #registerIn(delayMs: number): void {
    if (this.#isClosed) {
      return;
    }
    this.#clock.clearTimer(this.#timer);
    this.#timer = this.#clock.setTimer(() => {
      this.#isRegistered = true;
      this.#send(["register", this.#clientId(), String(ttlMs), String(maxClients)]);
      this.#registerIn(renewalMs);
    }, delayMs);
  }

  /** A failure is not reported: an entry that is missing or stale only makes the directory incomplete. */
  #send(args: readonly string[]): void {
    for (const { server, run } of this.#links()) {
      if (server.notificationStatus === "verified") {
        run(args).catch(() => undefined);
      }
    }
  }
}
