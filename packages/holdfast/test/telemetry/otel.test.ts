import { once } from "node:events";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { context, trace, type Span } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { DataPointType, MeterProvider, MetricReader, type ResourceMetrics } from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { createLocks, type Locks } from "holdfast";
import { instrumentHoldfast, instruments, type Instrumentation } from "holdfast/otel";
import { redis } from "holdfast/redis";
import { startRedis, type RedisServer } from "@holdfast/test-kit";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { contendedRun, expectedCounts } from "../support/contended-run.ts";
import { onRedis } from "../support/servers.ts";

/** Collects when the test asks. */
class TestReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

let server: RedisServer;
let opened: Locks[];
let reader: TestReader;
let spans: InMemorySpanExporter;
let providers: { meterProvider: MeterProvider; tracerProvider: BasicTracerProvider };
let instrumentation: Instrumentation | undefined;

function open(): Locks {
  const locks = createLocks(redis(server.client()));
  opened.push(locks);
  return locks;
}

/** The collected values: the count of a histogram, or the value of another instrument. */
async function collected(): Promise<{ counts: Record<string, number>; metrics: ResourceMetrics }> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  const counts: Record<string, number> = {};
  for (const metric of resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)) {
    for (const { attributes, value } of metric.dataPoints) {
      const named = Object.entries(attributes).map(([name, each]) => `${name}=${String(each)}`);
      const id = [metric.descriptor.name, ...named.sort()].join(" ");
      counts[id] = typeof value === "number" ? value : (value as { count: number }).count;
    }
  }
  return { counts, metrics: resourceMetrics };
}

function named(name: string): ReadableSpan[] {
  return spans.getFinishedSpans().filter((span) => span.name === name);
}

