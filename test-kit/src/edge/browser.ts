import { existsSync } from "node:fs";

import { chromium, type Browser } from "playwright-core";

export type { Browser, BrowserContext, Page } from "playwright-core";

/** The browser's program. `HOLDFAST_CHROMIUM` can name another one. */
const executablePath = process.env["HOLDFAST_CHROMIUM"] ?? "/usr/bin/chromium";

export const hasBrowser: boolean = existsSync(executablePath);

export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...flags] });
}
