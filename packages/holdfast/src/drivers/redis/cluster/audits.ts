import type { KeySpace } from "../protocol/keys.ts";
import type { Script } from "../protocol/script.ts";
import { auditScript } from "../protocol/scripts.generated.ts";
import type { StoredAudit } from "../single/server-directory.ts";
import { slotOf, tagOf } from "./hash-slot.ts";
import type { SlotMap } from "./slot-map.ts";

/**
 * Reads the audits of all slots, with one call of a script for each primary.
 * @param keepFrom records with a smaller id are removed; "0": no record is removed
 */
export async function readAudits(
  map: SlotMap,
  run: (address: string, script: Script, args: readonly string[]) => Promise<unknown>,
  keySpace: KeySpace,
  keepFrom: string,
): Promise<StoredAudit[]> {
  const found = await Promise.all(
    map.primaries().map((address) => {
      const tags = map.slotsOf(address).map(tagOf);
      return run(address, auditScript, [keySpace.prefix, keepFrom, ...tags]);
    }),
  );
  return (found as unknown[][][]).flat().map(([tag, ...members]) => ({ slot: slotOf(String(tag)), members }));
}
