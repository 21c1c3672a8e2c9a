import { computed, signal, type ReadonlySignal } from "@preact/signals";

/** The pages. Their addresses are one level below the console's folder, so that relative addresses of assets hold on every page. */
const pages = ["locks", "lock", "owners", "contention", "nodes", "doctor", "audit", "login"] as const;
export type Page = (typeof pages)[number];

export interface Route {
  readonly page: Page | "unknown";
  readonly params: URLSearchParams;
}

/** The console's folder, for example `https://locks.example/tools/console/`. */
const folder = (): URL => new URL("./", document.baseURI);

const address = signal(typeof location === "undefined" ? "" : location.href);

export const route: ReadonlySignal<Route> = computed(() => routeOf(address.value, folder().pathname));

/** Marks an entry of the browser's history whose former entry is a page of the console too. */
const fromConsole = "from the console";

/** The route of an address. The folder itself is the page of locks. */
export function routeOf(href: string, base: string): Route {
  const { pathname, searchParams } = new URL(href);
  const name = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  const page = name === "" ? "locks" : pages.find((each) => each === name);
  return { page: page ?? "unknown", params: searchParams };
}

/** The address of a page, for links. Empty parameters are left out. */
export function hrefOf(page: Page, params: Readonly<Record<string, string | undefined>> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return `./${page === "locks" ? "" : page}${text === "" ? "" : `?${text}`}`;
}

export function go(page: Page, params: Readonly<Record<string, string | undefined>> = {}): void {
  push(hrefOf(page, params));
}

/** The former page of the console, or the page of locks. */
export function goBack(): void {
  if (history.state === fromConsole) history.back();
  else go("locks");
}

/** Changes parameters of the present page without a new entry in the history of the browser. */
export function setParams(changes: Readonly<Record<string, string | undefined>>): void {
  const { page, params } = route.peek();
  if (page !== "unknown") {
    history.replaceState(history.state, "", hrefOf(page, { ...Object.fromEntries(params), ...changes }));
    address.value = location.href;
  }
}

/** Follows the links of the console without loading the page again, and the buttons of the browser. */
export function startRouter(): void {
  addEventListener("popstate", () => (address.value = location.href));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (link === null || !isPlain || link.target !== "" || !link.href.startsWith(folder().href)) return;
    event.preventDefault();
    push(link.href);
  });
}

function push(href: string): void {
  history.pushState(fromConsole, "", href);
  address.value = location.href;
  document.querySelector("#main")?.scrollTo(0, 0);
}
