import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import type { HoldTimes } from "../api/types.ts";
import { formatTicking } from "../model/duration.ts";
import { ageMs, liveError, liveState, togglePause } from "../live/live.ts";
import { setUsual } from "../live/usual.ts";
import { go, goBack, hrefOf, route, type Page } from "../router.ts";
import { canLogout, isAdmin, isOffered, logout, me } from "../session.ts";
import { saveTheme, savedTheme, themes } from "../theme.ts";
import { BreakDialog } from "./break-dialog.tsx";
import { Help, isHelpNew, openHelp } from "./help.tsx";
import { Icon, Mark } from "./icons.tsx";
import { focusField, useKeys } from "./keys.ts";
import { Toasts } from "./toast.tsx";
import { usePoll } from "./use-poll.ts";

interface PageLink {
  readonly page: Page;
  readonly title: string;
  readonly isForAdmins?: true;
  /** Not every service and engine has the data of the page. */
  readonly isOptional?: true;
}

const links: readonly PageLink[] = [
  { page: "locks", title: "Locks" },
  { page: "owners", title: "Owners" },
  { page: "contention", title: "Contention" },
  { page: "nodes", title: "Nodes" },
  { page: "doctor", title: "Doctor", isForAdmins: true, isOptional: true },
  { page: "audit", title: "Audit", isOptional: true },
];

/** Reads how long holds usually last, so that rows can say which hold is long. */
function UsualHolds() {
  const { data } = usePoll<{ keys: readonly HoldTimes[] }>("v1/hold-times", {}, 10_000);
  useEffect(() => setUsual(data?.keys ?? []), [data]);
  return null;
}

/** The frame of all pages. */
export function Shell({ children }: { children: ComponentChildren }) {
  const keys = {
    "?": openHelp,
    "/": () => {
      go("locks");
      requestAnimationFrame(() => focusField("filter"));
    },
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
      <UsualHolds />
      <Toasts />
      <BreakDialog />
      <Help />
    </>
  );
}

function TopBar() {
  const { page } = route.value;
  const present = page === "lock" ? "locks" : page;
  const shown = links.filter(
    (link) =>
      (link.isForAdmins !== true || isAdmin.value) && (link.isOptional !== true || isOffered(link.page)),
  );
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
          aria-label={isHelpNew.value ? "? shows the keys" : "Keys and filters"}
          title="Keys and filters (?)"
          onClick={openHelp}
        >
          {isHelpNew.value ? (
            <span class="help-hint">
              <kbd>?</kbd>
              <span>shows the keys</span>
            </span>
          ) : (
            "?"
          )}
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
