import { LocksModule } from "@holdfast/nestjs";
import { Module } from "@nestjs/common";

import { OrdersController } from "./orders.controller";

/** The module closes the connection that it opens, and releases all leases, at shutdown. */
@Module({
  imports: [LocksModule.forRoot({ url: process.env.HOLDFAST_URL ?? "redis://127.0.0.1:6379" })],
  controllers: [OrdersController],
})
export class AppModule {}
