import { EngineError, type Driver } from "holdfast";
import { memory } from "holdfast/memory";
import { afterEach, beforeEach, expect, test } from "vitest";

import { createService, type LogEntry, type Service } from "../src/index.ts";
import { sendRequest, openStream, refusal } from "./support/service.ts";

let driver: Driver;
let service: Service;
let url: string;
let log: LogEntry[];

beforeEach(async () => {
  driver = memory();
  log = [];
  service = await createService({ engine: driver, drainMs: 600_000, log: (entry) => log.push(entry) });
  url = await service.listen({ port: 0 });
});

afterEach(() => service.close());

test("a defect of the service is not reported as an invalid request, and its message stays secret", async () => {
  driver.inspect = () => Promise.reject(new TypeError("secret is not a function"));
  const problem = await refusal(url, "GET", "/v1/lock?key=k");
  expect(problem).toMatchObject({ status: 500, outcome: "unknown", retryable: true });
  expect(JSON.stringify(problem)).not.toContain("secret");
  expect(log).toContainEqual(expect.objectContaining({ level: "error", event: "failed", status: 500 }));
});

test("a break with an unknown outcome is in the audit log", async () => {
  driver.breakGrant = () =>
    Promise.reject(new EngineError("no answer", { outcome: "unknown", retryable: true }));
  const body = { key: "k", fencingToken: "1", reason: "it hangs" };
  expect(await refusal(url, "POST", "/v1/lock/break", body)).toMatchObject({ outcome: "unknown" });
  expect(log.filter(({ level }) => level === "audit")).toMatchObject([{ key: "k", broken: "unknown" }]);
});

test("calls of drain and of close both resolve at the end", async () => {
  const stream = await openStream(url, "GET", "/v1/events");
  expect(stream.status).toBe(200);
  await Promise.all([service.drain(), service.close()]);
  expect(await sendRequest(url, "GET", "/healthz").catch(() => "closed")).toBe("closed");
});
