import { text } from "node:stream/consumers";

import type { Lease, SerializedLease } from "holdfast";

import { Exit, exitCodes } from "../exit.ts";

/** How a lease is written down for a script. */
export type LeaseFormat = "plain" | "env" | "json";

/**
 * A lease on its way from one command to the next. It is a secret: whoever has it holds the lock.
 * `plain`: one line; `env`: for `eval`; `json`: with what a program wants to know beside it.
 */
export function formatLease(lease: Lease, format: LeaseFormat): string {
  const { key, remainingMs, fencingToken } = lease.toJSON();
  const serialized = lease.transfer();
  const file = JSON.stringify(serialized);
  switch (format) {
    case "plain":
      return file;
    case "env":
      return [
        ["HOLDFAST_LEASE", file],
        ["HOLDFAST_LOCK_KEY", key],
        ["HOLDFAST_FENCING_TOKEN", fencingToken],
      ]
        .map(([name, value]) => `export ${name}=${quoted(value as string)}`)
        .join("\n");
    case "json":
      return JSON.stringify({ version: 1, key, fencingToken, remainingMs, lease: serialized });
  }
}

/**
 * Reads what `acquire` wrote, in any form but `env`: from `HOLDFAST_LEASE`, else from stdin. It has no business in arguments, which
 * every user of the machine can see.
 */
export async function readLease(): Promise<SerializedLease> {
  const file = process.env["HOLDFAST_LEASE"] ?? (process.stdin.isTTY ? "" : await text(process.stdin));
  const usage = "no lease is given; set HOLDFAST_LEASE to what holdfast acquire wrote, or send it to stdin";
  if (file.trim() === "") {
    throw new Exit(exitCodes.usage, usage);
  }
  try {
    const given = JSON.parse(file) as SerializedLease | { readonly lease: SerializedLease };
    return "lease" in given ? given.lease : given;
  } catch {
    throw new Exit(exitCodes.usage, `what was given is not a lease that holdfast acquire wrote`);
  }
}

/** For a POSIX shell. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
