import { continuity } from "../properties.ts";
import { absent, flags, others, phases, rounds, type StateLayout } from "./state-layout.ts";
import type { ExtensionSettings } from "./settings.ts";

/** The rounds in which a holder prolongs its lease. */
export class Renewal {
  readonly #layout: StateLayout;
  readonly #settings: ExtensionSettings;
  readonly #majority: number;

  constructor(layout: StateLayout, settings: ExtensionSettings, majority: number) {
    this.#layout = layout;
    this.#settings = settings;
    this.#majority = majority;
  }

  /** A round that was not confirmed is given up by that: answers to it are not waited for any more. */
  begin(a: number): void {
    const layout = this.#layout;
    let isOvertaken = false;
    for (let other = 0; other < layout.attempts; other += 1) {
      const wasElected = layout.phase(other) === phases.past;
      isOvertaken ||= wasElected && (layout.begunSince(a) & (1 << other)) !== 0;
    }
    layout.setRound(a, rounds.asking);
    layout.setOvertaken(a, isOvertaken);
    for (let n = 0; n < layout.nodes; n += 1) {
      if (!layout.has(a, n, flags.isReplyToAcquire)) {
        layout.setReply(a, n, 0);
      }
      layout.clear(a, n, flags.counts | flags.isNew | flags.wantsRefill);
      layout.setJoins(a, n, 0);
      layout.raise(a, n, flags.extend);
    }
  }

  /** An answer to `extend`. */
  receive(a: number, n: number, reply: number): void {
    const layout = this.#layout;
    const isNew = layout.has(a, n, flags.isNew);
    if (reply === absent || reply === others) {
      if (!isNew) {
        layout.setMember(a, n, 0);
        layout.raise(a, n, flags.isWithout);
      }
      if (reply === absent) {
        layout.raise(a, n, flags.wantsRefill);
      }
    } else if (this.#isConfirmedBy(a, n, reply)) {
      layout.raise(a, n, flags.counts);
    } else if (!isNew) {
      layout.setMember(a, n, 0);
      layout.setJoins(a, n, reply);
    }
    this.#decide(a);
  }

  #isConfirmedBy(a: number, n: number, fencingNumber: number): boolean {
    const member = this.#layout.member(a, n);
    if (member === 0 || this.#layout.has(a, n, flags.isNew)) {
      return false;
    }
    return member === fencingNumber || this.#settings.mutant === "break-unnoticed";
  }

  #decide(a: number): void {
    const layout = this.#layout;
    if (layout.round(a) === rounds.asking && layout.count(a, flags.counts) >= this.#votesNeeded(a)) {
      layout.broken = layout.isOvertaken(a) ? continuity : 0;
      layout.setRound(a, rounds.confirmed);
      layout.setBegunSince(a, 0);
      layout.setOvertaken(a, false);
    }
    if (layout.round(a) === rounds.confirmed) {
      for (let n = 0; n < layout.nodes; n += 1) {
        layout.clear(a, n, flags.counts); // they have
      }
      this.#finishInBackground(a);
    } else if (layout.nodes - layout.count(a, flags.isWithout) < this.#majority) {
      layout.setPhase(a, phases.past); // lost
    } else if (this.#settings.mutant === "refill-counts-at-once") {
      this.#refill(a);
    }
  }

  #votesNeeded(a: number): number {
    if (this.#settings.mutant !== "majority-of-answers") {
      return this.#majority;
    }
    const layout = this.#layout;
    let answers = 0;
    for (let n = 0; n < layout.nodes; n += 1) {
      const isOpen = layout.has(a, n, flags.extend) || layout.reply(a, n) !== 0;
      answers += isOpen ? 0 : 1;
    }
    return Math.floor(answers / 2) + 1;
  }

  /** Behind a majority that has confirmed: who misses it is filled again, and counts from the next round on. */
  #finishInBackground(a: number): void {
    const layout = this.#layout;
    this.#refill(a);
    for (let n = 0; n < layout.nodes; n += 1) {
      if (layout.joins(a, n) > 0) {
        this.join(a, n, layout.joins(a, n));
        layout.setJoins(a, n, 0);
      }
    }
  }

  #refill(a: number): void {
    const layout = this.#layout;
    for (let n = 0; n < layout.nodes; n += 1) {
      if (layout.has(a, n, flags.wantsRefill)) {
        layout.clear(a, n, flags.wantsRefill);
        layout.raise(a, n, flags.refill);
      }
    }
  }

  /** The node has it, as an acquire or this round has shown: it counts from the next round on. */
  join(a: number, n: number, fencingNumber: number): void {
    const layout = this.#layout;
    if (this.#settings.mutant === "refill-counts-at-once" && layout.round(a) === rounds.asking) {
      layout.setMember(a, n, fencingNumber);
      layout.clear(a, n, flags.isWithout);
      layout.raise(a, n, flags.counts);
      this.#decide(a);
    } else if (layout.member(a, n) !== fencingNumber) {
      layout.setMember(a, n, fencingNumber);
      layout.clear(a, n, flags.isWithout | flags.counts);
      layout.raise(a, n, flags.isNew);
      if (this.#settings.datesFrom === "joining") {
        layout.setBegunSince(a, 0); // what it holds is new from here on
      }
    }
  }
}
