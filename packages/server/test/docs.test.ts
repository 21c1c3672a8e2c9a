import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { startInstance, type ServiceInstance } from "./support/service.ts";

const run = promisify(execFile);
const text = readFileSync(new URL("../../../docs/service.md", import.meta.url), "utf8");
const source = readFileSync(new URL("../src/main.ts", import.meta.url), "utf8");

/** A block of commands, and the documented response of its last command. */
interface Example {
  readonly commands: readonly string[];
  readonly kind: string | undefined;
  readonly answer: string;
}

const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = "", body = ""]) => ({
  kind,
  body,
}));
const examples: Example[] = blocks.flatMap(({ kind, body }, index) => {
  const next = blocks[index + 1];
  const isCalled = kind === "sh" && body.includes("curl");
  const response = next?.kind === "json" || next?.kind === "text" ? next : undefined;
  return isCalled
    ? [{ commands: body.trim().split("\n"), kind: response?.kind, answer: response?.body ?? "" }]
    : [];
});

/** Fields with the same value in every response. */
const lasting = new Set([
  "code",
  "status",
  "key",
  "kind",
  "released",
  "broken",
  "fence",
  "limit",
  "ttlMs",
  "owner",
  "reason",
  "guarantee",
  "outcome",
  "retryable",
  "title",
  "type",
  "cursor",
  "waiterCount",
  "detail",
]);

describe("docs/service.md", () => {
  let instance: ServiceInstance;
  const seen = { leaseId: "", fencingToken: "" };

  beforeAll(async () => {
    instance = await startInstance();
  });

  afterAll(() => instance.kill("SIGTERM"));

  test("begins with TryLock and ReleaseLock, one curl each", () => {
    expect(examples[0]?.commands).toHaveLength(1);
    expect(examples[0]?.commands[0]).toMatch(/^curl --json .* http:\/\/127\.0\.0\.1:7420\/v1\/leases$/);
    expect(examples[1]?.commands).toEqual(["curl -X DELETE http://127.0.0.1:7420/v1/leases/<leaseId>"]);
  });

  // The examples run in order, because each continues from the state of the one before.
  test.each(examples.map((example) => [example.commands.join("; "), example] as const))(
    "%s",
    async (_, example) => {
      let said = "";
      for (const command of example.commands) {
        said = await call(command);
        const response = parsed(said);
        seen.leaseId = typeof response?.["leaseId"] === "string" ? response["leaseId"] : seen.leaseId;
        const token =
          response?.["fencingToken"] ??
          (response?.["holders"] as { fencingToken: string }[] | undefined)?.[0]?.fencingToken;
        seen.fencingToken = typeof token === "string" ? token : seen.fencingToken;
      }
      if (example.kind === "json") {
        expectLike(JSON.parse(said), JSON.parse(example.answer), "");
      } else if (example.kind === "text") {
        expect(said.match(/^event: .*$/gm)).toEqual(example.answer.trim().split("\n"));
      }
    },
  );

  test("lists every path of the OpenAPI document", async () => {
    const { paths } = JSON.parse(await call("curl http://127.0.0.1:7420/openapi.json")) as { paths: object };
    const commands = examples.flatMap(({ commands: all }) => all).join("\n");
    for (const path of Object.keys(paths)) {
      expect(commands, path).toContain(path.replace("{leaseId}", "<leaseId>"));
    }
  });

  test("lists every setting that the program reads, and no other", () => {
    const listed = [...text.matchAll(/^\| `(HOLDFAST_\w+)`/gm)].map(([, name = ""]) => name).sort();
    const read = [...new Set(source.match(/HOLDFAST_\w+/g))].sort();
    expect(listed).toEqual(read);
  });

  test("lists every code and its status", async () => {
    const listed = [...text.matchAll(/^\| `([a-z-]+)` +\| ([\d, ]+) +\|/gm)].map(([, code, status = ""]) => [
      code,
      status.trim().split(", ").map(Number),
    ]);
    const { statuses } = await import("../src/problems.ts");
    const known = Object.fromEntries(
      Object.entries(statuses).filter(
        ([code]) => !["closed", "self-deadlock", "latch-expired"].includes(code),
      ),
    );
    expect(Object.fromEntries(listed.map(([code, all]) => [code, (all as number[])[0]]))).toEqual(known);
  });

  async function call(command: string): Promise<string> {
    const real = command
      .replace(/\bcurl /, "curl -sS ")
      .replaceAll("http://127.0.0.1:7420", instance.url)
      .replaceAll("<leaseId>", seen.leaseId)
      .replaceAll("<fencingToken>", seen.fencingToken);
    const { stdout } = await run("sh", ["-c", `${real}; test $? -eq 0 -o $? -eq 124 || true`]);
    return stdout;
  }
});

function parsed(said: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(said) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** Expects each documented field with the same type, and with the same value if the value does not change between calls. */
function expectLike(actual: unknown, shown: unknown, path: string): void {
  if (Array.isArray(shown)) {
    expect(Array.isArray(actual) && actual.length, path).toBe(shown.length);
    shown.forEach((one, index) => {
      expectLike((actual as unknown[])[index], one, `${path}[${index}]`);
    });
  } else if (typeof shown === "object" && shown !== null) {
    for (const [name, value] of Object.entries(shown)) {
      const found = (actual as Record<string, unknown>)[name];
      if (lasting.has(name)) {
        expect(found, `${path}.${name}`).toEqual(value);
      } else {
        expectLike(found, value, `${path}.${name}`);
      }
    }
  } else {
    expect(typeof actual, path).toBe(typeof shown);
  }
}
