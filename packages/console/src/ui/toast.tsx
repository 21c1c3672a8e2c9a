import { signal } from "@preact/signals";

import { Icon } from "./icons.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  /** A second line. Empty: none. */
  readonly detail: string;
  readonly isError: boolean;
}

const toasts = signal<readonly Toast[]>([]);
const shownMs = 8_000;
let nextId = 1;

/** Shows a message for some seconds. */
export function toast(text: string, { isError = false, detail = "" } = {}): void {
  const id = nextId++;
  toasts.value = [...toasts.value.slice(-3), { id, text, detail, isError }];
  setTimeout(() => close(id), shownMs);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, detail, isError }) => (
        <div key={id} class={`toast ${isError ? "toast-error" : ""}`} data-testid="toast">
          <Icon name={isError ? "late" : "ok"} />
          <span>
            {text}
            {detail !== "" && <span class="toast-detail">{detail}</span>}
          </span>
          <button type="button" class="quiet" aria-label="Close" onClick={() => close(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}`);
  } catch {
    toast(`The browser refused the clipboard: ${text}`, { isError: true });
  }
}

function close(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}
