export { bundleForBrowsers, type Bundle } from "./bundle.ts";
export { hasBrowser, launchBrowser, type Browser, type BrowserContext, type Page } from "./browser.ts";
export { openPage, type BrowserPage } from "./browser-page.ts";
export { startWorkerd, type Workerd } from "./workerd.ts";
