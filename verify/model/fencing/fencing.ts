import type { Columns, Model, Step, VisitStep } from "../explorer/model.ts";
import { canonicalize } from "./canonical.ts";
import { invariants } from "../properties.ts";
import { StateLayout, phases } from "./state-layout.ts";
import { agreedFence, violatedInvariant } from "./rules.ts";
import type { FencingSettings } from "./settings.ts";
import { describe, describeStep } from "./messages.ts";

const maxRounds = 3;

/**
 * Fencing numbers alone: the agreement on one number while requests and replies are late, lost or repeated. There is no queue, so a free node
 * grants to the next request. A request needs no message: after it was sent, it may take effect at any later time, or never.
 */
export class FencingModel implements Model {
  readonly size: number;
  readonly columns: Columns;
  readonly #settings: FencingSettings;
  readonly #majority: number;
  readonly #layout: StateLayout;
  readonly #done: Uint8Array;
  #source: Uint8Array;
  #take: VisitStep = () => undefined;

  constructor(settings: FencingSettings) {
    this.#settings = settings;
    this.#majority = Math.floor(settings.nodes / 2) + 1;
    this.#layout = new StateLayout(settings);
    this.size = this.#layout.bytes.length;
    this.columns = this.#layout.columns;
    this.#done = new Uint8Array(this.size);
    this.#source = new Uint8Array(this.size);
  }

  initial(): Uint8Array {
    this.#layout.bytes.fill(0);
    this.#layout.extraEffects = this.#settings.extraEffects;
    this.#layout.restarts = this.#settings.restarts;
    return this.#layout.bytes.slice();
  }

  violation(state: Uint8Array): string | undefined {
    const broken = state[0] as number;
    return broken === 0 ? undefined : invariants[broken - 1];
  }

  describeStep(step: Step): string {
    return describeStep(step);
  }

  describe(state: Uint8Array): string {
    this.#layout.bytes.set(state);
    return describe(this.#layout);
  }

  expand(source: Uint8Array, visitStep: VisitStep): void {
    this.#source = source;
    this.#take = visitStep;
    const layout = this.#layout;
    layout.bytes.set(source);
    for (let a = 0; a < layout.attempts; a += 1) {
      this.#attemptSteps(a);
      for (let n = 0; n < layout.nodes && layout.phase(a) !== phases.idle; n += 1) {
        this.#acquire(a, n);
        this.#raiseFence(a, n, layout.proposed(a));
        this.#raiseFence(a, n, layout.proposedBefore(a));
        this.#receiveGrant(a, n);
      }
    }
    for (let n = 0; n < layout.nodes; n += 1) {
      this.#nodeSteps(n);
    }
  }

  #attemptSteps(a: number): void {
    const layout = this.#layout;
    switch (layout.phase(a)) {
      case phases.idle:
        this.#start(a);
        break;
      case phases.seeking:
        if (layout.votes(a) >= this.#majority && layout.round(a) < maxRounds) {
          this.#nextRound(a);
        }
        layout.setPhase(a, phases.failed);
        this.#emit("abandon", a, -1, 0);
        break;
      case phases.holding:
        layout.setPhase(a, phases.past);
        this.#emit("release lease", a, -1, 0);
        break;
      default:
    }
  }

