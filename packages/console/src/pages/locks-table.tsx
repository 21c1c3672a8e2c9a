import { useComputed, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { now } from "../live/live.ts";
import { formatTicking, formatTime } from "../model/duration.ts";
import { nextSort, formatSort, type Order } from "../model/order.ts";
import { heldMs, stateAt, type Row } from "../model/row.ts";
import type { TreeLine } from "../model/tree.ts";
import { go, setParams } from "../router.ts";
import { canBreak, canBreakSomething } from "../session.ts";
import { Icon } from "../ui/icons.tsx";
import { StateChip, TtlBar } from "../ui/parts.tsx";
import { Holders, KeyCell, Waiting } from "./lock-cells.tsx";
import {
  cursor,
  holdRows,
  idOf,
  lines,
  placeCursor,
  selected,
  sort,
  toggleGroup,
  toggleSelected,
} from "./locks-view.ts";

const columns: readonly { readonly name: Order | "reason"; readonly title: string }[] = [
  { name: "key", title: "Key" },
  { name: "kind", title: "Kind" },
  { name: "holder", title: "Holder" },
  { name: "held", title: "Held" },
  { name: "left", title: "Left" },
  { name: "waiting", title: "Waiting" },
  { name: "state", title: "State" },
  { name: "reason", title: "Reason" },
];

/** Rows outside the view that are in the document all the same, so that scrolling does not flicker. */
const overscan = 10;
/** The view moves by this many rows at once, so that not every step of a scroll renders. */
const step = 5;

/** The table of locks. Only the rows in view are in the document. */
export function LocksTable({ reveal }: { reveal: { value: number | undefined } }) {
  const box = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const height = useSignal(800);
  const rowHeight = useSignal(36);
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
      rowHeight.value = Number.parseFloat(getComputedStyle(element).getPropertyValue("--row-height")) || 36;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useReveal(box, reveal, rowHeight.value);
  const range = useComputed(() => {
    const first = Math.max(0, Math.floor(scrollTop.value / rowHeight.value / step) * step - overscan);
    return { first, last: Math.ceil((scrollTop.value + height.value) / rowHeight.value) + overscan };
  });
  const element = useElements();
  const all = lines.value;
  const { first, last } = range.value;
  const inView = all.slice(first, last);
  return (
    <div
      class="table-box"
      ref={box}
      onScroll={({ currentTarget }) => (scrollTop.value = currentTarget.scrollTop)}
    >
      <table class="table locks" data-testid="locks-table" aria-label="Locks" aria-rowcount={all.length}>
        <Head />
        <tbody onPointerEnter={() => holdRows(true)} onPointerLeave={() => holdRows(false)}>
          <Spacer px={Math.min(first, all.length) * rowHeight.value} />
          {inView.map((line, index) => element(line, first + index))}
          <Spacer px={Math.max(0, all.length - last) * rowHeight.value} />
        </tbody>
      </table>
    </div>
  );
}

/** Makes the element of a line, once: Preact skips an element that it has rendered before. */
function useElements(): (line: TreeLine, index: number) => VNode {
  const known = useRef(new WeakMap<TreeLine, VNode>());
  return (line, index) => {
    const element = known.current.get(line) ?? <Line key={idOf(line)} line={line} index={index} />;
    known.current.set(line, element);
    return element;
  };
}

/** Scrolls to the row of the cursor after a key press. */
function useReveal(
  box: { current: HTMLDivElement | null },
  reveal: { value: number | undefined },
  rowHeight: number,
): void {
  const index = reveal.value;
  useEffect(() => {
    const element = box.current;
    if (index === undefined || element === null) return;
    const head = element.querySelector("thead")?.clientHeight ?? 0;
    const top = index * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    const bottom = top + rowHeight + head - element.clientHeight;
    if (bottom > element.scrollTop) element.scrollTop = bottom;
    reveal.value = undefined;
  }, [index]);
}

function Head() {
  const present = sort.value;
  return (
    <thead>
      <tr>
        {canBreakSomething.value && (
          <th class="col-select" scope="col">
            <span class="visually-hidden">Selected</span>
          </th>
        )}
        {columns.map(({ name, title }) => {
          const isSorted = name === present.by;
          const direction = present.isDescending ? "descending" : "ascending";
          return (
            <th key={name} scope="col" class={`col-${name}`} {...(isSorted && { "aria-sort": direction })}>
              {name === "reason" ? (
                title
              ) : (
                <button
                  type="button"
                  class="sorter"
                  onClick={() => setParams({ sort: formatSort(nextSort(present, name)) })}
                >
                  {title}
                  <span class={`arrow ${isSorted ? `arrow-${direction}` : ""}`} aria-hidden="true" />
                </button>
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Spacer({ px }: { px: number }) {
  return px <= 0 ? null : (
    <tr class="spacer-row" aria-hidden="true">
      <td style={{ height: `${px}px` }} />
    </tr>
  );
}

function Line({ line, index }: { line: TreeLine; index: number }) {
  return line.type === "group" ? (
    <GroupLine line={line} index={index} />
  ) : (
    <LockLine {...line} index={index} />
  );
}

function GroupLine({ line, index }: { line: Extract<TreeLine, { type: "group" }>; index: number }) {
  const { prefix, label, depth, isOpen, count, waiting, late } = line;
  const isCursor = cursor.value === idOf(line);
  return (
    <tr
      class={`group ${isCursor ? "cursor" : ""}`}
      aria-rowindex={index + 1}
      onClick={() => toggleGroup(prefix)}
    >
      {canBreakSomething.value && <td class="col-select" />}
      <td class="col-key" colSpan={2} style={{ "--depth": depth }}>
        <button
          type="button"
          class="opener"
          aria-expanded={isOpen}
          onClick={(event) => {
            event.stopPropagation();
            placeCursor(idOf(line));
            toggleGroup(prefix);
          }}
        >
          <Icon name={isOpen ? "open" : "closed"} />
          <code>{label}</code>
        </button>
      </td>
      <td class="col-holder muted num">{count} locks</td>
      <td class="col-held" />
      <td class="col-left" />
      <td class="col-waiting num">{waiting > 0 ? waiting : <span class="muted">–</span>}</td>
      <td class="col-state">
        {late > 0 && (
          <span class="chip chip-late">
            <Icon name="late" />
            {late} stale
          </span>
        )}
      </td>
      <td class="col-reason" />
    </tr>
  );
}

function LockLine({ row, depth, label, index }: { row: Row; depth: number; label: string; index: number }) {
  const { key, lock } = row;
  const time = now.value;
  const state = stateAt(row, time);
  const isCursor = cursor.value === key;
  const held = heldMs(row, time);
  const [holder] = lock.holders;
  return (
    <tr
      data-key={key}
      data-state={state.replace(" ", "-")}
      class={`${isCursor ? "cursor" : ""} ${selected.value.has(key) ? "selected" : ""}`}
      aria-rowindex={index + 1}
      aria-selected={isCursor}
      onClick={({ target }) => {
        if (!(target as Element).closest("a, input")) go("lock", { key });
      }}
    >
      {canBreakSomething.value && (
        <td class="col-select">
          {canBreak(key) && (
            <input
              type="checkbox"
              aria-label={`Select ${key}`}
              checked={selected.value.has(key)}
              onChange={() => toggleSelected(key)}
              tabIndex={-1}
            />
          )}
        </td>
      )}
      <KeyCell row={row} depth={depth} label={label} held={held} />
      <td class="col-kind muted">{lock.kind}</td>
      <td class="col-holder">
        <Holders row={row} />
      </td>
      <td class="col-held num" title={row.since === undefined ? undefined : formatTime(row.since)}>
        {held === undefined ? (
          <span class="muted">–</span>
        ) : (
          `${formatTicking(held)}${row.isSinceExact ? "" : "+"}`
        )}
      </td>
      <td class="col-left">
        {state === "held long" ? <span class="muted">renewing</span> : <TtlBar row={row} now={time} />}
      </td>
      <td class="col-waiting num">
        <Waiting row={row} now={time} />
      </td>
      <td class="col-state">
        <StateChip state={state} {...(row.long && { long: row.long })} />
      </td>
      <td class="col-reason muted" title={holder?.reason}>
        {holder?.reason}
      </td>
    </tr>
  );
}
