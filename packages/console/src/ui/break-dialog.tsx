import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { serviceUrl } from "../api/client.ts";
import { now } from "../live/live.ts";
import { formatTicking } from "../model/duration.ts";
import type { BreakTarget } from "../model/break-target.ts";
import { processOf, shellQuote } from "../model/owner.ts";
import { route } from "../router.ts";
import { Confirmation, confirmationOf, Field, HowToFence } from "./break-fields.tsx";
import { breakAll, type BreakOutcome } from "./break.ts";
import { OwnerName } from "./parts.tsx";
import { copy, toast } from "./toast.tsx";

/** The grants to break, as they were shown. */
export interface BreakRequest {
  readonly targets: readonly BreakTarget[];
  /** Set to break all grants of one owner. */
  readonly owner?: string;
  /** Called after an attempt, because the page is out of date. */
  readonly done?: () => void;
}

const request = signal<BreakRequest | undefined>(undefined);
const shortestReason = 8;
const usualReasons = ["its log shows no progress", "its host is gone"];
export function askToBreak(asked: BreakRequest): void {
  if (asked.targets.length > 0) request.value = asked;
}

export function BreakDialog() {
  return request.value === undefined ? null : <OpenDialog asked={request.value} />;
}

function OpenDialog({ asked }: { asked: BreakRequest }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { reason, confirmed, isBusy, moved, confirmation, problem, isReady, submit } = useAttempt(asked);
  const hasMoved = moved.value.some(({ result }) => result === "moved");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="dialog"
      data-testid="break-dialog"
      aria-labelledby="break-title"
      onClose={() => (request.value = undefined)}
    >
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="break-title">{titleOf(asked)}</h2>
        <Targets targets={asked.targets} />
        {confirmation?.boxText === undefined && <p class="warning">{warningOf(asked.targets)}</p>}
        {moved.value.length > 0 && <Moved outcomes={moved.value} />}
        <Field
          name="reason"
          value={reason}
          title="Reason"
          hint={`at least ${shortestReason} characters, for the audit log`}
        >
          <UsualReasons reason={reason} />
        </Field>
        <Confirmation confirmation={confirmation} value={confirmed} />
        <p class="problem" role="alert">
          {problem.value}
        </p>
        <footer>
          {!hasMoved && (
            <button
              type="submit"
              class="danger"
              data-testid="break-submit"
              aria-disabled={!isReady || isBusy.value}
              title={isReady ? "Enter" : "A reason and the confirmation are missing"}
            >
              {isBusy.value ? "Breaking…" : "Break"}
              <kbd aria-hidden="true">↵</kbd>
            </button>
          )}
          <button type="button" onClick={() => dialog.current?.close()}>
            {moved.value.length > 0 ? "Look again" : "Cancel"}
          </button>
          <span class="last">
            <HowToFence />
            <CopyCommand asked={asked} reason={reason.value.trim()} />
          </span>
        </footer>
      </form>
    </dialog>
  );
}

/** The fields of the dialog, and the attempt to break. */
function useAttempt(asked: BreakRequest) {
  const reason = useSignal(route.peek().params.get("reason") ?? "");
  const confirmed = useSignal("");
  const isBusy = useSignal(false);
  const moved = useSignal<readonly BreakOutcome[]>([]);
  const confirmation = confirmationOf(asked.targets, asked.owner);
  const isConfirmed = confirmation === undefined || confirmed.value.trim() === confirmation.value;
  const isExplained = reason.value.trim().length >= shortestReason;
  const isReady = isConfirmed && isExplained;
  const problem = useSignal("");
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy.value) return;
    if (!isReady) {
      problem.value = isExplained
        ? (confirmation?.problem ?? "")
        : `The reason has fewer than ${shortestReason} characters.`;
      const field = isExplained ? "confirm" : "reason";
      (event.target as Element).querySelector<HTMLElement>(`[name=${field}]`)?.focus();
      return;
    }
    problem.value = "";
    isBusy.value = true;
    const outcomes = await breakAll(asked.targets, reason.value.trim(), asked.owner);
    isBusy.value = false;
    asked.done?.();
    moved.value = outcomes.filter(({ result }) => result !== "broken");
    for (const { text, detail } of summaries(outcomes)) toast(text, { detail });
    if (moved.value.length === 0 && request.peek() === asked) request.value = undefined;
  };
  return { reason, confirmed, isBusy, moved, confirmation, problem, isReady, submit };
}

