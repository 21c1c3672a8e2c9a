import "reflect-metadata";

import type { AddressInfo } from "node:net";

import { getLocksToken } from "@holdfast/nestjs";
import type { INestApplication } from "@nestjs/common";
import { Test } from "@nestjs/testing";
import { createLocks, isLockError, type Locks } from "holdfast";
import { memory } from "holdfast/memory";

import { AppModule } from "./app.module";

/** With HOLDFAST_URL the tests use that engine, as the application does; otherwise the memory of this process. */
const url = process.env.HOLDFAST_URL;

describe("the payment of an order", () => {
  let app: INestApplication;
  let locks: Locks;

  beforeAll(async () => {
    const testing = Test.createTestingModule({ imports: [AppModule] });
    if (url === undefined) {
      testing.overrideProvider(getLocksToken()).useValue(createLocks(memory()));
    }
    app = (await testing.compile()).createNestApplication();
    await app.listen(0, "127.0.0.1");
    locks = app.get<Locks>(getLocksToken());
  });

  afterAll(() => app.close());

  async function pay(order: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const { port } = app.getHttpServer().address() as AddressInfo;
    const reply = await fetch(`http://127.0.0.1:${port}/orders/${order}/payment`, { method: "POST" });
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
  }

  test("runs under the lock of the order", async () => {
    const { status, body } = await pay("1");
    expect([status, body["order"]]).toEqual([201, "1"]);
    expect(BigInt(body["fencingToken"] as string)).toBeGreaterThan(0n);
  });

  test("is refused while another holder has the lock, without naming the holder", async () => {
    const lease = await locks.acquire("order:2", { reason: "a test" });
    const { status, body } = await pay("2");
    expect(status).toBe(409);
    expect(body).toEqual({ message: "The order is being paid", code: "wait-timeout" });
    await lease.release();
    expect((await pay("2")).status).toBe(201);
  });

  test("finds a self-deadlock, and its error narrows", async () => {
    const error: unknown = await locks
      .withLock("order:3", () => locks.acquire("order:3"))
      .catch((caught: unknown) => caught);
    expect(isLockError(error, "self-deadlock")).toBe(true);
  });
});
