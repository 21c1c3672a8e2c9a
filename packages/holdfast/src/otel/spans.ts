import { AsyncLocalStorage } from "node:async_hooks";
import { channel, subscribe, unsubscribe, type Channel } from "node:diagnostics_channel";

import {
  context,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
} from "@opentelemetry/api";

import type { AcquireTrace, Diagnostics, HoldTrace, LeaseFacts, LockFacts } from "../diagnostics.ts";
import type { Locks } from "../locks.ts";
import { acquireOutcome, holdEnd } from "../telemetry/channel-metrics.ts";
import type { KeyGroups } from "../telemetry/key-groups.ts";
import { parseTraceparent, traceparentOf } from "./traceparent.ts";

interface SpanOptions {
  /** Whether spans have the key. */
  readonly keys: boolean;
  /** The `Locks` whose waiters link to holders. Empty: no links. */
  readonly linked: readonly Locks[];
}

/** The span of a call of acquire, and the context of its caller. */
interface AcquireSpan {
  readonly span: Span;
  readonly caller: Context;
}

const acquireStart = channel("tracing:holdfast:acquire:start") as Channel<unknown, Context>;

type Listener = (message: unknown) => void;

/** Makes a span active through the public interface of OpenTelemetry, whichever context manager is in use. */
class ActiveContext extends AsyncLocalStorage<Context> {
  override run<R>(active: Context, work: (...args: never[]) => R, ...args: never[]): R {
    return context.with(active, work as (...given: unknown[]) => R, undefined, ...args);
  }
}

/** Creates a span for each acquire and each hold. */
export class Spans {
  readonly #tracer: Tracer;
  readonly #groups: KeyGroups;
  readonly #options: SpanOptions;
  readonly #store = new ActiveContext();
  readonly #calls = new Map<number, AcquireSpan>();
  readonly #holds = new Map<string, Span>();
  readonly #listeners: readonly (readonly [channel: string, listener: Listener])[];

