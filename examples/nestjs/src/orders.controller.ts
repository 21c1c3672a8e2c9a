import { InjectLease, WithLock } from "@holdfast/nestjs";
import { Controller, Param, Post, UseFilters } from "@nestjs/common";
import type { Lease } from "holdfast";

import { HeldLockFilter } from "./held-lock.filter";

@Controller("orders")
@UseFilters(HeldLockFilter)
export class OrdersController {
  /** Pays an order. While another instance pays the same order, the reply is 409. */
  @Post(":id/payment")
  @WithLock("order:{0}", { waitMs: 200 })
  async pay(
    @Param("id") id: string,
    @InjectLease() lease?: Lease,
  ): Promise<{ order: string; fencingToken?: string }> {
    lease?.throwIfLost();
    return { order: id, fencingToken: lease?.fencingToken.toString() };
  }
}
