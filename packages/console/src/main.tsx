import { effect, untracked } from "@preact/signals";
import { render, type ComponentType } from "preact";

import { needsToken } from "./api/client.ts";
import { startLive } from "./live/live.ts";
import { AuditPage } from "./pages/audit.tsx";
import { ContentionPage } from "./pages/contention.tsx";
import { DoctorPage } from "./pages/doctor.tsx";
import { LockPage } from "./pages/lock.tsx";
import { LocksPage } from "./pages/locks.tsx";
import { LoginPage } from "./pages/login.tsx";
import { NodesPage } from "./pages/nodes.tsx";
import { OwnersPage } from "./pages/owners.tsx";
import { go, hrefOf, route, startRouter, type Page } from "./router.ts";
import { loadMe, me, readPrefixes, startError } from "./session.ts";
import { startKeys } from "./ui/keys.ts";
import { Notice } from "./ui/parts.tsx";
import { Shell } from "./ui/shell.tsx";
import "./styles/main.css";

const pages: Readonly<Record<Page, ComponentType>> = {
  locks: LocksPage,
  lock: LockPage,
  owners: OwnersPage,
  contention: ContentionPage,
  nodes: NodesPage,
  doctor: DoctorPage,
  audit: AuditPage,
  login: LoginPage,
};

const titles: Readonly<Record<string, string>> = {
  locks: "Locks",
  owners: "Owners",
  contention: "Contention",
  nodes: "Nodes",
  doctor: "Doctor",
  audit: "Audit",
  login: "Sign in",
};
const retryMs = 2_000;

function App() {
  if (needsToken.value) {
    return (
      <main id="main" data-page="login">
        <LoginPage />
      </main>
    );
  }
  if (me.value === undefined)
    return <p class="loading">{startError.value === "" ? "Connecting…" : startError.value}</p>;
  const { page } = route.value;
  const Page = page === "unknown" || page === "login" ? undefined : pages[page];
  return (
    <Shell>
      {Page === undefined ? (
        <Notice title="No such page">
          <a href={hrefOf("locks")}>All locks</a>
        </Notice>
      ) : readPrefixes.value.length === 0 ? (
        <Notice title="Your token does not cover any lock">
          <p>The console needs the scope lock:read.</p>
        </Notice>
      ) : (
        <Page />
      )}
    </Shell>
  );
}

/** Reads locks while the service knows this client. Tabs with the same rights share one stream. */
function followSession(): void {
  let stop: (() => void) | undefined;
  effect(() => {
    untracked(() => stop?.());
    stop = undefined;
    const known = me.value;
    const prefixes = readPrefixes.value;
    if (known === undefined || needsToken.value || prefixes.length === 0) return;
    const name = JSON.stringify([new URL("./", document.baseURI).pathname, known.principal, prefixes]);
    stop = untracked(() => startLive(prefixes, name));
  });
}

effect(() => {
  const { page, params } = route.value;
  document.title = `${page === "lock" ? (params.get("key") ?? "Lock") : (titles[page] ?? "Holdfast")} · Holdfast`;
});
effect(() => {
  if (me.value !== undefined && !needsToken.value && route.value.page === "login") go("locks");
});

async function start(): Promise<void> {
  await loadMe();
  if (startError.value !== "") setTimeout(() => void start(), retryMs);
}

startRouter();
startKeys();
followSession();
render(<App />, document.getElementById("app") as HTMLElement);
void start();
