#!/usr/bin/env node
"use strict";

// npm links commands at the installation, and a clone is built later. So this file exists before the bundle.
try {
  require.resolve("../dist/bundle/main.cjs");
} catch {
  console.error("holdfast: the command line is not built; run `npm run build` in the clone");
  process.exit(70);
}
require("../dist/bundle/main.cjs");
