import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { describe, expect, test } from "vitest";
import { parse } from "yaml";

const folder = fileURLToPath(new URL("../../.github/", import.meta.url));

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly "timeout-minutes"?: number;
  readonly strategy?: {
    readonly matrix: { readonly node?: readonly number[]; readonly part?: readonly string[] };
  };
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly permissions?: object;
  readonly jobs: Readonly<Record<string, Job>>;
}

const workflows = readdirSync(`${folder}workflows`).map((name) => {
  const text = readFileSync(`${folder}workflows/${name}`, "utf8");
  return { name, text, workflow: parse(text) as Workflow };
});

describe.each(workflows)("$name", ({ text, workflow }) => {
  const jobs = Object.entries(workflow.jobs);

  test("has no permissions by default, and every job names its own and a time limit", () => {
    expect(workflow.permissions).toEqual({});
    for (const [name, job] of jobs) {
      expect(job.permissions, name).toBeDefined();
      expect(job["timeout-minutes"], name).toBeGreaterThan(0);
    }
  });

  test("names every action by its commit, with the version as a comment", () => {
    for (const line of text.match(/^.*\buses:.*$/gm) ?? []) {
      expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    }
  });

  test("inserts no expression into a script, because its value could be a command", () => {
    for (const [name, { steps }] of jobs) {
      for (const { run } of steps.filter((step) => step.run !== undefined)) {
        expect(run, name).not.toContain("${{");
      }
    }
  });

  test("runs no code of dependencies in a job that may publish", () => {
    for (const [name, { permissions = {}, steps }] of jobs) {
      if (Object.values(permissions).includes("write")) {
        expect(JSON.stringify(steps), name).not.toMatch(/npm (ci|install|run|test)|npx|\.ci\/run/);
      }
    }
  });
});

test("the tests run on every supported line of Node", () => {
  const { workflow } = workflows.find(({ name }) => name === "ci.yml")!;
  const { engines } = JSON.parse(readFileSync(`${folder}../package.json`, "utf8")) as {
    engines: { node: string };
  };
  const nodes = workflow.jobs["test"]!.strategy!.matrix.node!;
  expect(engines.node).toContain(`>=${nodes[0]}`);
  expect(nodes).toEqual([20, 22, 24, 26]);
});

test("each part of `npm run verify` has its nightly job", () => {
  const { workflow } = workflows.find(({ name }) => name === "verify.yml")!;
  const program = readFileSync(`${folder}../scripts/verify.mjs`, "utf8");
  const parts = Array.from(program.matchAll(/^  (\w+): \{\n    about:/gm), ([, name]) => name);
  expect(parts.length).toBeGreaterThan(5);
  expect(workflow.jobs["verify"]!.strategy!.matrix.part).toEqual(parts);
});

describe("the issue forms", () => {
  const forms = readdirSync(`${folder}ISSUE_TEMPLATE`).filter((name) => name !== "config.yml");

  test.each(forms)("%s has a name, a description, and fields with distinct ids", (name) => {
    const form = parse(readFileSync(`${folder}ISSUE_TEMPLATE/${name}`, "utf8")) as {
      readonly name: string;
      readonly description: string;
      readonly body: readonly { readonly type: string; readonly id?: string; readonly attributes: object }[];
    };
    expect(form.name.length * form.description.length).toBeGreaterThan(0);
    const fields = form.body.filter(({ type }) => type !== "markdown");
    expect(new Set(fields.map(({ id }) => id)).size).toBe(fields.length);
    for (const field of fields) expect(field.attributes).toHaveProperty("label");
  });

  test("send reports of vulnerabilities to the private form", () => {
    expect(readFileSync(`${folder}ISSUE_TEMPLATE/config.yml`, "utf8")).toContain("/security/advisories/new");
  });
});
