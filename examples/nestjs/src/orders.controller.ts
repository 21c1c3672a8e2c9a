import { ConflictException, Controller, Inject, Param, Post } from "@nestjs/common";
import { isLockError, type Lease, type Locks } from "holdfast";

import { LOCKS } from "./locks.module";

@Controller("orders")
export class OrdersController {
  constructor(@Inject(LOCKS) private readonly locks: Locks) {}

  /** Pays an order. While another instance pays the same order, the reply is 409 with its holder. */
  @Post(":id/payment")
  async pay(@Param("id") id: string): Promise<{ order: string; fencingToken: string }> {
    try {
      return await this.locks.withLock(`order:${id}`, { waitMs: 200 }, (lease) => this.charge(id, lease));
    } catch (error) {
      if (isLockError(error, "wait-timeout")) {
        throw new ConflictException({ message: "The order is being paid", holder: error.holder });
      }
      throw error;
    }
  }

  private async charge(order: string, lease: Lease): Promise<{ order: string; fencingToken: string }> {
    lease.throwIfLost();
    return { order, fencingToken: lease.fencingToken.toString() };
  }
}
