import { createLocks, type Driver, type Locks } from "holdfast";
import type { WireLock } from "holdfast/http";
import { memory } from "holdfast/memory";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";
import { hasBrowser, launchBrowser, type Browser, type Page } from "@holdfast/test-kit/edge";

import { createService, type Service } from "../src/index.ts";
import { openConsole, row, showsHolder, showsLive } from "./support/console-page.ts";
import { sendRequest } from "./support/service.ts";

/** Records the states of the chip. */
const recordLive = `{
  const chip = document.querySelector("[data-live]");
  globalThis.seen = [];
  new MutationObserver(() => seen.push(chip.dataset.live)).observe(chip, { attributeFilter: ["data-live"] });
}`;
const frozen: number[] = [];

let browser: Browser;
let driver: Driver;
let locks: Locks;
let service: Service;
let url: string;

const isSkipped = !hasBrowser && !process.env["CI"];
if (isSkipped) {
  console.warn("\n!!! chromium is missing: the tests that need it are SKIPPED !!!\n");
}

describe.skipIf(isSkipped)("a tab of the console that was frozen", () => {
  beforeAll(async () => {
    driver = memory();
    locks = createLocks(driver, { owner: "billing" });
    service = await createService({ engine: driver });
    url = await service.listen({ port: 0 });
    browser = await launchBrowser(["--disable-features=SpareRendererForSitePerProcess"]);
  });

  afterAll(async () => {
    for (const pid of frozen) process.kill(pid, "SIGCONT");
    await browser.close();
    await service.close();
    await locks.close();
  });

  /** A suspended machine and a browser that is short of memory do the same: the tab runs nothing, without an event before. */
  test("shows what the service lists, with the right times, alone and beside a tab that took its place", async () => {
    const [stays, goes] = [await locks.acquire("stays"), await locks.acquire("goes")];
    const alone = await open();
    const leader = await open();
    const renderers = await rendererPids();
    const follower = await open(leader);
    expect(await rendererPids()).not.toEqual(renderers);
    for (const page of [alone, leader]) await page.evaluate(recordLive);

    for (const pid of renderers) process.kill(pid, "SIGSTOP");
    frozen.push(...renderers);
    await goes.release();
    await restartService(); // and the streams of the frozen tabs end
    const comes = await locks.acquire("comes", { owner: "shipping" });
    await showsHolder(follower, "comes", "shipping"); // the follower leads, because the leader is silent
    await row(follower, "goes").waitFor({ state: "detached" });
    for (const pid of frozen.splice(0)) process.kill(pid, "SIGCONT");

    for (const page of [alone, leader]) {
      await showsHolder(page, "comes", "shipping");
      await row(page, "goes").waitFor({ state: "detached" });
      await showsLive(page, "live");
      expect(await page.evaluate("seen")).toEqual(expect.arrayContaining(["reconnecting", "live"]));
      await waitUntil(async () => (await differences(page)).length === 0, "the page shows the list");
    }
    await Promise.all([stays.release(), comes.release()]);
    await row(leader, "stays").waitFor({ state: "detached" });
  });
});

/** A page in the storage of another one, or in its own. */
async function open(beside?: Page): Promise<Page> {
  const context = beside?.context() ?? (await browser.newContext());
  const { page } = await openConsole(context, url);
  await row(page, "stays").waitFor();
  await showsLive(page, "live");
  return page;
}

async function rendererPids(): Promise<number[]> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  return processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
}

async function restartService(): Promise<void> {
  await service.close();
  service = await createService({ engine: driver });
  await service.listen({ port: Number(new URL(url).port) });
}

/** The keys whose row differs from the list of the service: by its presence, its holder, or the age of its hold. */
async function differences(page: Page): Promise<string[]> {
  const { body } = await sendRequest(url, "GET", "/v1/locks");
  const listed = (body as { locks: WireLock[] }).locks;
  const rows = await page.locator("tr[data-key]").evaluateAll((found) =>
    found.map((each) => ({
      key: each.getAttribute("data-key") ?? "",
      holder: each.querySelector(".col-holder")?.textContent ?? "",
      held: each.querySelector(".col-held")?.textContent ?? "",
    })),
  );
  const keys = new Set([...listed, ...rows].map(({ key }) => key));
  return [...keys].filter((key) => {
    const shown = rows.find((each) => each.key === key);
    const holder = listed.find((each) => each.key === key)?.holders[0];
    const seconds = Math.floor((holder?.heldMs ?? 0) / 1_000);
    const isAge = [seconds - 1, seconds, seconds + 1].some(
      (age) => shown?.held === `${age < 1 ? "<1" : age}s`,
    );
    return shown?.holder !== holder?.owner || !isAge;
  });
}
