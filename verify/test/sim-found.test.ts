import { readdirSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { toldOf } from "../sim/findings.ts";
import type { Schedule } from "../sim/schedule.ts";
import { play } from "../sim/world.ts";

const folder = new URL("schedules/", import.meta.url);

test.each(readdirSync(folder))("what once went wrong does not: %s", async (file) => {
  const schedule = JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Schedule;
  const { findings, grants } = await play(schedule);
  expect(findings.map(toldOf)).toEqual([]);
  expect(grants).toBeGreaterThan(0);
});
