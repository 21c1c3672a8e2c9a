import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, expect } from "vitest";

import { engines } from "../../chaos/plan/engines.ts";
import type {
  LeaseRequest,
  ClientRecord,
  CoordinatorRecord,
  ResourceRecord,
} from "../../chaos/judge/history.ts";
import { violationsOf } from "../../chaos/judge/judge.ts";
import type { EngineName, Plan } from "../../chaos/plan/plan.ts";
import { planOf } from "../../chaos/plan/planner.ts";
import { readHistory } from "../../chaos/judge/read-history.ts";
import type { RuleName } from "../../chaos/judge/rule.ts";

/** A history that a test writes instead of a run. */
export interface PlantedHistory {
  readonly engine?: EngineName;
  readonly clients?: Readonly<Record<string, readonly ClientRecord[]>>;
  readonly resource?: readonly ResourceRecord[];
  readonly coordinator?: readonly CoordinatorRecord[];
}

export const endOfRun: CoordinatorRecord = { e: "phase", at: 100_000, phase: "end", round: 1 };
export const opened: ClientRecord = { e: "opened", at: 0, pid: 1, handover: true };
const closed: ClientRecord = { e: "closed", at: 99_000 };

interface PlantedLeaseOptions extends Partial<LeaseRequest> {
  readonly until?: number;
  readonly requestedAt?: number;
  readonly tokens?: Readonly<Record<string, string>>;
}

/** The records of a request that is granted at once. */
export function granted(
  requestId: number,
  at: number,
  token: number,
  lease: PlantedLeaseOptions = {},
): ClientRecord[] {
  const { until: validUntil = at + 1_000, requestedAt = at - 1, tokens, ...request } = lease;
  const requested = { key: "hot", kind: "acquire", waitMs: 1_000, ...request } as const;
  const allTokens = tokens === undefined ? {} : { tokens };
  return [
    { e: "requested", at: requestedAt, requestId, ...requested },
    { e: "granted", at, requestId, token: String(token), validUntil, ...allTokens },
  ];
}

export function released(requestId: number, at: number, validUntil: number = at + 500): ClientRecord[] {
  return [
    { e: "releasing", at, requestId, validUntil },
    { e: "released", at: at + 1, requestId, answer: "true" },
  ];
}

interface HistoryFixture {
  /** The folder of the current test. */
  folder(): string;
  plant(planted: PlantedHistory): Promise<void>;
  /** The names of the rules that a planted history violates. */
  violated(planted: PlantedHistory): Promise<RuleName[]>;
  /** Expects that the records of these clients violate exactly these rules. */
  finds(rules: readonly string[], clients: PlantedHistory["clients"]): Promise<void>;
}

/** Sets up a folder for each test of a file. */
export function historyFixture(): HistoryFixture {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-planted-"));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  const plant = (planted: PlantedHistory): Promise<void> => write(folder, planted);
  const violated = async (planted: PlantedHistory): Promise<RuleName[]> => {
    await plant(planted);
    return violationsOf(await readHistory(folder)).map(({ rule }) => rule);
  };
  return {
    folder: () => folder,
    plant,
    violated,
    finds: async (rules, clients = {}) => {
      expect(await violated({ clients })).toEqual(rules);
    },
  };
}

/** The plan that a planted history follows. */
export function planFor(engine: EngineName): Plan {
  const nodeCount = engines[engine].nodeCounts[0] as number;
  return planOf(engines[engine], { seed: 1, minutes: 1, nodeCount, without: null });
}

async function write(folder: string, planted: PlantedHistory): Promise<void> {
  const { engine = "redis", clients = {}, resource = [], coordinator = [endOfRun] } = planted;
  const history = join(folder, "history");
  await mkdir(history);
  await writeFile(join(folder, "plan.json"), JSON.stringify(planFor(engine)));
  await writeRecords(join(history, "resource.ndjson"), resource);
  await writeRecords(join(history, "coordinator.ndjson"), coordinator);
  for (const [name, records] of Object.entries(clients)) {
    await writeRecords(join(history, `${name}.ndjson`), [opened, ...records, closed]);
  }
}

async function writeRecords(path: string, records: readonly object[]): Promise<void> {
  await writeFile(path, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
}
