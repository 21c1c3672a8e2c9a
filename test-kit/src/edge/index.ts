export { bundleForBrowsers, type Bundle } from "./bundle.ts";
export { hasBrowser, openPage, type BrowserPage } from "./browser-page.ts";
export { startWorkerd, type Workerd } from "./workerd.ts";
