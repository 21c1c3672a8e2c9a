import { readFile } from "node:fs/promises";

import { expect, test } from "vitest";
import { instruments, metricName, type InstrumentName } from "holdfast/prometheus";

const root = new URL("../../", import.meta.url).pathname;

/** The instruments in docs/observability.md, a row for each. */
async function rows(): Promise<string[][]> {
  const page = await readFile(`${root}docs/observability.md`, "utf8");
  const table = page.slice(page.indexOf("<!-- instruments -->"), page.indexOf("<!-- /instruments -->"));
  return table
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim())); // prettier-ignore
}

test("docs/observability.md has a row for each instrument, with its kind, unit and attributes", async () => {
  const expected = (Object.keys(instruments) as InstrumentName[]).map((name) => {
    const { kind, unit, attributes, description } = instruments[name];
    return [`\`${name}\``, `\`${metricName(name)}\``, kind, `\`${unit}\``, attributes.map((each) => `\`${each}\``).join(", "), description]; // prettier-ignore
  });
  expect(await rows()).toEqual(expected);
});