  constructor(tracer: Tracer, groups: KeyGroups, options: SpanOptions) {
    this.#tracer = tracer;
    this.#groups = groups;
    this.#options = options;
    this.#listeners = [
      ["tracing:holdfast:acquire:asyncEnd", (message) => this.#acquireEnded(message as AcquireTrace)],
      ["holdfast:queued", (message) => this.#queued(message as Diagnostics["queued"])],
      ["tracing:holdfast:hold:start", (message) => this.#holdStarted(message as HoldTrace)],
      ["tracing:holdfast:hold:asyncEnd", (message) => this.#holdEnded(message as HoldTrace)],
      ["holdfast:late-renewal", (message) => this.#renewedLate(message as Diagnostics["late-renewal"])],
    ];
    acquireStart.bindStore(this.#store, (call) => this.#acquireStarted(call as unknown as AcquireTrace));
    for (const [channel, listener] of this.#listeners) {
      subscribe(channel, listener);
    }
  }

  /** Ends all open spans, so that they are exported. */
  close(): void {
    acquireStart.unbindStore(this.#store);
    for (const [channel, listener] of this.#listeners) {
      unsubscribe(channel, listener);
    }
    for (const { span } of this.#calls.values()) {
      span.end();
    }
    for (const span of this.#holds.values()) {
      span.end();
    }
  }

  /** @returns the context in which the acquire runs */
  #acquireStarted(call: AcquireTrace): Context {
    const caller = context.active();
    const group = this.#groups.of(call.key);
    const attributes = this.#attributesOf(call, group);
    const span = this.#tracer.startSpan(`holdfast acquire ${group}`, { attributes }, caller);
    this.#calls.set(call.call, { span, caller });
    if (this.#options.linked.length > 0) {
      call.labels = { ...call.labels, traceparent: traceparentOf(span.spanContext()) };
    }
    return trace.setSpan(caller, span);
  }

  #queued({ call, key, instance, where, position }: Diagnostics["queued"]): void {
    const span = this.#calls.get(call)?.span;
    if (!span?.isRecording()) {
      return;
    }
    const attributes: Attributes = { "holdfast.where": where };
    if (position !== undefined) {
      attributes["holdfast.position"] = position;
      span.setAttribute("holdfast.position", position);
    }
    span.addEvent("queued", attributes);
    const locks = this.#options.linked.find((each) => each.instance === instance);
    if (locks) {
      linkToHolder(span, key, locks).catch(() => undefined); // the span has no link then
    }
  }

  #acquireEnded({ call, outcome, queuedMs = 0, via, fencingToken, errorCode, error }: AcquireTrace): void {
    const span = this.#calls.get(call)?.span;
    this.#calls.delete(call);
    if (!span?.isRecording()) {
      return;
    }
    span.setAttributes({
      "holdfast.outcome": acquireOutcome(outcome),
      "holdfast.queued_ms": queuedMs,
      ...(via !== undefined && { "holdfast.via": via }),
      ...(fencingToken !== undefined && { "holdfast.fencing_token": fencingToken.toString() }),
      ...(errorCode !== undefined && { "error.type": errorCode }),
    });
    if (outcome === "error" || outcome === "unavailable" || outcome === "quorum-failed") {
      const cause = error instanceof Error ? error : new Error(String(error));
      span.recordException(cause);
      span.setStatus({ code: SpanStatusCode.ERROR, message: cause.message });
    }
    span.end();
  }

  /** A hold belongs to the trace of its caller. Without a trace, the hold belongs to the trace of its acquire. */
  #holdStarted(hold: HoldTrace): void {
    const acquire = hold.call === undefined ? undefined : this.#calls.get(hold.call);
    const group = this.#groups.of(hold.key);
    const attributes = this.#attributesOf(hold, group);
    attributes["holdfast.fencing_token"] = hold.fencingToken.toString();
    const links = acquire ? [{ context: acquire.span.spanContext() }] : [];
    const span = this.#tracer.startSpan(`holdfast hold ${group}`, { attributes, links }, parentOf(acquire));
    this.#holds.set(idOf(hold), span);
  }

  #renewedLate(renewal: Diagnostics["late-renewal"]): void {
    const attributes = { "holdfast.late_ms": renewal.lateMs, "holdfast.margin_ms": renewal.marginMs };
    this.#holds.get(idOf(renewal))?.addEvent("late-renewal", attributes);
  }

  #holdEnded(hold: HoldTrace): void {
    const span = this.#holds.get(idOf(hold));
    this.#holds.delete(idOf(hold));
    if (!span?.isRecording()) {
      return;
    }
    const { reason = "released", heldMs = 0, overrunMs = 0 } = hold;
    span.setAttributes({
      "holdfast.end": holdEnd(reason),
      "holdfast.held_ms": heldMs,
      "holdfast.overrun_ms": overrunMs,
    });
    if (reason !== "released" && reason !== "transferred") {
      span.addEvent("lost", { "holdfast.reason": reason });
      span.setStatus({ code: SpanStatusCode.ERROR, message: `The lease was lost: ${reason}` });
    }
    span.end();
  }

  #attributesOf({ key, engine, kind, mode }: LockFacts, group: string): Attributes {
    const attributes: Attributes = {
      "holdfast.group": group,
      "holdfast.engine": engine,
      "holdfast.kind": kind,
      "holdfast.mode": mode,
    };
    if (this.#options.keys) {
      attributes["holdfast.key"] = key;
    }
    return attributes;
  }
}

function parentOf(acquire: AcquireSpan | undefined): Context {
  if (!acquire) {
    return context.active();
  }
  const { caller, span } = acquire;
  return trace.getSpan(caller) ? caller : trace.setSpan(caller, span);
}

function idOf({ instance, key, fencingToken }: LeaseFacts): string {
  return `${instance} ${fencingToken} ${key}`;
}

async function linkToHolder(span: Span, key: string, locks: Locks): Promise<void> {
  const { holders } = await locks.inspect(key);
  for (const { labels } of holders) {
    const holder = parseTraceparent(labels?.["traceparent"]);
    if (holder) {
      span.addLink({ context: holder, attributes: { "holdfast.link": "holder" } });
    }
  }
}
