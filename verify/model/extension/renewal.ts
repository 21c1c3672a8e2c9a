import { continuity } from "../properties.ts";
import { absent, flags, others, phases, rounds, type StateLayout } from "./state-layout.ts";
import type { ExtensionSettings } from "./settings.ts";

/** The rounds in which a holder extends its lease. */
export class Renewal {
  readonly #layout: StateLayout;
  readonly #settings: ExtensionSettings;
  readonly #majority: number;

  constructor(layout: StateLayout, settings: ExtensionSettings, majority: number) {
    this.#layout = layout;
    this.#settings = settings;
    this.#majority = majority;
  }

  /** Starts a round. A former round without a confirmation ends, and replies to it are ignored. */
  begin(a: number): void {
    const layout = this.#layout;
    let isOvertaken = false;
    for (let other = 0; other < layout.attempts; other += 1) {
      const wasElected = layout.phase(other) === phases.past;
      isOvertaken ||= wasElected && (layout.begunSince(a) & (1 << other)) !== 0;
    }
    layout.setRound(a, rounds.requested);
    layout.setOvertaken(a, isOvertaken);
    for (let n = 0; n < layout.nodes; n += 1) {
      if (!layout.has(a, n, flags.isReplyToAcquire)) {
        layout.setReply(a, n, 0);
      }
      layout.clear(a, n, flags.counts | flags.isNew | flags.needsRefill);
      layout.setJoins(a, n, 0);
      layout.raise(a, n, flags.extend);
    }
  }

  /** A reply to `extend`. */
  receive(a: number, n: number, reply: number): void {
    const layout = this.#layout;
    const isNew = layout.has(a, n, flags.isNew);
    if (reply === absent || reply === others) {
      if (!isNew) {
        layout.setMember(a, n, 0);
        layout.raise(a, n, flags.isWithout);
      }
      if (reply === absent) {
        layout.raise(a, n, flags.needsRefill);
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
    if (layout.round(a) === rounds.requested && layout.count(a, flags.counts) >= this.#votesNeeded(a)) {
      layout.broken = layout.isOvertaken(a) ? continuity : 0;
      layout.setRound(a, rounds.confirmed);
      layout.setBegunSince(a, 0);
      layout.setOvertaken(a, false);
    }
    if (layout.round(a) === rounds.confirmed) {
      for (let n = 0; n < layout.nodes; n += 1) {
        layout.clear(a, n, flags.counts); // their grants count
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

  /** After the confirmation of a majority. A node without the grant is refilled, and counts from the next round on. */
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
      if (layout.has(a, n, flags.needsRefill)) {
        layout.clear(a, n, flags.needsRefill);
        layout.raise(a, n, flags.refill);
      }
    }
  }

  /** The node has the grant, as a reply to an acquire or to this round shows. The node counts from the next round on. */
  join(a: number, n: number, fencingNumber: number): void {
    const layout = this.#layout;
    if (this.#settings.mutant === "refill-counts-at-once" && layout.round(a) === rounds.requested) {
      layout.setMember(a, n, fencingNumber);
      layout.clear(a, n, flags.isWithout);
      layout.raise(a, n, flags.counts);
      this.#decide(a);
    } else if (layout.member(a, n) !== fencingNumber) {
      layout.setMember(a, n, fencingNumber);
      layout.clear(a, n, flags.isWithout | flags.counts);
      layout.raise(a, n, flags.isNew);
      if (this.#settings.datesFrom === "joining") {
        layout.setBegunSince(a, 0); // the lease on this node starts here
      }
    }
  }
}
