import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { History, Nodes } from "../api/types.ts";
import { isListed, liveError, now, rowOfKey, rows } from "../live/live.ts";
import { formatTicking, formatTime } from "../model/duration.ts";
import { isLongWait, oldestWaitMs, type Row } from "../model/row.ts";
import { go, hrefOf, route, setParams } from "../router.ts";
import { canBreak, canBreakSomething } from "../session.ts";
import { targetsOf } from "../ui/break.ts";
import { askToBreak } from "../ui/break-dialog.tsx";
import { commandFor } from "../ui/command.ts";
import { Icon } from "../ui/icons.tsx";
import { focusField, useKeys } from "../ui/keys.ts";
import { Command, Notice, Stat } from "../ui/parts.tsx";
import { copy } from "../ui/toast.tsx";
import { usePoll } from "../ui/use-poll.ts";
import { LocksTable } from "./locks-table.tsx";
import * as view from "./locks-view.ts";

export function LocksPage() {
  const reveal = useSignal<number | undefined>(undefined);
  useEffect(() => {
    view.cursor.value = route.peek().params.get("at") ?? undefined;
    return () => view.holdRows(false);
  }, []);
  useLockKeys(reveal);
  return (
    <div class="page page-locks">
      <h1 class="visually-hidden">Locks</h1>
      <Strip />
      <Toolbar />
      {view.lines.value.length === 0 ? <Empty /> : <LocksTable reveal={reveal} />}
      <SelectionBar />
    </div>
  );
}

function useLockKeys(reveal: { value: number | undefined }): void {
  const move = (by: number) => () => (reveal.value = view.moveCursor(by));
  const here = (): string | undefined => view.cursor.value;
  const onKey = (action: (key: string) => void) => () => {
    const key = here();
    if (key !== undefined && rowOfKey(key) !== undefined) action(key);
  };
  useKeys({
    j: move(1),
    ArrowDown: move(1),
    k: move(-1),
    ArrowUp: move(-1),
    PageDown: move(20),
    PageUp: move(-20),
    "/": () => focusField("filter"),
    Enter: () => {
      const id = here();
      if (id?.endsWith("*") === true && rowOfKey(id) === undefined) view.toggleGroup(id.slice(0, -1));
      else if (id !== undefined) go("lock", { key: id });
    },
    x: onKey(view.toggleSelected),
    b: () => askForBreak(view.selected.value.size > 0 ? [...view.selected.value] : [here() ?? ""]),
    o: onKey((key) => go("owners", { owner: rowOfKey(key)?.lock.holders[0]?.owner })),
    y: onKey((key) => void copy(key, "the key")),
    c: onKey((key) => void copy(commandFor(key), "the command")),
    Escape: () => {
      if (view.selected.value.size > 0) view.selected.value = new Set();
      else if (view.filterText.value !== "") setParams({ q: undefined });
      else view.placeCursor(undefined);
    },
  });
}

function askForBreak(keys: readonly string[]): void {
  const targets = keys.flatMap((key) => {
    const row = rowOfKey(key);
    return row !== undefined && canBreak(key) ? targetsOf(row) : [];
  });
  askToBreak({ targets, done: () => (view.selected.value = new Set()) });
}

function Strip() {
  const { held, waiting, stale, long, oldest } = view.totals.value;
  const nodes = usePoll<Nodes>("v1/nodes", {}, 10_000).data?.nodes;
  const { lostLastHour: lost, knownSince = 0 } = usePoll<History>("v1/history", {}, 10_000).data ?? {};
  const up = nodes?.filter(({ reachable, quarantine }) => reachable && quarantine === null).length ?? 0;
  return (
    <>
      <dl class="strip">
        <Stat label="Held">{grouped(held)}</Stat>
        <Stat label="Waiting">
          {waiting === 0 ? "0" : <a href={hrefOf("locks", { q: "waiters>0" })}>{grouped(waiting)}</a>}
        </Stat>
        <OldestWait row={oldest} />
        <Stat label="Stale" isAlarm={stale > 0}>
          {stale === 0 ? "0" : <a href={hrefOf("locks", { q: "stale" })}>{grouped(stale)}</a>}
        </Stat>
        <Stat label="Held long" isWarning={long > 0}>
          {long === 0 ? "0" : <a href={hrefOf("locks", { q: "long" })}>{grouped(long)}</a>}
        </Stat>
        {lost !== undefined && (
          <Stat
            label="Lost, last hour"
            title={`Holds that expired, as far as the service has watched: since ${formatTime(knownSince)}`}
            isAlarm={lost > 0}
          >
            {grouped(lost)}
          </Stat>
        )}
        {nodes !== undefined && (
          <Stat label="Nodes up" isAlarm={up < nodes.length}>
            <a href={hrefOf("nodes")}>
              {up} of {nodes.length}
            </a>
          </Stat>
        )}
      </dl>
      <p class="visually-hidden" aria-live="polite">
        {held} held, {waiting} waiting, {stale} stale, {long} held long
      </p>
    </>
  );
}

