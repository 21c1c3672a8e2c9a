import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { isOffered } from "../session.ts";

const seenKey = "holdfast-help-seen";
const isOpen = signal(false);
/** Whether this browser has never opened the help. Then the page says that it exists. */
export const isHelpNew = signal(!wasSeen());

const groups: readonly { readonly title: string; readonly keys: readonly (readonly [string, string])[] }[] = [
  {
    title: "Locks",
    keys: [
      ["/", "filter"],
      ["j k", "move, as ↓ ↑"],
      ["Enter", "open the lock"],
      ["x", "select"],
      ["b", "break"],
      ["o", "the owner of the lock"],
      ["y", "copy the key"],
      ["c", "copy the command"],
    ],
  },
  {
    title: "Everywhere",
    keys: [
      ["g l", "locks"],
      ["g o", "owners"],
      ["g c", "contention"],
      ["g n", "nodes"],
      ["g d", "doctor"],
      ["g a", "audit"],
      ["p", "pause and continue"],
      ["?", "this help"],
      ["Esc", "back"],
    ],
  },
];

const terms = [
  "order:555",
  "prefix:order:",
  "owner:billing",
  "label.team:pay",
  "reason:charge",
  "kind:semaphore",
  "state:late",
  "waiters>0",
  "held>5m",
  "left<10s",
  "foreign",
  "stale",
  "long",
  "-owner:cron",
  'owner:"my app"',
];

export function openHelp(): void {
  isOpen.value = true;
  isHelpNew.value = false;
  try {
    localStorage.setItem(seenKey, "yes");
  } catch {
    // the hint comes again at the next visit
  }
}

function wasSeen(): boolean {
  try {
    return localStorage.getItem(seenKey) !== null;
  } catch {
    return true;
  }
}

/** The pages that this service does not offer have no key. */
function isShown(key: string): boolean {
  return (key !== "g d" || isOffered("doctor")) && (key !== "g a" || isOffered("audit"));
}

export function Help() {
  return isOpen.value ? <OpenHelp /> : null;
}

function keyLine([key, meaning]: readonly [string, string]) {
  return (
    <div key={key}>
      <dt>
        {key.split(" ").map((one) => (
          <kbd key={one}>{one}</kbd>
        ))}
      </dt>
      <dd>{meaning}</dd>
    </div>
  );
}

function OpenHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="dialog help"
      data-testid="help"
      aria-labelledby="help-title"
      onClose={() => (isOpen.value = false)}
      onKeyDown={({ key }) => {
        if (key === "?") dialog.current?.close();
      }}
    >
      <h2 id="help-title">Keys and filters</h2>
      <div class="help-groups">
        {groups.map(({ title, keys }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>{keys.filter(([key]) => isShown(key)).map(keyLine)}</dl>
          </section>
        ))}
      </div>
      <h3>Terms of the filter</h3>
      <p class="terms">
        {terms.map((term) => (
          <code key={term}>{term}</code>
        ))}
      </p>
      <p class="muted">
        A lock matches all terms. A + after a time means “at least”: the console has not seen the start.
      </p>
      <footer>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </footer>
    </dialog>
  );
}
