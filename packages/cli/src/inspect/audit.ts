import type { AuditRecord } from "holdfast";

import type { Target } from "../engine.ts";
import { exitCodes } from "../exit.ts";
import { withEngine } from "../with-engine.ts";
import { table } from "./table.ts";

export interface AuditOptions {
  readonly target: Target;
  readonly key: string | undefined;
  readonly id: string | undefined;
  readonly limit: number;
  readonly json: boolean;
}

/** Prints the last breaks, newest first. */
export function audit({ target, key, id, limit, json }: AuditOptions): Promise<number> {
  return withEngine(target, undefined, async ({ locks }) => {
    const { records } = await locks.admin.audit({ key, id, limit });
    process.stdout.write(
      json
        ? `${JSON.stringify({ version: 1, records })}\n`
        : `${table([["TIME", "BY", "KEY", "OWNER", "TOKEN", "REASON", "ID"], ...records.map(row)])}\n`,
    );
    return exitCodes.done;
  });
}

function row({ id, at, by, key, owner, fencingToken, reason }: AuditRecord): string[] {
  return [new Date(at).toISOString(), by, key, owner ?? "-", fencingToken.toString(), reason, id];
}
