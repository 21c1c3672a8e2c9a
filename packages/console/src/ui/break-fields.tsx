import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { BreakTarget } from "../model/break-target.ts";
import { processOf } from "../model/owner.ts";

declare const DOCS_URL: string;

/** What the operator confirms. */
interface Confirmed {
  /** The text to type, or the value of the ticked box. */
  readonly value: string;
  /** The text beside a box. Undefined: the value is typed. */
  readonly boxText?: string;
  /** The message without it. */
  readonly problem: string;
}

interface ConfirmationProps {
  readonly confirmation: Confirmed | undefined;
  readonly value: Signal<string>;
}

export function Confirmation({ confirmation, value }: ConfirmationProps) {
  if (confirmation === undefined) return null;
  const { boxText, value: expected } = confirmation;
  if (boxText === undefined) {
    const title = (
      <>
        Type <code>{expected}</code> to confirm
      </>
    );
    return <Field name="confirm" value={value} title={title} hint="because several grants may end" />;
  }
  return (
    <label class="warning tick">
      <input
        type="checkbox"
        name="confirm"
        data-testid="break-confirm"
        checked={value.value === expected}
        onInput={({ currentTarget }) => (value.value = currentTarget.checked ? expected : "")}
      />
      {boxText}
    </label>
  );
}

export function HowToFence() {
  return (
    <a href={`${DOCS_URL}/fencing.md`} target="_blank" rel="noreferrer">
      How to fence ↗
    </a>
  );
}

/** Undefined: a single grant that is not renewed needs no confirmation. */
export function confirmationOf(
  targets: readonly BreakTarget[],
  owner: string | undefined,
): Confirmed | undefined {
  const [target] = targets;
  if (owner !== undefined || targets.length > 1) {
    const value = owner ?? `break ${targets.length}`;
    return { value, problem: `Type ${value} in the last field.` };
  }
  if (target?.isAlive !== true) return undefined;
  const process = processOf(target.owner) ?? "the holder’s process";
  return {
    value: "known",
    boxText: `I know that ${process} still runs after the break, and that I must stop it.`,
    problem: `Tick that ${process} still runs.`,
  };
}

interface FieldProps {
  readonly name: "reason" | "confirm";
  readonly title: ComponentChildren;
  readonly hint: string;
  readonly value: Signal<string>;
  readonly children?: ComponentChildren;
}

export function Field({ name, title, hint, value, children }: FieldProps) {
  return (
    <div class="field">
      <label for={`break-${name}`}>
        <span>
          {title} <small>{hint}</small>
        </span>
      </label>
      <input
        id={`break-${name}`}
        name={name}
        data-testid={`break-${name}`}
        autocomplete="off"
        spellcheck={name === "reason"}
        maxLength={1024}
        autofocus={name === "reason"}
        value={value.value}
        onInput={({ currentTarget }) => (value.value = currentTarget.value)}
      />
      {children}
    </div>
  );
}
