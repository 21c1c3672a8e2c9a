import { text } from "node:stream/consumers";

import type { Lease, SerializedLease } from "holdfast";

import { Exit, exitCodes } from "../exit.ts";

/** The forms in which a lease is printed for a script. */
export type LeaseFormat = "plain" | "env" | "json";

/**
 * Formats a lease for the next command. The text is a secret, because its bearer controls the lock.
 * The form `plain` is one line, `env` is for `eval`, and `json` has the key, the fencing token and the end too.
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
 * Reads a lease that `acquire` printed, in any form but `env`, from `HOLDFAST_LEASE` or else from stdin. A lease is no argument, because
 * every user of the machine can read arguments.
 * @param hint the end of the message for a missing lease
 */
export async function readLease(hint = ""): Promise<SerializedLease> {
  const file = process.env["HOLDFAST_LEASE"] ?? (process.stdin.isTTY ? "" : await text(process.stdin));
  const usage =
    "no lease is given; set HOLDFAST_LEASE to the output of holdfast acquire, or send that output to stdin";
  if (file.trim() === "") {
    throw new Exit(exitCodes.usage, `${usage}${hint}`);
  }
  try {
    const given = JSON.parse(file) as SerializedLease | { readonly lease: SerializedLease };
    return "lease" in given ? given.lease : given;
  } catch {
    throw new Exit(exitCodes.usage, `expected a lease as holdfast acquire prints it, got other text`);
  }
}

/** Quotes a text for a POSIX shell. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
