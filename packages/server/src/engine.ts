import { hostname } from "node:os";

import { createLocks, type Driver, type Locks, type LossReason } from "holdfast";
import { connect } from "holdfast/connect";

/** How many losses are remembered: who held learns at the next renewal why. */
const maxLosses = 10_000;
/** Of one key at this instance; principals have bounds of their own. */
const maxWaiters = 1_000_000;

/** The locks that the service gives out: every caller has a place of its own in the engine's queue. */
export class Engine {
  readonly driver: Driver;
  readonly locks: Locks;
  /** Who waits by an engine that knows of waiters only by which process they wait. */
  readonly owner: string = `lock service@${hostname()}:${process.pid}`;
  readonly #losses = new Map<string, LossReason>();
  readonly #forget: () => void;

  /** Told of grants of this instance that were ended by force. */
  onLoss: (token: string, reason: LossReason) => void = () => undefined;

  constructor(driver: Driver) {
    this.driver = driver;
    this.locks = createLocks(driver, { handover: false, maxWaiters, owner: this.owner });
    this.#forget = driver.listen({
      lost: (token, reason) => {
        if (token === null) {
          return; // the driver refuses to extend these
        }
        this.#losses.set(token, reason);
        this.onLoss(token, reason);
        if (this.#losses.size > maxLosses) {
          this.#losses.delete(this.#losses.keys().next().value as string);
        }
      },
      notificationsInterrupted: () => undefined,
      engineRecovered: () => undefined,
    });
  }

  /** @param engine a URL as `holdfast/connect` reads it, or a driver, which is closed with the service */
  static async open(engine: string | Driver): Promise<Engine> {
    return new Engine(typeof engine === "string" ? await connect(engine) : engine);
  }

  get guarantee(): Driver["capabilities"]["guarantee"] {
    return this.driver.capabilities.guarantee;
  }

  /** Why a grant was lost, if the engine told us before it was asked. */
  lossOf(token: string): LossReason | undefined {
    return this.#losses.get(token);
  }

  async close(): Promise<void> {
    this.#forget();
    await this.locks.close();
  }
}
