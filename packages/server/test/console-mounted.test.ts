import "reflect-metadata";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { serve, type ServerType } from "@hono/node-server";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import express from "express";
import fastify from "fastify";
import { createLocks, type Driver } from "holdfast";
import { memory } from "holdfast/memory";
import { Hono } from "hono";
import { afterEach, describe, expect, test } from "vitest";

import { consoleRoutes, type ConsoleRoutes, type ConsoleRoutesOptions } from "../src/index.ts";
import { refusal, sendRequest, statusOf } from "./support/service.ts";

const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) {
    await end();
  }
});

const operator: ConsoleRoutesOptions = { authorize: () => ({ name: "ada", canBreak: true }) };

function mounted(driver: Driver, options: ConsoleRoutesOptions = operator): ConsoleRoutes {
  const routes = consoleRoutes(driver, options);
  ends.push(() => routes.close());
  return routes;
}

async function listening(server: Server | ServerType): Promise<string> {
  await new Promise((resolve) => server.once("listening", resolve));
  ends.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/locks/`;
}

/** The ways to mount the console under `/admin/locks`. */
const frameworks: Record<string, (driver: Driver, options?: ConsoleRoutesOptions) => Promise<string>> = {
  async express(driver, options) {
    const app = express();
    app.use("/admin/locks", mounted(driver, options).handler);
    return listening(app.listen(0, "127.0.0.1"));
  },
  async "express, after a parser of bodies"(driver, options) {
    const app = express();
    app.use(express.json());
    app.use("/admin/locks", mounted(driver, options).handler);
    return listening(app.listen(0, "127.0.0.1"));
  },
  async fastify(driver, options) {
    const { handler } = mounted(driver, { ...(options ?? operator), basePath: "/admin/locks" });
    const app = fastify();
    app.all("/admin/locks/*", (request, reply) => {
      reply.hijack();
      handler(Object.assign(request.raw, { body: request.body }), reply.raw);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    ends.push(() => app.close());
    return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/admin/locks/`;
  },
  async nestjs(driver, options) {
    class Application {}
    Module({})(Application);
    const app = await NestFactory.create<NestExpressApplication>(Application, { logger: false });
    app.use("/admin/locks", mounted(driver, options).handler);
    await app.listen(0, "127.0.0.1");
    ends.push(() => app.close());
    return `${await app.getUrl()}/admin/locks/`;
  },
  async hono(driver, options) {
    const routes = mounted(driver, { ...(options ?? operator), basePath: "/admin/locks" });
    const app = new Hono<{ Bindings: Parameters<ConsoleRoutes["fetch"]>[1] }>();
    app.all("/admin/locks/*", (c) => routes.fetch(c.req.raw, c.env));
    return listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  },
  async "node:http"(driver, options) {
    const { handler } = mounted(driver, { ...(options ?? operator), basePath: "/admin/locks" });
    return listening(createServer(handler).listen(0, "127.0.0.1"));
  },
};

const mount = frameworks["express"] as (typeof frameworks)[string];

/** The first test, because the server of Hono replaces these classes. */
test("a mounted console leaves the classes of the application's requests as they are", () => {
  const before = [globalThis.Request, globalThis.Response];
  mounted(memory());
  expect([globalThis.Request, globalThis.Response]).toEqual(before);
});

describe.each(Object.entries(frameworks))("the console mounted in %s", (_, mountIn) => {
  test("shows and breaks the locks of the application, and serves nothing else", async () => {
    const driver = memory();
    const locks = createLocks(driver);
    ends.push(() => locks.close());
    const url = await mountIn(driver);
    const lease = await locks.acquire("order:1", { owner: "application" });
    expect(await (await fetch(new URL("console/", url))).text()).toContain("<title>");
    expect((await fetch(new URL("console", url), { redirect: "manual" })).headers.get("location")).toBe(
      "./console/",
    );
    expect((await sendRequest(url, "GET", "v1/me")).body).toMatchObject({
      principal: "ada",
      readOnly: false,
    });
    const listed = await sendRequest(url, "GET", "v1/locks");
    expect(listed.body).toMatchObject({ locks: [{ key: "order:1", holders: [{ owner: "application" }] }] });
    const seen = { key: "order:1", fencingToken: String(lease.fencingToken), reason: "a test" };
    expect((await sendRequest(url, "POST", "v1/lock/break", seen)).body).toMatchObject({ broken: true });
    expect(lease.signal.aborted).toBe(true);
    expect(await refusal(url, "POST", "v1/leases", { key: "k" })).toMatchObject({ status: 404 });
    expect(await refusal(url, "GET", "metrics")).toMatchObject({ status: 404 });
  });

  test("asks the application for the user and the rights", async () => {
    const driver = memory();
    const locks = createLocks(driver);
    ends.push(() => locks.close());
    const lease = await locks.acquire("order:1");
    const url = await mountIn(driver, {
      authorize: ({ headers }: IncomingMessage) =>
        headers["x-user"] === undefined
          ? null
          : { name: String(headers["x-user"]), canBreak: headers["x-user"] === "ada" },
    });
    const as = (name: string, method: string, path: string, body?: object): ReturnType<typeof sendRequest> =>
      sendRequest(url, method, path, body, { "x-user": name, host: "locks.example" });
    expect(await refusal(url, "GET", "v1/locks")).toMatchObject({ status: 403, code: "forbidden" });
    expect((await as("bob", "GET", "v1/me")).body).toMatchObject({ principal: "bob", authentication: true });
    const seen = { key: "order:1", fencingToken: String(lease.fencingToken), reason: "a test" };
    expect((await as("bob", "POST", "v1/lock/break", seen)).status).toBe(403);
    const crossSite = { "x-user": "ada", "sec-fetch-site": "cross-site" };
    expect((await sendRequest(url, "POST", "v1/lock/break", seen, crossSite)).status).toBe(403);
    expect((await as("ada", "POST", "v1/lock/break", seen)).body).toMatchObject({ broken: true });
  });
});

