import axe from "axe-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { hasBrowser, launchBrowser, type Browser, type BrowserContext } from "@holdfast/test-kit/edge";

import { createService, newToken, type Service } from "../src/index.ts";
import { openConsole, row } from "./support/console-page.ts";
import { acquire, inspect, sendRequest } from "./support/service.ts";

/** The pages, and an element that they have with data. */
const pages = [
  ["", "tr[data-key]"],
  ["lock?key=order:1", ".waiters li"],
  ["owners", ".card"],
  ["contention", ".contention tbody tr"],
  ["nodes", ".nodes tbody tr"],
  ["doctor", ".finding"],
  ["audit", ".audit tbody tr"],
] as const;
const views = [
  { width: 360, colorScheme: "dark" },
  { width: 820, colorScheme: "light" },
  { width: 1_440, colorScheme: "light" },
] as const;
const [reader, operator] = [newToken(), newToken()];

let redis: RedisServer;
let browser: Browser;
let context: BrowserContext;
let services: Service[];
let openUrl: string;
let closedUrl: string;

const isSkipped = !hasBrowser && !process.env["CI"];
if (isSkipped) {
  console.warn("\n!!! chromium is missing: the tests that need it are SKIPPED !!!\n");
}

describe.skipIf(isSkipped)("the console for everyone, and with tokens", () => {
  beforeAll(async () => {
    const tokens = [
      { name: "reader", sha256: reader.sha256, grants: [{ scope: "lock:read" as const, prefix: "order:" }] },
      {
        name: "operator",
        sha256: operator.sha256,
        grants: (["lock:acquire", "lock:read", "lock:force", "admin"] as const).map((scope) => ({
          scope,
          prefix: "",
        })),
      },
    ];
    redis = await startRedis();
    services = [
      await createService({ engine: `redis://127.0.0.1:${redis.port}` }),
      await createService({ auth: { tokens } }),
    ];
    [openUrl = "", closedUrl = ""] = await Promise.all(
      services.map((service) => service.listen({ port: 0 })),
    );
    const about = { owner: "billing@web-1:42", reason: "charge the card", ttlMs: 600_000 };
    for (const key of ["order:1", "order:2"]) await acquire(openUrl, { key, ...about });
    await breakAndWait(openUrl);
    browser = await launchBrowser();
    context = await browser.newContext();
  });

  afterAll(async () => {
    await browser.close();
    await Promise.all(services.map((service) => service.close()));
    await redis.stop();
  });

  test.each(pages)("axe finds nothing, and nothing overflows: /console/%s", async (path, shown) => {
    const { page, problems } = await openConsole(context, openUrl, path);
    await page.locator("#main h1").first().waitFor({ state: "attached" });
    await page.locator(`#main ${shown}`).first().waitFor();
    await page.evaluate(axe.source);
    const found: string[] = [];
    for (const { width, colorScheme } of views) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
      for (const { id, nodes } of violations) {
        found.push(...nodes.map(({ html }) => `${colorScheme}, ${width} px: ${id}: ${html}`));
      }
      const overflow = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
      if (overflow > 0) found.push(`${width} px wide: ${overflow} px of overflow`);
    }
    expect(found).toEqual([]);
    expect(problems).toEqual([]);
    await page.close();
  });

  test("the theme of the button is kept, and wins over the system", async () => {
    const { page } = await openConsole(context, openUrl);
    await page.emulateMedia({ colorScheme: "light" });
    const ground = async (): Promise<unknown> =>
      page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    const light = await ground();
    const button = page.getByRole("button", { name: /^Theme:/ });
    await button.click();
    await button.click();
    await page.locator('html[data-theme="dark"]').waitFor();
    await page.reload();
    await row(page, "order:1").waitFor();
    expect(await ground()).not.toBe(light);
    await page.evaluate("localStorage.clear()");
    await page.close();
  });

  test("a token signs in, and its scopes decide about the buttons", async () => {
    const headers = { authorization: `Bearer ${operator.token}`, "content-type": "application/json" };
    for (const key of ["order:9", "secret"]) {
      const body = JSON.stringify({ key, owner: "billing", ttlMs: 600_000 });
      expect((await fetch(`${closedUrl}/v1/leases`, { method: "POST", headers, body })).status).toBe(201);
    }
    const { page, problems } = await openConsole(context, closedUrl);
    await page.getByTestId("login-token").fill("hft_wrong");
    await page.getByTestId("login-submit").click();
    await page.getByRole("alert").filter({ hasText: "refused the token" }).waitFor();
    await page.getByTestId("login-token").fill(reader.token);
    await page.getByTestId("login-submit").click();
    await row(page, "order:9").waitFor();
    expect(await row(page, "secret").count()).toBe(0);
    await row(page, "order:9").getByRole("link").first().click();
    await page.getByTestId("sentence").filter({ hasText: "billing" }).waitFor();
    expect(await page.getByRole("button", { name: "Break…" }).count()).toBe(0);
    await page.keyboard.press("b");
    expect(await page.getByTestId("break-dialog").count()).toBe(0);
    expect(problems.filter((problem) => !problem.includes("401"))).toEqual([]);
    await page.close();
  });

  test("a token in the fragment signs in, and leaves the address", async () => {
    const { page } = await openConsole(context, closedUrl, `lock?key=order:9#token=${operator.token}`);
    await page.getByTestId("sentence").filter({ hasText: "billing" }).waitFor();
    await page.getByRole("button", { name: "Break…" }).waitFor();
    expect(page.url()).not.toContain(operator.token);
    expect(await page.evaluate("location.hash")).toBe("");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByTestId("login-token").waitFor();
    await page.close();
  });

  test("a token in the fragment does not replace the session of a tab", async () => {
    const { page } = await openConsole(context, closedUrl, `lock?key=order:9#token=${reader.token}`);
    await page.getByTestId("sentence").filter({ hasText: "billing" }).waitFor();
    await page.goto("about:blank");
    await page.goto(`${closedUrl}/console/lock?key=order:9#token=${operator.token}`);
    await page.getByTestId("sentence").filter({ hasText: "billing" }).waitFor();
    expect(page.url()).not.toContain(operator.token);
    expect(await page.evaluate('sessionStorage.getItem("holdfast-token")')).toBe(reader.token);
    expect(await page.getByRole("button", { name: "Break…" }).count()).toBe(0);
    await page.close();
  });
});

/** Leaves a record in the audit, and a waiter for `order:1`. */
async function breakAndWait(url: string): Promise<void> {
  const key = "order:3";
  const { fencingToken } = await acquire(url, { key, owner: "billing@web-2:43" });
  const reason = "its pod was evicted, and the charge is done by hand";
  expect((await sendRequest(url, "POST", "/v1/lock/break", { key, fencingToken, reason })).status).toBe(200);
  await sendRequest(url, "GET", "/v1/contention");
  const waiter = { key: "order:1", owner: "worker@web-3:44", waitMs: 60_000 };
  void acquire(url, waiter).catch(() => undefined);
  await waitUntil(async () => (await inspect(url, "order:1")).waiterCount === 1, "the waiter is queued");
}
