import type { BrowserContext, Page } from "@holdfast/test-kit/edge";

/** A page of the console, and what it may never cause: errors, and violations of its content security policy. */
export interface ConsolePage {
  readonly page: Page;
  readonly problems: readonly string[];
}

/** Shorter than the time of a test, so that an error names what did not appear. */
const longestWaitMs = 20_000;

/** Reports violations by the console of the browser. */
const reportViolations = `addEventListener("securitypolicyviolation", (event) => {
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI);
})`;

/**
 * Opens a page of the console. An older service has fewer paths, so a refused request is no problem.
 * @param script runs in the page before its own scripts
 */
export async function openConsole(
  context: BrowserContext,
  url: string,
  path = "",
  script = "",
): Promise<ConsolePage> {
  const page = await context.newPage();
  page.setDefaultTimeout(longestWaitMs);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    const isRequest = message.location().url.includes("/v1/");
    if (message.type() === "error" && !isRequest) problems.push(message.text());
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) problems.push(`request to ${request.url()}`);
  });
  await page.addInitScript(`${reportViolations};${script}`);
  await page.goto(`${url}/console/${path}`);
  return { page, problems };
}

/** The row of a lock, once the page shows it. */
export function row(page: Page, key: string): ReturnType<Page["locator"]> {
  return page.locator(`tr[data-key="${key}"]`);
}

/** Resolves when the row of the lock names this holder. */
export async function showsHolder(page: Page, key: string, owner: string): Promise<void> {
  await row(page, key).locator(".col-holder", { hasText: owner }).waitFor();
}

/** Resolves when the chip in the header has this state. */
export async function showsLive(page: Page, state: string): Promise<void> {
  await page.locator(`[data-live="${state}"]`).waitFor();
}

/** Fills in the dialog that breaks a lock, and submits it. */
export async function submitBreak(page: Page, reason: string): Promise<void> {
  await page.getByTestId("break-reason").fill(reason);
  await page.getByTestId("break-confirm").check();
  await page.getByTestId("break-submit").click();
}
