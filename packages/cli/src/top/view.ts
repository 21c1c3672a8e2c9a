import type { LockHistory } from "./observation.ts";

/** The sort orders of the table. */
type Order = "age" | "left" | "owner" | "waiting";
type Mode = "list" | "details" | "help" | "filter" | "confirm";

/** The state of the screen, except the locks. */
export interface View {
  readonly mode: Mode;
  readonly order: Order;
  readonly filter: string;
  readonly onlyStale: boolean;
  readonly isPaused: boolean;
  /** The key under the cursor, because the rows of the table move. */
  readonly cursor: string | undefined;
  readonly selected: ReadonlySet<string>;
}

export const firstView: View = {
  mode: "list",
  order: "age",
  filter: "",
  onlyStale: false,
  isPaused: false,
  cursor: undefined,
  selected: new Set(),
};

/** The action of a key, besides a new view. */
export type Action = "quit" | "break" | undefined;

export interface KeyPress {
  readonly name: string;
  readonly text: string;
  readonly isControl: boolean;
}

/** The shown locks, in order. */
export function shownLocks(locks: readonly LockHistory[], { filter, onlyStale, order }: View): LockHistory[] {
  const wanted = locks.filter(
    ({ state, isStale }) =>
      (!onlyStale || isStale) &&
      (filter === "" ||
        state.key.includes(filter) ||
        state.holders.some(({ owner }) => owner.includes(filter))),
  );
  return wanted.sort((a, b) => orders[order](a, b) || (a.state.key < b.state.key ? -1 : 1));
}

const orders: Readonly<Record<Order, (a: LockHistory, b: LockHistory) => number>> = {
  age: (a, b) => b.heldMs - a.heldMs,
  left: (a, b) => (a.state.remainingMs ?? Infinity) - (b.state.remainingMs ?? Infinity) || 0,
  owner: (a, b) => ownerOf(a).localeCompare(ownerOf(b)),
  waiting: (a, b) => b.state.waiterCount - a.state.waiterCount,
};

/** Handles a key press. */
export function handleKey(
  view: View,
  key: KeyPress,
  locks: readonly LockHistory[],
): { view: View; action?: Action } {
  if (key.isControl && key.name === "c") {
    return { view, action: "quit" };
  }
  switch (view.mode) {
    case "filter":
      return { view: typed(view, key) };
    case "confirm":
      return { view: { ...view, mode: "list" }, action: key.name === "y" ? "break" : undefined };
    case "help":
    case "details":
      return inSubMode(view, key);
    case "list":
      return listed(view, key, locks);
  }
}

/** The locks to break: the marked ones, or else the one under the cursor. */
export function actionFor(view: View, locks: readonly LockHistory[]): LockHistory[] {
  const keys = view.selected.size > 0 ? view.selected : new Set([view.cursor]);
  return locks.filter(({ state }) => keys.has(state.key));
}

function inSubMode(view: View, key: KeyPress): { view: View; action?: Action } {
  if (key.name === "q") {
    return { view, action: "quit" };
  }
  return key.name === "u" && view.mode === "details"
    ? { view: { ...view, mode: "confirm" } }
    : { view: { ...view, mode: "list" } };
}

function typed(view: View, { name, text }: KeyPress): View {
  if (name === "return" || name === "escape") {
    return { ...view, mode: "list", filter: name === "escape" ? "" : view.filter };
  }
  if (name === "backspace") {
    return { ...view, filter: view.filter.slice(0, -1) };
  }
  return /^[^\p{C}]+$/u.test(text) ? { ...view, filter: view.filter + text } : view;
}

const switches: Readonly<Record<string, (view: View) => Partial<View>>> = {
  a: () => ({ order: "age" }),
  t: () => ({ order: "left" }),
  o: () => ({ order: "owner" }),
  w: () => ({ order: "waiting" }),
  s: ({ onlyStale }) => ({ onlyStale: !onlyStale }),
  p: ({ isPaused }) => ({ isPaused: !isPaused }),
  "/": () => ({ mode: "filter", filter: "" }),
  "?": () => ({ mode: "help" }),
  escape: () => ({ selected: new Set<string>(), filter: "", onlyStale: false }),
};

function listed(view: View, key: KeyPress, locks: readonly LockHistory[]): { view: View; action?: Action } {
  if (key.name === "q") {
    return { view, action: "quit" };
  }
  const change = switches[key.name] ?? switches[key.text];
  if (change !== undefined) {
    return { view: { ...view, ...change(view) } };
  }
  const shown = shownLocks(locks, view);
  const at = Math.max(
    0,
    shown.findIndex(({ state }) => state.key === view.cursor),
  );
  const moved = (to: number): View => ({
    ...view,
    cursor: shown[Math.max(0, Math.min(shown.length - 1, to))]?.state.key,
  });
  const here = shown[at]?.state.key;
  switch (key.name) {
    case "j":
    case "down":
      return { view: moved(at + 1) };
    case "k":
    case "up":
      return { view: moved(at - 1) };
    default:
      return here === undefined ? { view } : { view: onLock({ ...view, cursor: here }, key.name, here) };
  }
}

function onLock(view: View, name: string, key: string): View {
  switch (name) {
    case "return":
      return { ...view, mode: "details" };
    case "u":
      return { ...view, mode: "confirm" };
    case "space": {
      const selected = new Set(view.selected);
      if (!selected.delete(key)) selected.add(key);
      return { ...view, selected };
    }
    default:
      return view;
  }
}

function ownerOf({ state }: LockHistory): string {
  return state.holders[0]?.owner ?? "";
}
