import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, test } from "vitest";

import { createService, type Service } from "../src/index.ts";

const example = fileURLToPath(new URL("../../../examples/openapi-client", import.meta.url));
const require = createRequire(join(example, "package.json"));
let service: Service;
let url: string;
let folder: string;

beforeAll(async () => {
  service = await createService();
  url = await service.listen({ port: 0 });
  folder = await mkdtemp(join(tmpdir(), "holdfast-openapi-"));
});

afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
  readonly components: {
    readonly schemas: { readonly Problem: { properties: { code: { enum: string[] } } } };
  };
}

test("the document keeps the recommended rules of the OpenAPI linter", async () => {
  const { createConfig, lintFromString } = require("@redocly/openapi-core") as {
    createConfig(config: object): Promise<object>;
    lintFromString(
      options: object,
    ): Promise<{ ruleId: string; message: string; location: { pointer: string }[] }[]>;
  };
  const source = await (await fetch(`${url}/openapi.json`)).text();
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source, absoluteRef: `${url}/openapi.json`, config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
    [],
  );
});

test("the document names each operation, and lists the codes of problems", async () => {
  const { paths, components } = (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  const names = Object.values(paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(new Set(names).size).toBe(names.length);
  expect(names).toContain("acquireLease");
  expect(components.schemas.Problem.properties.code.enum).toEqual(
    expect.arrayContaining(["wait-timeout", "lease-lost", "rate-limited"]),
  );
});

test("the client of the example is the one that the document generates, and it acquires, renews and releases", async () => {
  const generated = join(folder, "service.ts");
  await node("openapi-typescript", "bin/cli.js", [`${url}/openapi.json`, "--output", generated]);
  expect(await readFile(generated, "utf8"), "run: npm run generate -w examples/openapi-client").toBe(
    await readFile(join(example, "src", "service.generated.ts"), "utf8"),
  );
  await node("typescript", "bin/tsc", ["-p", example, "--outDir", join(example, "dist")]);
  const { stdout } = await promisify(execFile)(process.execPath, [join(example, "dist", "main.js")], {
    env: { PATH: process.env["PATH"], HOLDFAST_URL: url },
  });
  expect(stdout).toMatch(/^acquired with the fencing token \d+\nheld by .*: an example\nreleased: true\n$/);
}, 60_000);

function node(library: string, program: string, args: string[]): Promise<unknown> {
  const path = join(dirname(require.resolve(`${library}/package.json`)), program);
  return promisify(execFile)(process.execPath, [path, ...args], { cwd: example });
}
