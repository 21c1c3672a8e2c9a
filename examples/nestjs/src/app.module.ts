import { Module } from "@nestjs/common";

import { LocksModule } from "./locks.module";
import { OrdersController } from "./orders.controller";

@Module({ imports: [LocksModule], controllers: [OrdersController] })
export class AppModule {}
