// An application of Nest. The tests compile and run it with each version of Nest.
//
//   node main.js <url>
//
// It prints a line for each run of its jobs. It reads commands from standard input: `pay <id>`, `finish` and `health`.

import "reflect-metadata";

import { createInterface } from "node:readline";

import {
  InjectLease,
  LocksHealthIndicator,
  LocksModule,
  LocksTestingModule,
  Once,
  WithLock,
} from "@holdfast/nestjs";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron, ScheduleModule } from "@nestjs/schedule";
import { HealthCheckService, TerminusModule } from "@nestjs/terminus";
import { Test } from "@nestjs/testing";
import { isLockError, type Lease } from "holdfast";

const url = process.argv[2] as string;
const periodMs = 2_000;
let finish = (): void => undefined;

@Injectable()
class Orders {
  @WithLock("order:{0.id}", { waitMs: 300 })
  async pay(order: { readonly id: string }, @InjectLease() lease?: Lease): Promise<string> {
    const finished = new Promise<void>((resolve) => (finish = resolve));
    console.log(`paying ${order.id}`);
    await finished;
    return `${lease?.key} ${lease?.fencingToken}`;
  }
}

function report(result: string, job: string): void {
  console.log(`${result} ${job} ${Math.floor(Date.now() / periodMs)}`);
}

@Injectable()
class Jobs {
  @Cron("*/2 * * * * *", { threshold: 1_500 })
  @Once("job:above", { keepMs: 1_000, onSkipped: () => report("skipped", "above") })
  async above(): Promise<void> {
    report("ran", "above");
  }

  @Once("job:below", { keepMs: 1_000, onSkipped: () => report("skipped", "below") })
  @Cron("*/2 * * * * *", { threshold: 1_500 })
  async below(): Promise<void> {
    report("ran", "below");
  }
}

@Injectable()
class Health {
  readonly #service: HealthCheckService;
  readonly #indicator: LocksHealthIndicator;

  constructor(service: HealthCheckService, indicator: LocksHealthIndicator) {
    this.#service = service;
    this.#indicator = indicator;
  }

  async check(): Promise<string> {
    const result = await this.#service.check([() => this.#indicator.isHealthy()]).catch((error: unknown) => {
      return (error as { getResponse(): { status: string; details: Record<string, unknown> } }).getResponse();
    });
    return `${result.status} ${JSON.stringify(result.details["locks"])}`;
  }
}

@Module({
  imports: [
    LocksModule.forRootAsync({ useFactory: () => ({ url }) }),
    ScheduleModule.forRoot(),
    TerminusModule,
  ],
  providers: [Orders, Jobs, Health],
})
class AppModule {}

async function testWithoutServer(): Promise<void> {
  const testing = Test.createTestingModule({ imports: [LocksTestingModule.forRoot()], providers: [Orders] });
  const module = await testing.compile();
  const paid = module.get(Orders).pay({ id: "0" });
  setTimeout(() => finish(), 20);
  console.log(`tested ${await paid}`);
  await module.close();
}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error"] });
  app.enableShutdownHooks();
  const pay = (id: string): Promise<void> =>
    app
      .get(Orders)
      .pay({ id })
      .then(
        (receipt) => console.log(`paid ${receipt}`),
        (error: unknown) => console.log(isLockError(error) ? `refused ${error.code}` : String(error)),
      );
  createInterface({ input: process.stdin }).on("line", (line) => {
    const [command, id = ""] = line.split(" ");
    if (command === "pay") void pay(id);
    if (command === "finish") finish();
    if (command === "health")
      void app
        .get(Health)
        .check()
        .then((text) => console.log(text));
  });
  await testWithoutServer();
  console.log("ready");
}

void main();
