import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { isListed, liveError, rowOfKey, rows } from "../live/live.ts";
import { targetsOf } from "../model/break-target.ts";
import { grouped } from "../model/duration.ts";
import { go, route, setParams } from "../router.ts";
import { canBreak, canBreakSomething } from "../session.ts";
import { askToBreak } from "../ui/break-dialog.tsx";
import { commandFor } from "../ui/command.ts";
import { Icon } from "../ui/icons.tsx";
import { focusField, useKeys } from "../ui/keys.ts";
import { Command, Notice } from "../ui/parts.tsx";
import { copy } from "../ui/toast.tsx";
import { Strip } from "./locks-strip.tsx";
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
