import { expect, test } from "vitest";

import { createService, type Diagnosis } from "../src/index.ts";
import { refusal, sendRequest } from "./support/service.ts";

const diagnosis: Diagnosis = { topology: "server", nodes: ["a"], findings: [] };

test("one diagnosis answers concurrent requests", async () => {
  let runs = 0;
  const service = await createService({
    doctor: async () => {
      runs += 1;
      return diagnosis;
    },
  });
  const url = await service.listen({ port: 0 });
  const replies = await Promise.all([1, 2, 3].map(() => sendRequest(url, "GET", "/v1/doctor")));
  expect(replies.map(({ body }) => body)).toEqual([diagnosis, diagnosis, diagnosis]);
  expect(runs).toBe(1);
  await service.close();
});

test("failed checks are a failure of the engine, with the reason", async () => {
  const service = await createService({ doctor: () => Promise.reject(new Error("connect ECONNREFUSED")) });
  const url = await service.listen({ port: 0 });
  expect(await refusal(url, "GET", "/v1/doctor")).toMatchObject({
    status: 503,
    code: "engine-unavailable",
    detail: expect.stringContaining("connect ECONNREFUSED") as string,
  });
  await service.close();
});

test("a service without checks says so", async () => {
  const service = await createService();
  const url = await service.listen({ port: 0 });
  expect(await refusal(url, "GET", "/v1/doctor")).toMatchObject({ status: 404, code: "not-found" });
  await service.close();
});
