import type { Owner, OwnerHold, PastHold } from "../api/types.ts";
import { now } from "../live/live.ts";
import { processOf } from "../model/owner.ts";
import { Ago, OwnerName } from "../ui/parts.tsx";

/** For how long the page shows what is left to do, ms. */
const shownMs = 3_600_000;

/** What is left to do after a break, because it does not stop the process of the former holder. */
export function BrokenNotice({ holds, owners }: { holds: readonly PastHold[]; owners: readonly Owner[] }) {
  const broken = holds.find(({ end, until }) => end === "broken" && (until ?? 0) > now.value - shownMs);
  if (broken?.until == null) return null;
  const { owner, until, fencingToken } = broken;
  const number = fencingToken === undefined ? "that of its grant" : fencingToken;
  const isUnaware = owners.some(({ holds: held }) => held.some((hold) => isGrant(hold, broken)));
  return (
    <p class="warning" data-testid="still-to-do">
      The grant of <OwnerName owner={owner} /> was broken <Ago at={until} now={now.value} />. Its process was
      not stopped: stop {processOf(owner) ?? "it"}, or let the resource refuse all fencing tokens up to{" "}
      {number}.{isUnaware && " It has not learned of the break yet."}
    </p>
  );
}

/** Whether a process reports the broken grant as held. */
function isGrant({ key, fencingToken }: OwnerHold, broken: PastHold): boolean {
  return key === broken.key && fencingToken !== undefined && fencingToken === broken.fencingToken;
}
