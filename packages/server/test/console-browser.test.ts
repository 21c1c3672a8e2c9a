import type { ChildProcess } from "node:child_process";

import { createLocks, type Locks } from "holdfast";
import { redis as redisDriver } from "holdfast/redis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePort, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import {
  hasBrowser,
  launchBrowser,
  type Browser,
  type BrowserContext,
  type Page,
} from "@holdfast/test-kit/edge";

import {
  openConsole,
  row,
  showsHolder,
  showsLive,
  submitBreak,
  type ConsolePage,
} from "./support/console-page.ts";
import { holdInProcess } from "./support/holder-process.ts";
import { sendRequest, startInstance, type ServiceInstance } from "./support/service.ts";

const reason = "the order is stuck";

let redis: RedisServer;
let browser: Browser;
let context: BrowserContext;
let service: ServiceInstance;
let billing: Locks;
let waiting: Locks;
const opened: ConsolePage[] = [];
const children: ChildProcess[] = [];

const isSkipped = !hasBrowser && !process.env["CI"];
if (isSkipped) {
  console.warn("\n!!! chromium is missing: the tests that need it are SKIPPED !!!\n");
}

describe.skipIf(isSkipped)("the console in a browser", () => {
  beforeAll(async () => {
    redis = await startRedis();
    const port = String(await freePort());
    service = await startInstance({ HOLDFAST_URL: engineUrl(), HOLDFAST_PORT: port });
    browser = await launchBrowser();
    context = await browser.newContext();
    billing = createLocks(redisDriver(redis.client()), { owner: "billing" });
    waiting = createLocks(redisDriver(redis.client()), { owner: "waiting" });
  });

  afterEach(async () => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
    const closed = opened.splice(0);
    await Promise.all(closed.map(({ page }) => page.close()));
    expect(closed.flatMap(({ problems }) => problems)).toEqual([]);
  });

  afterAll(async () => {
    await browser.close();
    await service.kill("SIGKILL");
    await Promise.all([billing.close(), waiting.close()]);
    await redis.stop();
  });

  test("a row goes after its holder was killed, and a waiter is shown as the next holder", async () => {
    const keys = ["killed:free", "killed:waited"];
    const child = await holdInProcess(service.url, { owner: "shipping", ttlMs: 1_500, keys });
    children.push(child);
    const next = waiting.acquire("killed:waited", { waitMs: 20_000 });
    const page = await open();
    await showsHolder(page, "killed:free", "shipping");
    await showsHolder(page, "killed:waited", "shipping");
    expect(child.exitCode).toBeNull();
    child.kill("SIGKILL");
    await showsHolder(page, "killed:waited", "waiting");
    await row(page, "killed:free").waitFor({ state: "detached" });
    await (await next).release();
  });

  test("a break spares a grant that the operator has not seen", async () => {
    const first = await billing.acquire("moved");
    const page = await open("lock?key=moved");
    await page.getByTestId("sentence").filter({ hasText: "billing" }).waitFor();
    await page.getByRole("button", { name: "Break…" }).click();
    await first.release();
    const second = await waiting.acquire("moved");
    const refused = page.waitForResponse((response) => response.url().endsWith("/v1/lock/break"));
    await submitBreak(page, reason);
    expect((await refused).status()).toBe(412);
    await page.getByTestId("break-dialog").getByRole("alert").filter({ hasText: "moved on" }).waitFor();
    await second.extend();
    await page.getByRole("button", { name: "Look again" }).click();
    await page.getByTestId("sentence").filter({ hasText: "waiting" }).waitFor();
    await second.release();
  });

  test("the keyboard alone finds a lock, opens it and breaks it", async () => {
    const lease = await billing.acquire("keys:42");
    const other = await billing.acquire("other");
    const page = await open();
    await row(page, "other").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("keys:");
    await row(page, "other").waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.locator('tr[data-key="keys:42"][aria-selected="true"]').waitFor();
    await page.keyboard.press("Enter");
    await page.getByTestId("sentence").filter({ hasText: "billing" }).waitFor();
    await page.keyboard.press("b");
    await page.locator('[data-testid="break-reason"]:focus').waitFor();
    await page.keyboard.type(reason);
    await page.keyboard.press("Tab");
    await page.locator('[data-testid="break-confirm"]:focus').waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: "still runs" }).waitFor();
    await page.keyboard.press("Space");
    await page.keyboard.press("Enter");
    await page.getByTestId("toast").filter({ hasText: "keys:42 is broken" }).waitFor();
    await page.getByTestId("still-to-do").filter({ hasText: "billing" }).waitFor();
    await expect(lease.extend()).rejects.toMatchObject({ code: "lease-lost" });
    await other.release();
  });

  test("a break by another operator shows what is left to do, by whom and why, also where the clock is 2 h ahead", async () => {
    const { fencingToken } = await billing.acquire("elsewhere");
    const page = await open(
      "lock?key=elsewhere",
      "const now = Date.now; Date.now = () => now() + 7_200_000;",
    );
    await waitUntil(async () => {
      const { body } = await sendRequest(service.url, "GET", "/v1/history?key=elsewhere");
      return (body as { holds: object[] }).holds.length === 1;
    }, "the service has seen the hold");
    await waiting.admin.breakLock("elsewhere", { fencingToken, reason, by: "ada" });
    const toDo = page.getByTestId("still-to-do").filter({ hasText: "billing" });
    await toDo.filter({ hasText: `by ada (“${reason}”)` }).waitFor();
    await page.getByTestId("timeline").getByTitle(`broken by ada (“${reason}”)`).waitFor();
  });

  test("after the end of a service its page says so, and is live again with the next one", async () => {
    const page = await open();
    await showsLive(page, "live");
    const unseen = await billing.acquire("unseen", { renew: false, ttlMs: 600_000 });
    const lockPage = await open("lock?key=unseen");
    await sentence(lockPage, "is held by billing").waitFor();
    await service.kill("SIGKILL");
    await showsLive(page, "reconnecting");
    await lockPage
      .getByTestId("old-lock")
      .filter({ hasText: /[1-9]s ago/ })
      .waitFor();
    expect(await sentence(lockPage, "").textContent()).toMatch(/^((?!renew).)*present state is not known\.$/);
    const lease = await billing.acquire("restarted");
    const { port } = new URL(service.url);
    service = await startInstance({ HOLDFAST_URL: engineUrl(), HOLDFAST_PORT: port });
    await showsLive(page, "live");
    await showsHolder(page, "restarted", "billing");
    await lockPage.getByTestId("old-lock").waitFor({ state: "detached" });
    expect(await sentence(lockPage, "").textContent()).not.toContain("alive");
    await unseen.release();
    await lease.release();
    await row(page, "restarted").waitFor({ state: "detached" });
  });

  test("another tab continues after the tab that read the stream was closed", async () => {
    const lease = await billing.acquire("tab:before");
    const leader = await open();
    await row(leader, "tab:before").waitFor();
    const follower = await open();
    await row(follower, "tab:before").waitFor();
    await leader.close();
    await lease.release();
    const after = await billing.acquire("tab:after");
    await row(follower, "tab:after").waitFor();
    await row(follower, "tab:before").waitFor({ state: "detached" });
    await after.release();
  });

  test("5 000 locks are shown and scrolled with few rows in the document", async () => {
    const keys = Array.from({ length: 5_000 }, (_, index) => `many:${String(index).padStart(4, "0")}`);
    await Promise.all(keys.map((key) => billing.acquire(key, { ttlMs: 600_000, renew: false })));
    const page = await open("?q=many:&sort=key");
    await page.locator('[data-testid="locks-table"][aria-rowcount="5000"]').waitFor();
    await row(page, "many:0000").waitFor();
    await page.evaluate("document.querySelector('.table-box').scrollTop = 1e9");
    await row(page, "many:4999").waitFor();
    expect(await page.locator("tbody tr").count()).toBeLessThan(200);
    await page.getByTestId("filter").fill("many:2500");
    await page.locator('[data-testid="locks-table"][aria-rowcount="1"]').waitFor();
    await redis.client().flushall();
  });
});

function engineUrl(): string {
  return `redis://127.0.0.1:${redis.port}`;
}

function sentence(page: Page, text: string): ReturnType<Page["locator"]> {
  return page.getByTestId("sentence").filter({ hasText: text });
}

async function open(path = "", script = ""): Promise<Page> {
  const console = await openConsole(context, service.url, path, script);
  opened.push(console);
  return console.page;
}