  /** Attempts are equivalent before they start, so the first idle one starts next. */
  #start(a: number): void {
    const layout = this.#layout;
    if (a > 0 && layout.phase(a - 1) === phases.idle) {
      return;
    }
    const candidate = this.#settings.proposals === "following" ? layout.greatestFence + 1 : 0;
    layout.setPhase(a, phases.seeking);
    layout.setRound(a, 1);
    layout.setProposal(a, candidate);
    this.#noteGreatest(candidate);
    for (let other = 0; other < layout.attempts; other += 1) {
      layout.setFloor(a, Math.max(layout.floor(a), layout.token(other)));
    }
    this.#emit("start", a, -1, candidate);
  }

  #nextRound(a: number): void {
    const layout = this.#layout;
    let largest = 0;
    for (let n = 0; n < layout.nodes; n += 1) {
      largest = Math.max(largest, layout.vote(a, n));
    }
    layout.setRound(a, layout.round(a) + 1);
    layout.setProposedBefore(a, layout.proposed(a));
    layout.setProposed(a, largest);
    this.#emit("propose", a, -1, largest);
  }

  #acquire(a: number, n: number): void {
    const layout = this.#layout;
    if (layout.holder(n) === a + 1) {
      this.#reply("acquire again", a, n, layout.fence(n), false); // a repeat gets the same grant with the same number
      return;
    }
    const isExtra = layout.hasTakenEffect(a, n);
    if (layout.holder(n) !== 0 || (isExtra && layout.extraEffects === 0)) {
      return;
    }
    const { proposals, mutant } = this.#settings;
    const least = layout.fence(n) + (mutant === "no-increment" ? 0 : 1);
    const first = Math.max(least, layout.proposal(a));
    // A client that yields a lock sends its own candidate, which differs on each node.
    const last = proposals === "following" ? first : Math.max(first, proposals);
    for (let number = first; number <= last; number += 1) {
      layout.extraEffects -= isExtra ? 1 : 0;
      layout.setTakenEffect(a, n);
      layout.setHolder(n, a + 1);
      layout.setFence(n, number);
      this.#noteGreatest(number);
      this.#reply("acquire", a, n, number, true);
    }
  }

  /** The request arrives at any time, even in a later round. */
  #raiseFence(a: number, n: number, proposed: number): void {
    const layout = this.#layout;
    const isHolder = layout.holder(n) === a + 1 || this.#settings.mutant === "agree-without-comparing";
    if (proposed === 0 || !isHolder) {
      return;
    }
    const previous = layout.fence(n);
    const number = Math.max(previous, proposed);
    layout.setFence(n, number);
    const replied = this.#settings.mutant === "acknowledgement-without-value" ? proposed : number;
    this.#reply("agree", a, n, replied, number > previous);
  }

  /** The node has executed the request. Its reply arrives at once or never. If replies may be late, it may also arrive later. */
  #reply(rule: string, a: number, n: number, number: number, hasChanged: boolean): void {
    const layout = this.#layout;
    const isDelivered = layout.phase(a) === phases.seeking && !layout.isQuarantined(n);
    const isNewer = layout.vote(a, n) !== number || layout.voteRound(a, n) !== layout.round(a);
    if (isDelivered && this.#settings.lateReplies) {
      // A reply without news in this round may be news in a later round.
      if (hasChanged || layout.reply(a, n) !== number) {
        layout.setReply(a, n, number);
        this.#emit(rule, a, n, number);
      }
    } else if (isDelivered) {
      this.#done.set(layout.bytes);
      if (isNewer) {
        this.#receiveFence(a, n, number);
        this.#emit(`${rule}, received`, a, n, number);
      }
      layout.bytes.set(this.#done);
      if (hasChanged) {
        this.#emit(rule, a, n, number);
      }
    } else if (hasChanged) {
      this.#emit(rule, a, n, number);
    }
    layout.bytes.set(this.#source);
  }

  /** A reply counts for the round in which it arrives. A reply that never arrives counts as lost. */
  #receiveGrant(a: number, n: number): void {
    const layout = this.#layout;
    const fence = layout.reply(a, n);
    if (layout.phase(a) !== phases.seeking || fence === 0 || layout.isQuarantined(n)) {
      return;
    }
    layout.setReply(a, n, 0);
    this.#receiveFence(a, n, fence);
    this.#emit("receive", a, n, fence);
  }

  #receiveFence(a: number, n: number, fence: number): void {
    const layout = this.#layout;
    if (fence >= layout.vote(a, n)) {
      layout.setVote(a, n, fence, layout.round(a));
    }
    const agreed = agreedFence(layout, a, this.#majority, this.#settings.mutant);
    if (agreed > 0 && agreed >= layout.proposed(a)) {
      this.#win(a, agreed);
    }
  }

  #win(a: number, token: number): void {
    const layout = this.#layout;
    layout.broken = violatedInvariant(layout, a, token, this.#settings.isTimed);
    layout.setPhase(a, this.#settings.isTimed ? phases.holding : phases.past);
    layout.setToken(a, token);
    layout.setFloor(a, 0);
  }

  #nodeSteps(n: number): void {
    const layout = this.#layout;
    const a = layout.holder(n) - 1;
    if (a >= 0) {
      layout.setHolder(n, 0);
      if (this.#settings.isTimed) {
        this.#restartedVote(a, n);
      }
      this.#emit("drop", a, n, 0);
    }
    if (layout.restarts > 0) {
      layout.restarts -= 1;
      layout.setHolder(n, 0);
      layout.setFence(n, 0);
      layout.setQuarantined(n, this.#settings.mutant !== "no-restart-guard");
      let begun = 0;
      for (let each = 0; each < layout.attempts; each += 1) {
        layout.setReply(each, n, 0); // received before, or lost
        begun |= this.#isActive(each) ? 1 << each : 0;
      }
      layout.setBegunBefore(n, begun);
      this.#emit("restart", -1, n, 0);
    }
    if (layout.isQuarantined(n)) {
      this.#endQuarantine(n);
    }
  }

  /** The quarantine lasts until every grant that was requested before the restart has expired everywhere. */
  #endQuarantine(n: number): void {
    const layout = this.#layout;
    for (let a = 0; a < layout.attempts; a += 1) {
      if ((layout.begunBefore(n) & (1 << a)) !== 0 && this.#isActive(a)) {
        layout.setPhase(a, layout.phase(a) === phases.holding ? phases.past : phases.failed);
      }
    }
    layout.setQuarantined(n, false);
    layout.setBegunBefore(n, 0);
    this.#emit("quarantine ends", -1, n, 0);
  }

  #isActive(a: number): boolean {
    const phase = this.#layout.phase(a);
    return phase === phases.seeking || phase === phases.holding;
  }

  #restartedVote(a: number, n: number): void {
    const layout = this.#layout;
    layout.setReply(a, n, 0);
    layout.setVote(a, n, 0, 0);
    if (layout.phase(a) === phases.holding && layout.votes(a) < this.#majority) {
      layout.setPhase(a, phases.past);
    }
  }

  #noteGreatest(number: number): void {
    if (this.#settings.proposals === "following") {
      this.#layout.greatestFence = Math.max(this.#layout.greatestFence, number);
    }
  }

  #emit(rule: string, attempt: number, node: number, detail: number): void {
    canonicalize(this.#layout);
    this.#take(this.#layout.bytes, rule, attempt, node, detail, false);
    this.#layout.bytes.set(this.#source);
  }
}
