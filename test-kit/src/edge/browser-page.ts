import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { launchBrowser, type Page } from "./browser.ts";

/** A page in a real browser. */
export interface BrowserPage {
  /** The origin of the page. */
  readonly origin: string;
  /** Calls an exported function of the page's module. Arguments and result are JSON. */
  call(name: string, ...args: readonly unknown[]): Promise<unknown>;
  /** Closes the page, and opens it again. */
  reopen(): Promise<void>;
  stop(): Promise<void>;
}

const html = `<!doctype html>
<title>Locks</title>
<script type="module">
  import * as program from "/module.js";
  globalThis.program = program;
</script>`;

/** Opens a page of its own origin whose only script is this ES module. */
export async function openPage(module: string): Promise<BrowserPage> {
  const server = createServer((request, response) => {
    const isModule = request.url === "/module.js";
    response.setHeader("content-type", isModule ? "text/javascript" : "text/html");
    response.end(isModule ? module : html);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await launchBrowser();
  const open = async (): Promise<Page> => {
    const opened = await browser.newPage();
    await opened.goto(origin);
    return opened;
  };
  let page = await open();
  return {
    origin,
    call: (name, ...args) => page.evaluate(`program[${JSON.stringify(name)}](...${JSON.stringify(args)})`),
    reopen: async () => {
      await page.close();
      page = await open();
    },
    stop: async () => {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
