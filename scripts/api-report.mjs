// Compares the public types of each published entry point with its report, `packages/<package>/etc/<entry>.api.md`, with
// `-` for each `/` of the entry. Needs a build.
//
//   node scripts/api-report.mjs            writes the reports; commit the result
//   node scripts/api-report.mjs --check    fails if a report differs from the types

import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Extractor, ExtractorConfig } from "@microsoft/api-extractor";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const isCheck = process.argv.includes("--check");

for (const name of readdirSync(join(root, "packages"))) {
  const folder = join(root, "packages", name);
  const { private: isPrivate, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  for (const [path, target] of isPrivate ? [] : Object.entries(exports)) {
    const { types } = target.import ?? target;
    if (types !== undefined)
      report(folder, path === "." ? "index" : path.slice(2).replaceAll("/", "-"), types);
  }
}

function report(folder, entry, types) {
  const reports = join(folder, "etc");
  mkdirSync(reports, { recursive: true });
  const config = ExtractorConfig.prepare({
    configObjectFullPath: join(folder, "package.json"),
    packageJsonFullPath: join(folder, "package.json"),
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: join(folder, types),
      compiler: { tsconfigFilePath: join(folder, "tsconfig.json"), skipLibCheck: true },
      apiReport: {
        enabled: true,
        reportFileName: `${entry}.api.md`,
        reportFolder: reports,
        reportTempFolder: join(root, "node_modules", ".cache", "api-report"),
        includeForgottenExports: true,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
    },
  });
  const { apiReportChanged, errorCount } = Extractor.invoke(config, {
    localBuild: !isCheck,
    showVerboseMessages: false,
    messageCallback: (message) => {
      message.handled = message.logLevel !== "error";
    },
  });
  if (errorCount > 0 || (isCheck && apiReportChanged)) {
    console.error(
      `${join(folder, "etc", entry)}.api.md differs from the public types. Run \`npm run api\`, read the difference, and commit it.`,
    );
    process.exitCode = 1;
  }
}
