import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { formatTicking } from "../model/duration.ts";
import { ageMs, liveError, liveState, togglePause } from "../live/live.ts";
import { go, goBack, hrefOf, route, type Page } from "../router.ts";
import { canLogout, isAdmin, logout, me } from "../session.ts";
import { saveTheme, savedTheme, themes } from "../theme.ts";
import { BreakDialog } from "./break-dialog.tsx";
import { Help, openHelp } from "./help.tsx";
import { Icon, Mark } from "./icons.tsx";
import { useKeys } from "./keys.ts";
import { Toasts } from "./toast.tsx";

const links: readonly { readonly page: Page; readonly title: string; readonly isForAdmins?: true }[] = [
  { page: "locks", title: "Locks" },
  { page: "owners", title: "Owners" },
  { page: "contention", title: "Contention" },
  { page: "nodes", title: "Nodes" },
  { page: "doctor", title: "Doctor", isForAdmins: true },
  { page: "audit", title: "Audit" },
];

/** The frame of all pages. */
export function Shell({ children }: { children: ComponentChildren }) {
  const keys = {
    "?": openHelp,
    p: togglePause,
    "g l": () => go("locks"),
    "g o": () => go("owners"),
    "g c": () => go("contention"),
    "g n": () => go("nodes"),
    "g d": () => go("doctor"),
    "g a": () => go("audit"),
    Escape: goBack,
  };
  useKeys(keys, true);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <TopBar />
      <main id="main" tabIndex={-1} data-page={route.value.page}>
        {children}
      </main>
      <Toasts />
      <BreakDialog />
      <Help />
    </>
  );
}

function TopBar() {
  const { page } = route.value;
  const present = page === "lock" ? "locks" : page;
  const shown = links.filter(({ isForAdmins }) => isForAdmins !== true || isAdmin.value);
  return (
    <header class="top">
      <a class="brand" href={hrefOf("locks")}>
        <Mark />
        Holdfast
      </a>
      <nav aria-label="Pages">
        {shown.map((link) => (
          <a
            key={link.page}
            href={hrefOf(link.page)}
            {...(link.page === present && { "aria-current": "page" as const })}
          >
            {link.title}
          </a>
        ))}
      </nav>
      <div class="top-end">
        <Engine />
        <LiveChip />
        <ThemeButton />
        <button
          type="button"
          class="quiet"
          aria-label="Keys and filters"
          title="Keys and filters (?)"
          onClick={openHelp}
        >
          ?
        </button>
        {canLogout.value && (
          <button type="button" class="quiet" onClick={logout}>
            Sign out
          </button>
        )}
      </div>
    </header>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}

function Engine() {
  const known = me.value;
  if (known?.engine === undefined) return null;
  const { name, guarantee } = known.engine;
  return (
    <span class="engine" title={`Guarantee: ${guarantee}. Signed in as ${known.principal}`}>
      {name}
      {known.readOnly && <small> read-only</small>}
    </span>
  );
}

/** Whether the data are live. A press pauses and continues. */
function LiveChip() {
  const state = liveState.value;
  const age = formatTicking(ageMs.value);
  const text = {
    live: "live",
    paused: "paused",
    connecting: "connecting",
    reconnecting: `reconnecting, ${age} old`,
    old: `${age} old`,
  }[state];
  return (
    <button
      type="button"
      class={`live live-${state}`}
      data-live={state}
      title={liveError.value === "" ? "p: pause and continue" : liveError.value}
      onClick={togglePause}
    >
      <span class="live-dot" aria-hidden="true" />
      <span class="num">{text}</span>
    </button>
  );
}

function ThemeButton() {
  const theme = useSignal(savedTheme());
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "auto";
  const icon = { auto: "auto", light: "sun", dark: "moon" } as const;
  return (
    <button
      type="button"
      class="quiet"
      aria-label={`Theme: ${theme.value}. Change to ${next}`}
      title={`Theme: ${theme.value}`}
      onClick={() => {
        saveTheme(next);
        theme.value = next;
      }}
    >
      <Icon name={icon[theme.value]} />
    </button>
  );
}
