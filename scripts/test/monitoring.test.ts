import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createService, type Service } from "@holdfast/server";
import { startRedis, stablePort, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { parse } from "yaml";
import { afterAll, beforeAll, expect, test } from "vitest";

import { describeWith } from "../../packages/holdfast/test/support/servers.ts";

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly id?: number;
  readonly datasource?: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly id?: number;
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[];
  };
  readonly panels: readonly Panel[];
}

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

const root = new URL("../../", import.meta.url).pathname;
const monitoring = join(root, "deploy", "monitoring");
const dashboard = JSON.parse(
  await readFile(join(monitoring, "grafana", "holdfast.json"), "utf8"),
) as Dashboard;
const { groups } = parse(await readFile(join(monitoring, "alerts.yaml"), "utf8")) as {
  groups: { rules: Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const isInstalled = ["promtool", "prometheus"].every(
  (name) => spawnSync(name, ["--version"]).error === undefined,
);

/** The expressions of all panels, as Grafana would send them. */
function queries(): string[] {
  return dashboard.panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) =>
      expr.replaceAll("$__rate_interval", "1m").replace(/\$(job|instance|group)/g, ".*"),
    ),
  );
}

function namesIn(expression: string): string[] {
  return (expression.match(/\b(?:holdfast|http_server)_\w+/g) ?? []).map((name) =>
    name.replace(/_(bucket|count|sum)$/, ""),
  );
}

test("the dashboard has its variables and rows, and panels that Grafana can place", () => {
  const variables = dashboard.templating.list.map(({ name, type }) => [name, type]);
  expect(variables).toEqual([["datasource", "datasource"], ["job", "query"], ["instance", "query"], ["group", "query"]]); // prettier-ignore
  const rows = dashboard.panels.filter(({ type }) => type === "row").map(({ title }) => title);
  expect(rows).toEqual(["Now", "Waiting", "Holding", "Renewal", "Quorum and nodes", "Service"]);
  expect([dashboard.uid, dashboard.id, dashboard.schemaVersion]).toEqual(["holdfast", undefined, 41]);
  const cells = new Set<string>();
  for (const { type, title, id, gridPos, datasource, targets = [] } of dashboard.panels) {
    expect([title, id, gridPos.x + gridPos.w <= 24]).toEqual([title, undefined, true]);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(cells.has(`${x} ${y}`), `${title} overlaps`).toBe(false);
        cells.add(`${x} ${y}`);
      }
    }
    if (type !== "row") {
      expect([title, datasource?.uid, targets.length > 0]).toEqual([title, "${datasource}", true]);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    }
  }
});

test("docs/alerts.md has a section for each alert, which its runbook URL names", async () => {
  const page = await readFile(join(root, "docs", "alerts.md"), "utf8");
  const sections = Array.from(page.matchAll(/^## (\w+)$/gm), ([, name]) => name);
  const alerts = rules.flatMap(({ alert }) => (alert === undefined ? [] : [alert]));
  expect(sections).toEqual(alerts);
  for (const { alert, annotations } of rules.filter((rule) => rule.alert !== undefined)) {
    expect(annotations?.["runbook_url"]).toMatch(new RegExp(`/docs/alerts\\.md#${alert?.toLowerCase()}$`));
  }
});

describeWith("prometheus", isInstalled)("with Prometheus", () => {
  let redis: RedisServer;
  let service: Service;
  let url: string;
  let folder: string;
  let prometheus: ChildProcess;
  let api: string;

  beforeAll(async () => {
    redis = await startRedis();
    service = await createService({ engine: `redis://127.0.0.1:${redis.port}`, groups: ["orders:"] });
    url = await service.listen({ port: 0 });
    folder = await mkdtemp(join(tmpdir(), "holdfast-prometheus-"));
    const config = {
      global: { scrape_interval: "500ms", evaluation_interval: "500ms" },
      rule_files: [join(monitoring, "alerts.yaml")],
      scrape_configs: [{ job_name: "holdfast", static_configs: [{ targets: [new URL(url).host] }] }],
    };
    await writeFile(join(folder, "prometheus.yml"), JSON.stringify(config));
    const address = `127.0.0.1:${await stablePort()}`;
    api = `http://${address}/api/v1`;
    prometheus = spawn(
      "prometheus",
      [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${address}`], // prettier-ignore
      { stdio: "ignore" },
    );
    const isScraped = async (): Promise<boolean> =>
      (await query("holdfast_server_open_waits").catch(() => [])).length > 0;
    await waitUntil(isScraped, "the service is scraped");
  });

  afterAll(async () => {
    const ended = new Promise((resolve) => prometheus.once("exit", resolve));
    prometheus.kill("SIGKILL");
    await ended;
    await service.close();
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  async function query(expression: string): Promise<unknown[]> {
    const response = await fetch(`${api}/query?${new URLSearchParams({ query: expression }).toString()}`);
    const body = (await response.json()) as { status: string; error?: string; data: { result: unknown[] } };
    expect([expression, body.status, body.error]).toEqual([expression, "success", undefined]);
    return body.data.result;
  }

  test.each([
    ["check", ["check", "rules", "alerts.yaml"]],
    ["unit tests", ["test", "rules", "alerts.test.yaml"]],
  ])("the rules pass promtool: %s", (_name, args) => {
    const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: monitoring, encoding: "utf8" });
    expect([status, status === 0 ? "" : stdout + stderr]).toEqual([0, ""]);
  });

  test("every metric of the dashboard and the rules is a metric of the service", async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    const known = new Set(Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name));
    const own = rules.flatMap(({ record }) => record ?? []);
    const expressions = [...queries(), ...rules.map(({ expr }) => own.reduce((left, name) => left.replaceAll(name, ""), expr))]; // prettier-ignore
    const variables = dashboard.templating.list.flatMap((each) => JSON.stringify(each.query));
    const unknown = [...expressions, ...variables].flatMap(namesIn).filter((name) => !known.has(name));
    expect(unknown).toEqual([]);
  });

  test("Prometheus evaluates the query of every panel, and the rules", async () => {
    const expressions = queries();
    expect(expressions.length).toBeGreaterThan(25);
    await Promise.all(expressions.map((expression) => query(expression)));
    expect(await query('holdfast_node_up == 1 and on() holdfast_held{group="orders:"} == 0')).toHaveLength(1);
    const response = await fetch(`${api}/rules`);
    const { data } = (await response.json()) as {
      data: { groups: { rules: { name: string; health: string }[] }[] };
    };
    const loaded = data.groups.flatMap((group) => group.rules);
    expect(loaded.map(({ name }) => name)).toEqual(rules.map(({ alert, record }) => alert ?? record));
    expect(loaded.filter(({ health }) => health === "err")).toEqual([]);
  });
});
