import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";
import { limitMs, waitUntil } from "@holdfast/test-kit";

const program = fileURLToPath(new URL("../start.mjs", import.meta.url));

test("npm start prints the address of the service and two requests, runs the workers, and ends on a signal", async () => {
  const child = spawn(process.execPath, [program, "--traffic"], {
    env: { ...process.env, HOLDFAST_PORT: "0", HOLDFAST_URL: "memory:" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await waitUntil(
    () => output.includes("curl -X DELETE"),
    "the service prints how to use it",
    limitMs(20_000),
  );
  const [url = ""] = /http:\/\/\S+/.exec(output) ?? [];
  expect(output).toContain(`curl --json '{"key":"order:555","ttlMs":30000}' ${url}/v1/leases`);
  expect(output).toContain("guarantee: process");
  await waitUntil(
    async () => {
      const response = await fetch(`${url}/v1/locks?prefix=stock:`);
      return JSON.stringify(await response.json()).includes("worker ");
    },
    "a worker holds a lock",
    limitMs(20_000),
  );
  const diagnosis: unknown = await (await fetch(`${url}/v1/doctor`)).json();
  expect(diagnosis).toMatchObject({ topology: "memory", findings: [{ id: "in-process" }] });
  expect(output).toContain("Traffic runs");
  expect(output).toContain(`npx holdfast top --url ${url}\n`);
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});
