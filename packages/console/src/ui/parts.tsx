import type { ComponentChildren } from "preact";

import { formatTicking, formatTime } from "../model/duration.ts";
import { longText, type LongHold } from "../model/long-hold.ts";
import { ownerParts } from "../model/owner.ts";
import { leftMs, type Row } from "../model/row.ts";
import { stateTitles, type StateWord } from "../model/states.ts";
import { Icon, type IconName } from "./icons.tsx";

/** The state of a lock, as a word with a sign. */
export function StateChip({ state, long }: { state: StateWord; long?: LongHold }) {
  const why = state === "held long" && long !== undefined ? `: ${longText(long)}` : "";
  return (
    <span class={`chip chip-${state.replace(" ", "-")}`} title={`${stateTitles[state]}${why}`}>
      <Icon name={state} />
      {state}
    </span>
  );
}

/** The remaining TTL. The tick is where a healthy holder renews: after a third of the TTL. */
export function TtlBar({ row, now, isLarge = false }: { row: Row; now: number; isLarge?: boolean }) {
  const left = leftMs(row, now);
  if (left === undefined)
    return <span class="muted">{row.state === "free" || row.state === "latch" ? "–" : "no end"}</span>;
  const part = Math.min(1, left / Math.max(1, row.ttlMs ?? left));
  return (
    <span class={`ttl ${isLarge ? "ttl-large" : ""} ${row.state === "late" ? "ttl-late" : ""}`}>
      <span class="ttl-text num">{formatTicking(left)}</span>
      <svg class="ttl-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect class="ttl-ground" width="100" height="4" />
        <rect class="ttl-left" width={(part * 100).toFixed(1)} height="4" />
        <rect class="ttl-tick" x="66.2" width="0.9" height="4" />
      </svg>
    </span>
  );
}

/** The name of an owner, with its host in a quieter tone. */
export function OwnerName({ owner }: { owner: string }) {
  if (owner === "unknown") return <span class="owner muted">unknown holder</span>;
  const { name, host, pid } = ownerParts(owner);
  return (
    <span class="owner" title={owner}>
      <span class="owner-name">{name}</span>
      {host !== undefined && (
        <span class="owner-host">
          @{host}
          {pid !== undefined && `:${pid}`}
        </span>
      )}
    </span>
  );
}

/** A point in time as its age, with the absolute time in the title. */
export function Ago({ at, now }: { at: number; now: number }) {
  const date = new Date(at);
  return (
    <time class="num" dateTime={date.toISOString()} title={formatTime(at)}>
      {formatTicking(Math.max(0, now - at))} ago
    </time>
  );
}

export function Notice({
  title,
  icon = "foreign",
  children,
}: {
  title: string;
  icon?: IconName;
  children?: ComponentChildren;
}) {
  return (
    <div class="notice" data-testid="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Stat({
  label,
  title,
  children,
  isAlarm = false,
  isWarning = false,
}: {
  label: string;
  title?: string;
  children: ComponentChildren;
  isAlarm?: boolean;
  isWarning?: boolean;
}) {
  return (
    <div class={`stat ${isAlarm ? "stat-alarm" : ""} ${isWarning ? "stat-warning" : ""}`} title={title}>
      <dt>{label}</dt>
      <dd class="num">{children}</dd>
    </div>
  );
}

export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <h1>{title}</h1>
      {children}
    </header>
  );
}

/** A wide table, which the keyboard can scroll on a narrow screen. */
export function TableScroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="table-scroll" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** A command to copy. */
export function Command({ text }: { text: string }) {
  return <code class="command">{text}</code>;
}
