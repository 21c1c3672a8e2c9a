import { useEffect, useRef } from "preact/hooks";

/** Actions by key. `g l` is a chord: `g`, and then `l`. */
export type KeyMap = Readonly<Record<string, (() => void) | undefined>>;

/** The maps of the mounted components, the newest last. */
const maps: { current: KeyMap }[] = [];
const chordMs = 1_200;
/** When `g` was pressed, if a second key may follow. */
let chordAt: number | undefined;

/** Handles keys while the component is mounted. Pages come before the frame of all pages, which mounts after its first page. */
export function useKeys(map: KeyMap, isFrame = false): void {
  const holder = useRef(map);
  holder.current = map;
  useEffect(() => {
    if (isFrame) maps.unshift(holder);
    else maps.push(holder);
    return () => {
      maps.splice(maps.indexOf(holder), 1);
    };
  }, []);
}

/** Listens for keys. Fields keep all keys but Escape, and dialogs keep all. */
export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (isTaken(event)) return;
    if (isField(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    const action = actionOf(event);
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
}

function isTaken(event: KeyboardEvent): boolean {
  const hasModifier = event.metaKey || event.ctrlKey || event.altKey;
  return (
    event.defaultPrevented ||
    hasModifier ||
    document.querySelector("dialog[open]") !== null ||
    isActivation(event)
  );
}

/** The action of a key, or of the second key of a chord. */
function actionOf({ key, timeStamp }: KeyboardEvent): (() => void) | undefined {
  const isSecond = chordAt !== undefined && timeStamp - chordAt < chordMs;
  chordAt = !isSecond && key === "g" ? timeStamp : undefined;
  const name = isSecond ? `g ${key}` : key;
  return maps
    .toReversed()
    .map(({ current }) => current[name])
    .find((action) => action !== undefined);
}

/** Enter and Space belong to a link or a button that has the focus. */
function isActivation({ key, target }: KeyboardEvent): boolean {
  return (
    (key === "Enter" || key === " ") &&
    target instanceof Element &&
    target.closest("a, button, summary") !== null
  );
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input:not([type=checkbox]), textarea, select") !== null
  );
}

/** Moves the focus into a field, after its text. */
export function focusField(id: string): void {
  const field = document.querySelector<HTMLInputElement>(`#${id}`);
  field?.focus();
  field?.setSelectionRange(field.value.length, field.value.length);
}