/** The oldest wait of all locks, with a link to its lock. */
function OldestWait({ row }: { row: Row | undefined }) {
  const waited = row === undefined ? undefined : oldestWaitMs(row, now.value);
  if (row === undefined || waited === undefined) return <Stat label="Oldest wait">–</Stat>;
  return (
    <Stat label="Oldest wait" isWarning={isLongWait(row, waited)}>
      <a href={hrefOf("lock", { key: row.key })}>{formatTicking(waited)}</a>
    </Stat>
  );
}

const quickFilters = {
  stale: "Not renewed in time, of another library, or without an expiry",
  long: "Renewed in time, and held much longer than usual",
  "waiters>0": "With waiters",
  foreign: "Of another library",
};

function Toolbar() {
  const { problems } = view.filter.value;
  const total = rows.value.length;
  const count = view.shown.value.length;
  return (
    <div class="toolbar">
      <FilterBox />
      <div class="quick" role="group" aria-label="Quick filters">
        {Object.entries(quickFilters).map(([term, title]) => (
          <QuickFilter key={term} term={term} title={title} />
        ))}
      </div>
      <p class="shown num" title="The rows keep their places under the pointer">
        {problems.length > 0 ? (
          <span class="problem">{problems[0]}</span>
        ) : (
          <>
            {view.newCount.value > 0 && <span class="fresh">+{view.newCount.value} new · </span>}
            {count === total ? grouped(total) : `${grouped(count)} of ${grouped(total)}`}
          </>
        )}
      </p>
      <div class="segments" role="group" aria-label="View">
        <button
          type="button"
          aria-pressed={!view.isTree.value}
          onClick={() => setParams({ view: undefined })}
        >
          Flat
        </button>
        <button type="button" aria-pressed={view.isTree.value} onClick={() => setParams({ view: "tree" })}>
          By prefix
        </button>
      </div>
    </div>
  );
}

const filterDelayMs = 120;

function FilterBox() {
  const draft = useSignal(view.filterText.peek());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const known = view.filterText.value;
  useEffect(() => {
    draft.value = known;
  }, [known]);
  /** Applies a filter at once, and gives the keys back to the table. */
  const leave = (event: KeyboardEvent, value: string): void => {
    event.preventDefault();
    clearTimeout(timer.current);
    draft.value = value;
    setParams({ q: value === "" ? undefined : value });
    (event.target as HTMLElement).blur();
  };
  return (
    <label class="filter">
      <Icon name="search" />
      <span class="visually-hidden">Filter</span>
      <input
        id="filter"
        data-testid="filter"
        type="search"
        placeholder="Filter: order: owner:billing label.team:pay state:late waiters>0 held>5m"
        autocomplete="off"
        spellcheck={false}
        value={draft.value}
        onInput={({ currentTarget: { value } }) => {
          draft.value = value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setParams({ q: value }), filterDelayMs);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            leave(event, "");
          } else if (event.key === "Enter" || event.key === "ArrowDown") {
            leave(event, draft.value);
            view.moveCursor(1);
          }
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

function QuickFilter({ term, title }: { term: string; title: string }) {
  const terms = view.filterText.value.split(/\s+/).filter((each) => each !== "");
  const isOn = terms.includes(term);
  const next = isOn ? terms.filter((each) => each !== term) : [...terms, term];
  return (
    <button
      type="button"
      class="pill"
      title={title}
      aria-pressed={isOn}
      onClick={() => setParams({ q: next.join(" ") })}
    >
      {term}
    </button>
  );
}

function Empty() {
  if (!isListed.value)
    return <p class="loading">{liveError.value === "" ? "Reading the locks…" : liveError.value}</p>;
  if (rows.value.length > 0) {
    return (
      <Notice title="No lock matches the filter" icon="search">
        <button type="button" onClick={() => setParams({ q: undefined })}>
          Show all {grouped(rows.value.length)}
        </button>
      </Notice>
    );
  }
  return (
    <Notice title="No lock is held" icon="free">
      <p>Hold one for half a minute, and watch it appear:</p>
      <Command text="npx holdfast run --key demo -- sleep 30" />
    </Notice>
  );
}

function SelectionBar() {
  const count = view.selected.value.size;
  if (count === 0 || !canBreakSomething.value) return null;
  return (
    <div class="selection" role="region" aria-label="Selection">
      <span class="num">{count} selected</span>
      <button type="button" class="danger" onClick={() => askForBreak([...view.selected.value])}>
        Break…
      </button>
      <button type="button" class="quiet" onClick={() => (view.selected.value = new Set())}>
        Clear
      </button>
    </div>
  );
}

const grouping = new Intl.NumberFormat("en");

function grouped(count: number): string {
  return grouping.format(count).replaceAll(",", "\u202f");
}
