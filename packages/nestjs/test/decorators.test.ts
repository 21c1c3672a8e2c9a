import { InjectLease, InjectLocks, LocksTestingModule, Once, WithLock } from "@holdfast/nestjs";
import { Controller, Get, Injectable, Param, SetMetadata } from "@nestjs/common";
import { Test, type TestingModule } from "@nestjs/testing";
import { isLockError, type Lease, type Locks } from "holdfast";
import { afterEach, beforeEach, expect, test } from "vitest";

interface Order {
  readonly id: string | number | undefined;
  readonly customer?: { readonly name: string } | null;
}

@Injectable()
class Base {
  @WithLock("base:{0}")
  async inherited(id: string, @InjectLease() lease?: Lease): Promise<string | undefined> {
    return id && lease?.key;
  }
}

@Injectable()
class Orders extends Base {
  readonly runs: unknown[] = [];
  readonly locks: Locks;
  readonly jobs: Locks;

  constructor(@InjectLocks() locks: Locks, @InjectLocks("jobs") jobs: Locks) {
    super();
    this.locks = locks;
    this.jobs = jobs;
  }

  @SetMetadata("above", 1)
  @WithLock("order:{0.id}", { waitMs: 0, reason: "payment" })
  @SetMetadata("below", 2)
  async pay(order: Order, @InjectLease() lease?: Lease): Promise<unknown[]> {
    return [
      this.constructor.name,
      order.id,
      lease?.key,
      (await this.locks.inspect("order:1")).holders[0]?.reason,
    ];
  }

  @WithLock((order: Order, note: string) => `note:${order.id}:${note}`)
  async note(order: Order, note: string, @InjectLease() lease?: Lease): Promise<string | undefined> {
    return `${order.id} ${note} ${lease?.key}`;
  }

  @WithLock("{{1}}:customer:{0.customer.name}", { name: "jobs" })
  async visit(_order: Order, _shard: number, @InjectLease() lease?: Lease): Promise<string | undefined> {
    return lease?.key;
  }

  @WithLock("lost")
  async lose(@InjectLease() lease?: Lease): Promise<number> {
    await this.locks.admin.breakLock("lost", { fencingToken: lease?.fencingToken as bigint, reason: "test" });
    return 7;
  }

  @Once("report:{0}", { keepMs: 60_000 })
  async report(day: string, @InjectLease() lease?: Lease): Promise<void> {
    this.runs.push([day, lease?.key]);
  }
}

@Controller("orders")
class OrdersController {
  @Get(":id")
  @WithLock("order:{0}")
  async get(@Param("id") id: string, @InjectLease() lease?: Lease): Promise<string | undefined> {
    return id && lease?.key;
  }
}

let module: TestingModule;
let orders: Orders;

beforeEach(async () => {
  module = await Test.createTestingModule({
    imports: [LocksTestingModule.forRoot(), LocksTestingModule.forRoot({ name: "jobs" })],
    providers: [Orders],
    controllers: [OrdersController],
  }).compile();
  orders = module.get(Orders);
});

afterEach(() => module.close());

test("a method runs under the key of its arguments, with its instance, the options and the lease", async () => {
  expect(await orders.pay({ id: 1 })).toEqual(["Orders", 1, "order:1", "payment"]);
  expect(await orders.note({ id: "2" }, "late")).toBe("2 late note:2:late");
  expect(await orders.visit({ id: 3, customer: { name: "Ada" } }, 5)).toBe("{5}:customer:Ada");
  expect(await orders.inherited("4")).toBe("base:4");
  const error: unknown = await orders.jobs.withLock("{5}:customer:Ada", () =>
    orders.visit({ id: 3, customer: { name: "Ada" } }, 5).catch((caught: unknown) => caught),
  );
  expect(isLockError(error, "self-deadlock")).toBe(true); // the key is one of the named instance
});

test("a call of a held key rejects as `withLock` does, and other keys are free", async () => {
  const lease = await orders.locks.acquire("order:1");
  await expect(orders.pay({ id: 1 })).rejects.toMatchObject({ code: "wait-timeout", key: "order:1" });
  expect(await orders.pay({ id: 2 })).toHaveLength(4);
  await lease.release();
});

test("a loss rejects, with the value of the method", async () => {
  const error: unknown = await orders.lose().catch((caught: unknown) => caught);
  expect(isLockError(error, "lease-lost") && [error.reason, error.result]).toEqual(["broken", 7]);
});

test("a method with @Once runs once in its period for each key", async () => {
  await Promise.all([orders.report("monday"), orders.report("tuesday")]);
  await orders.report("monday");
  expect(orders.runs).toEqual([
    ["monday", "report:monday"],
    ["tuesday", "report:tuesday"],
  ]);
  await orders.locks.close();
  await expect(orders.report("monday")).rejects.toMatchObject({ code: "closed" });
});

test("decorators above and below keep their metadata, and routes their parameters", async () => {
  const method = Orders.prototype.pay;
  expect([Reflect.getMetadata("above", method), Reflect.getMetadata("below", method), method.name]).toEqual([
    1,
    2,
    "pay",
  ]);
  expect(Reflect.getMetadata("path", OrdersController.prototype.get)).toBe(":id");
  expect(await module.get(OrdersController).get("9")).toBe("order:9");
});

test.each([
  [
    { id: undefined },
    'Expected {0.id} in the key "order:{0.id}" of @WithLock of Orders.pay to be a string, a number or a bigint, got undefined',
  ],
  [{ id: "" }, "got ''"],
  [{ id: Number.NaN }, "got NaN"],
  [undefined, "got undefined"],
])("the key of %o is refused, and the method does not run", async (order, message) => {
  await expect(orders.pay(order as Order)).rejects.toThrow(message);
});

test("a null on the path of a key is refused", async () => {
  await expect(orders.visit({ id: 1, customer: null }, 1)).rejects.toThrow(
    "Expected {0.customer.name} in the key",
  );
});

test.each([
  ["order:{id}", "got {id}. A function may return any key"],
  ["order:{}", "got {}"],
  ["order:{0.}", "got {0.}"],
  [7 as unknown as string, "to be a string or a function, got 7"],
])("the template %s is refused when the class is defined", (key, message) => {
  const method = { value: async () => undefined };
  expect(() => WithLock(key)(class Broken {}.prototype, "pay", method)).toThrow(message);
});

test("a decorator of a property or a constructor's parameter is refused", () => {
  expect(() => WithLock("k")(class Broken {}.prototype, "pay", {})).toThrow(
    "Expected @WithLock of Broken.pay to be at a method",
  );
  expect(() => InjectLease()(class Broken {}, undefined, 0)).toThrow("got a parameter of a constructor");
});

test("an instance that Nest did not create is refused", async () => {
  await expect(new Orders(orders.locks, orders.jobs).pay({ id: 1 })).rejects.toThrow(
    "@WithLock of Orders.pay needs an instance that Nest has created, with LocksModule in the application",
  );
});