test("a console without authorize has to be declared as open, and is then for reading", async () => {
  const options = {} as ConsoleRoutesOptions;
  expect(() => consoleRoutes(memory(), options)).toThrow(/Expected `authorize`.*anonymous: "read"/);
  expect(() => consoleRoutes(memory(), { ...operator, anonymous: "read" })).toThrow(/Expected `authorize`/);
  expect(() => consoleRoutes(memory(), { anonymous: "all" as "read" })).toThrow(/to be "read", got "all"/);
  const driver = memory();
  const locks = createLocks(driver);
  ends.push(() => locks.close());
  const lease = await locks.acquire("order:1");
  const url = await mount(driver, { anonymous: "read" });
  expect((await sendRequest(url, "GET", "v1/locks")).body).toMatchObject({ locks: [{ key: "order:1" }] });
  expect((await sendRequest(url, "GET", "v1/me")).body).toMatchObject({ authentication: false });
  const seen = { key: "order:1", fencingToken: String(lease.fencingToken), reason: "a test" };
  expect(await refusal(url, "POST", "v1/lock/break", seen)).toMatchObject({ status: 403 });
  expect(await refusal(url, "GET", "v1/doctor")).toMatchObject({ status: 403 });
  expect(lease.signal.aborted).toBe(false);
});

test.each([{ anonymous: "read" }, operator] as ConsoleRoutesOptions[])(
  "a page of another origin reads and breaks nothing, also through a proxy and with CORS: %o",
  async (options) => {
    const driver = memory();
    const locks = createLocks(driver);
    ends.push(() => locks.close());
    const lease = await locks.acquire("order:1");
    const url = await mount(driver, options);
    const seen = { key: "order:1", fencingToken: String(lease.fencingToken), reason: "a test" };
    const host = new URL(url).host;
    const foreign: Record<string, string>[] = [
      { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site", origin: "https://other.shop.example" },
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "null", "x-forwarded-host": "null" },
      { origin: "chrome-extension://evil" },
      { origin: "http://shop.example:81", "x-forwarded-host": "shop.example:82" },
      { origin: "https://evil.example", "x-forwarded-host": "shop.example" },
      { origin: "http://evil.example", "sec-fetch-mode": "cors" },
    ];
    for (const headers of foreign) {
      const name = JSON.stringify(headers);
      expect(await statusOf(url, "GET", "v1/locks", headers), name).toBe(403);
      expect(await statusOf(url, "POST", "v1/lock/break", headers, seen), name).toBe(403);
    }
    expect(lease.signal.aborted).toBe(false);
    const own: Record<string, string>[] = [
      {},
      { "sec-fetch-site": "same-origin", origin: `http://${host}` },
      { "sec-fetch-site": "none" },
      { origin: `http://${host}` },
      { origin: "https://shop.example", "x-forwarded-host": "shop.example" },
      { origin: "http://shop.example", "x-forwarded-host": "shop.example:80" },
      { origin: "http://shop.example", "x-forwarded-host": "shop.example, inner.example" },
    ];
    for (const headers of own) {
      expect(await statusOf(url, "GET", "v1/locks", headers), JSON.stringify(headers)).toBe(200);
    }
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect(await statusOf(url, "GET", "console/", link)).toBe(200);
    expect(await statusOf(url, "POST", "v1/lock/break", link, seen)).toBe(403);
  },
);

test("a read-only console breaks nothing", async () => {
  const url = await mount(memory(), { ...operator, readOnly: true });
  const seen = { key: "k", fencingToken: "1", reason: "a test" };
  expect(await refusal(url, "POST", "v1/lock/break", seen)).toMatchObject({ status: 403 });
});

test("a base path of another form is refused", () => {
  expect(() => consoleRoutes(memory(), { ...operator, basePath: "locks/" })).toThrow(/basePath/);
});
