import { hostname } from "node:os";

import { createLocks, type Driver, type Locks, type LossReason } from "holdfast";
import { connect } from "holdfast/connect";

/** The number of stored losses. A client learns the reason of a loss at its next renewal. */
const maxLosses = 10_000;
/** The limit for one key at this instance. Principals have their own limits. */
const maxWaiters = 1_000_000;

/** The reply to an extension by the driver. */
export type Extension = Awaited<ReturnType<Driver["extend"]>>;
/** The reply to a verification by the driver. */
export type Verification = Awaited<ReturnType<Driver["verify"]>>;

/** The locks of the service. Each request has its own entry in the engine's queue. */
export class Engine {
  readonly driver: Driver;
  readonly locks: Locks;
  /** The owner in `inspect` of waiters of this process, if the engine knows only their process. */
  readonly owner: string = `lock service@${hostname()}:${process.pid}`;
  readonly #losses = new Map<string, LossReason>();
  readonly #forget: () => void;

  /** Called for each grant of this instance that an operator broke. */
  onLoss: (token: string, reason: LossReason) => void = () => undefined;

  constructor(driver: Driver) {
    this.driver = driver;
    this.locks = createLocks(driver, { handover: false, maxWaiters, owner: this.owner });
    this.#forget = driver.listen({
      lost: (token, reason) => {
        if (token === null) {
          return; // the driver refuses to extend these
        }
        this.ended(token, reason);
        this.onLoss(token, reason);
      },
      notificationsInterrupted: () => undefined,
      engineRecovered: () => undefined,
    });
  }

  /** @param engine a URL for `holdfast/connect`, or a driver, which the service closes */
  static async open(engine: string | Driver): Promise<Engine> {
    return new Engine(typeof engine === "string" ? await connect(engine) : engine);
  }

  get guarantee(): Driver["capabilities"]["guarantee"] {
    return this.driver.capabilities.guarantee;
  }

  /** Stores why a grant has ended, for later requests with its token. */
  ended(token: string, reason: LossReason): void {
    this.#losses.set(token, reason);
    if (this.#losses.size > maxLosses) {
      this.#losses.delete(this.#losses.keys().next().value as string);
    }
  }

  /** Why a grant has ended, if the engine has reported its loss, or this instance has released it. */
  lossOf(token: string): LossReason | undefined {
    return this.#losses.get(token);
  }

  async close(): Promise<void> {
    this.#forget();
    await this.locks.close();
  }
}