onRedis("holdfast/otel on a real server", () => {
  beforeAll(async () => {
    server = await startRedis();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  });

  beforeEach(() => {
    opened = [];
    reader = new TestReader();
    spans = new InMemorySpanExporter();
    providers = {
      meterProvider: new MeterProvider({ readers: [reader] }),
      tracerProvider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
    };
  });

  afterEach(async () => {
    instrumentation?.();
    await Promise.all(opened.map((locks) => locks.close()));
  });

  afterAll(async () => {
    context.disable();
    await server.stop();
  });

  test("the metrics say what happened, and name no key", async () => {
    const [here, there] = [open(), open()];
    instrumentation = instrumentHoldfast({ ...providers, locks: here, groups: ["orders"] });
    await contendedRun(here, there);
    const { counts, metrics } = await collected();
    expect(counts).toMatchObject(expectedCounts);
    const grants = Object.entries(counts).filter(([id]) => id.startsWith("holdfast.grants "));
    expect(grants.reduce((sum, [, count]) => sum + count, 0)).toBe(6);
    expect(counts["holdfast.renew.duration group=orders outcome=renewed"]).toBeGreaterThanOrEqual(1);
    const node = Object.keys(counts).find((id) => id.startsWith("holdfast.node.up "));
    expect(counts[node as string]).toBe(1);
    const descriptors = metrics.scopeMetrics.flatMap((scope) =>
      scope.metrics.map(({ descriptor }) => descriptor),
    );
    for (const { name, unit } of descriptors) {
      expect([name, unit]).toEqual([name, instruments[name as keyof typeof instruments].unit]);
    }
    const margins = metrics.scopeMetrics
      .flatMap((scope) => scope.metrics)
      .find(({ descriptor }) => descriptor.name === "holdfast.renew.margin");
    expect(margins?.dataPointType).toBe(DataPointType.HISTOGRAM);
    const [margin] = (margins?.dataPoints ?? []) as { value: { min?: number; max?: number } }[];
    expect(margin?.value.max).toBeLessThan(0.7);
    expect(JSON.stringify(metrics)).not.toContain("orders:1");
  });

  test("after its end an instrumentation records nothing", async () => {
    const locks = open();
    const end = instrumentHoldfast(providers);
    const held = await locks.acquire("orders:1");
    end();
    end[Symbol.dispose]();
    await held.release();
    await locks.withLock("orders:1", () => undefined);
    expect(Object.keys((await collected()).counts)).toEqual([
      "holdfast.acquire.duration group=orders outcome=acquired",
    ]);
    expect(spans.getFinishedSpans().map(({ name }) => name)).toEqual([
      "holdfast acquire orders",
      "holdfast hold orders",
    ]);
  });

  test("an acquire and a hold have spans in the caller's trace, and the commands of the client belong to the acquire", async () => {
    const locks = open();
    await locks.withLock("warm", () => undefined);
    instrumentation = instrumentHoldfast({ ...providers, keys: true });
    const active: (Span | undefined)[] = [];
    const onCommand = (): void => void active.push(trace.getActiveSpan());
    subscribe("tracing:ioredis:command:start", onCommand);
    const tracer = providers.tracerProvider.getTracer("test");
    await tracer.startActiveSpan("request", async (request) => {
      const lease = await locks.acquire("orders:1");
      await lease.release();
      request.end();
    });
    unsubscribe("tracing:ioredis:command:start", onCommand);
    const [acquire, hold, request] = ["holdfast acquire orders", "holdfast hold orders", "request"].map(
      (name) => named(name)[0] as ReadableSpan,
    ) as [ReadableSpan, ReadableSpan, ReadableSpan];
    const { traceId, spanId } = request.spanContext();
    for (const span of [acquire, hold]) {
      expect([span.spanContext().traceId, span.parentSpanContext?.spanId]).toEqual([traceId, spanId]);
    }
    expect(hold.links.map((link) => link.context.spanId)).toEqual([acquire.spanContext().spanId]);
    expect(active[0]?.spanContext().spanId).toBe(acquire.spanContext().spanId);
    expect(acquire.attributes).toMatchObject({
      "holdfast.group": "orders",
      "holdfast.key": "orders:1",
      "holdfast.engine": "redis",
      "holdfast.kind": "mutex",
      "holdfast.outcome": "acquired",
      "holdfast.queued_ms": 0,
      "holdfast.fencing_token": hold.attributes["holdfast.fencing_token"],
    });
    expect(hold.attributes).toMatchObject({ "holdfast.end": "released", "holdfast.overrun_ms": 0 });
  });

  test("a waiter links to the span of the holder, and a loss is an event of the hold", async () => {
    const [here, there] = [open(), open()];
    instrumentation = instrumentHoldfast({ ...providers, locks: [here, there], links: true });
    const holder = await here.acquire("orders:1");
    const lossSeen = once(holder.signal, "abort");
    const waiting = there.acquire("orders:1");
    const [entry] = (await untilQueued(there, "orders:1")).holders;
    expect(entry?.labels?.["traceparent"]).toMatch(/^00-/);
    await there.admin.breakLock("orders:1", { fencingToken: holder.fencingToken, reason: "test" });
    await (await waiting).release();
    await lossSeen;
    const [first, second] = named("holdfast acquire orders") as [ReadableSpan, ReadableSpan];
    expect(second.links.map((link) => link.context.spanId)).toEqual([first.spanContext().spanId]);
    expect(second.events.map(({ name }) => name)).toEqual(["queued"]);
    expect(second.attributes["holdfast.queued_ms"]).toBeGreaterThan(0);
    const token = holder.fencingToken.toString();
    const lost = named("holdfast hold orders").find(
      (span) => span.attributes["holdfast.fencing_token"] === token,
    );
    expect(lost?.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      ["lost", { "holdfast.reason": "broken" }],
    ]);
    expect(lost?.status.message).toBe("The lease was lost: broken");
  });
});

/** The state of the key once a request is queued. The look-up of the holder was sent before this one, so its reply came first. */
async function untilQueued(locks: Locks, key: string): ReturnType<Locks["inspect"]> {
  for (;;) {
    const state = await locks.inspect(key);
    if (state.waiterCount > 0) {
      return locks.inspect(key);
    }
  }
}

test("an invalid option is refused with its name", () => {
  for (const [options, message] of [
    [{ group: [] }, "group"],
    [{ groups: 7 }, "`groups`"],
    [{ locks: {} }, "`locks`"],
    [{ links: true }, "`locks`"],
    [{ keys: "yes" }, "`keys`"],
  ] as const) {
    expect(() => instrumentHoldfast(options as object)).toThrow(message);
  }
});