/** Reasons to choose. The Tab key passes them by after a typed reason. */
function UsualReasons({ reason }: { reason: Signal<string> }) {
  return (
    <span class="reasons">
      {usualReasons.map((text) => (
        <button
          key={text}
          type="button"
          class="pill"
          tabIndex={reason.value === "" ? 0 : -1}
          onClick={({ currentTarget }) => {
            reason.value = text;
            currentTarget.closest("form")?.querySelector<HTMLElement>("[name=confirm]")?.focus();
          }}
        >
          {text}
        </button>
      ))}
    </span>
  );
}

function titleOf({ targets, owner }: BreakRequest): string {
  if (owner !== undefined) return `Break all ${targets.length} locks of ${owner}?`;
  return targets.length === 1 ? `Break ${targets[0]?.key}?` : `Break ${targets.length} locks?`;
}

/** A break frees the lock, and does not end the work of its holder. */
function warningOf(targets: readonly BreakTarget[]): string {
  const owners = new Set(targets.map(({ owner }) => owner));
  const [owner = ""] = owners;
  const isOne = owners.size === 1;
  const processes = isOne ? (processOf(owner) ?? "the holder’s process") : "the holders’ processes";
  const upTo = targets.length === 1 ? String(targets[0]?.fencingToken) : "that of its broken grant";
  const resources = targets.length === 1 ? "let the resource" : "let each resource";
  return `The break does not stop ${processes}. Stop ${isOne ? "it" : "them"}, or ${resources} refuse all fencing tokens up to ${upTo}.`;
}

function Targets({ targets }: { targets: readonly BreakTarget[] }) {
  const shown = targets.slice(0, 6);
  return (
    <ul class="targets">
      {shown.map(({ key, owner, since, isHeldExact, waiters, next, fencingToken, isLate }) => (
        <li key={`${key} ${fencingToken}`}>
          {targets.length > 1 && <code class="target-key">{key}</code>}
          <span>
            held by <OwnerName owner={owner} />
            {since !== undefined &&
              ` for ${isHeldExact ? "" : "at least "}${formatTicking(Math.max(0, now.value - since))}`}
            {isLate && ", not renewed in time"}
            {", "}
            {waiters === 0 ? "no waiter" : waiters === 1 ? "1 waits" : `${waiters} wait`}
            {next !== undefined && (
              <>
                {waiters === 1 ? ": " : ", the next is "}
                <OwnerName owner={next} />
              </>
            )}
          </span>
          <small class="num muted">fencing token {fencingToken}</small>
        </li>
      ))}
      {targets.length > shown.length && <li class="muted">and {targets.length - shown.length} more</li>}
    </ul>
  );
}

function Moved({ outcomes }: { outcomes: readonly BreakOutcome[] }) {
  return (
    <ul class="moved" role="alert">
      {outcomes.slice(0, 6).map(({ key, text }) => (
        <li key={key}>
          <code>{key}</code> {text}
        </li>
      ))}
    </ul>
  );
}

function CopyCommand({ asked: { targets }, reason }: { asked: BreakRequest; reason: string }) {
  const [target] = targets;
  if (targets.length !== 1 || target === undefined) return null;
  const text = `npx holdfast release --force ${shellQuote(target.key)} --fence ${target.fencingToken} --reason ${shellQuote(reason || "…")} --url ${serviceUrl()}`;
  return (
    <button type="button" class="quiet" onClick={() => void copy(text, "the command")}>
      Copy as command
    </button>
  );
}

function summaries(outcomes: readonly BreakOutcome[]): { text: string; detail: string }[] {
  const broken = outcomes.filter(({ result }) => result === "broken");
  if (broken.length > 1) return [{ text: `${broken.length} locks are broken`, detail: "" }];
  return broken.map(({ key, text }) => ({ text: `The grant of ${key} is broken`, detail: text }));
}
