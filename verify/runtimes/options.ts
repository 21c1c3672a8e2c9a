import { parseArgs } from "node:util";

import { selectedEntries } from "../options.ts";
import { clients, runtimes, servers, type Client, type Runtime, type Server } from "./roster.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly json: boolean;
  /** Whether docs/compatibility.md gets the tables. */
  readonly write: boolean;
  readonly offline: boolean;
  readonly parts: readonly Part[];
  readonly runtimes: readonly Runtime[];
  readonly clients: readonly Client[];
  readonly servers: readonly Server[];
}

const parts = ["programs", "types", "suites"] as const;
type Part = (typeof parts)[number];

export const usage: string = `Usage: npm run verify:runtimes -- [options]

Installs the packed package in empty folders, and runs a program with every runtime, client library and server.
Then compiles a consumer with every version of TypeScript and every module setting. At last runs the tests of replicas
and Sentinel on every server.

  --only A,B       the parts to run: ${parts.join(", ")} (default: all)
  --runtime A,B    ${namesOf(runtimes)} (default: all)
  --client A,B     ${namesOf(clients)} (default: all)
  --server A,B     ${namesOf(servers)} (default: all)
  --offline        only what is installed: this Node, the client libraries of this repository, and the server on the path
  --write          write the tables of a complete run to docs/compatibility.md
  --json           the results as JSON on stdout
  --help           this text

Runtimes, client libraries, compilers and servers are installed on demand, into the cache folder of the user. A server that
cannot be installed is listed as not run. Exits with 1 if a cell failed, or if nothing ran.
`;

/** @throws {TypeError} with the name of the option that is invalid */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      runtime: { type: "string" },
      client: { type: "string" },
      server: { type: "string" },
      offline: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { help, json, write, offline, only, runtime, client, server } = values;
  if (write && (offline || [only, runtime, client, server].some((selected) => selected !== undefined))) {
    throw new TypeError("--write needs a complete run, without --offline and without a selection");
  }
  const named = parts.map((name) => ({ name }));
  return {
    help,
    json,
    write,
    offline,
    parts: selectedEntries("only", offline ? (only ?? "programs") : only, named).map(({ name }) => name),
    runtimes: selectedEntries("runtime", runtime, runtimes),
    clients: selectedEntries("client", client, clients),
    servers: selectedEntries("server", server, servers),
  };
}

function namesOf(entries: readonly { readonly name: string }[]): string {
  return entries.map(({ name }) => name).join(", ");
}
