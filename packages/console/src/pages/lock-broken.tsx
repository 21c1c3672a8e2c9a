import type { Owners, PastHold } from "../api/types.ts";
import { now } from "../live/live.ts";
import { brokenBy, brokenLately, isGrant, type BrokenHold } from "../model/broken.ts";
import { processOf } from "../model/owner.ts";
import { hrefOf } from "../router.ts";
import { HowToFence } from "../ui/break-fields.tsx";
import { Ago, OwnerName } from "../ui/parts.tsx";
import { usePoll } from "../ui/use-poll.ts";

/** What is left to do after a break, because it does not stop the process of the former holder. */
export function BrokenNotice({ holds }: { holds: readonly PastHold[] }) {
  const [broken] = brokenLately(holds, now.value);
  return broken === undefined ? null : <StillToDo broken={broken} />;
}

function StillToDo({ broken }: { broken: BrokenHold }) {
  const { owner, until, fencingToken } = broken;
  const { data, error } = usePoll<Owners>("v1/owners", {}, 5_000);
  const number = fencingToken === undefined ? "that of its grant" : fencingToken;
  return (
    <p class="warning" data-testid="still-to-do">
      The grant of{" "}
      <a href={hrefOf("owners", { owner })}>
        <OwnerName owner={owner} />
      </a>{" "}
      was broken <Ago at={until} now={now.value} />
      {brokenBy(broken)}. Its process was not stopped
      {stateText(error === undefined ? data : undefined, broken)}: stop {processOf(owner) ?? "it"}. If you
      cannot, let the resource refuse all fencing tokens up to {number}. <HowToFence />
    </p>
  );
}

/**
 * What the former holder reports. A missing report proves nothing, because a principal may not see all owners. Another process, such as the
 * next one on the host, can have the same name.
 */
function stateText(data: Owners | undefined, broken: PastHold): string {
  const reports = data?.owners.filter(({ owner, answered }) => answered && owner === broken.owner) ?? [];
  if (reports.length === 0) return "";
  const isUnaware = reports.some(({ holds }) => holds.some((hold) => isGrant(hold, broken)));
  return isUnaware
    ? ", still runs and has not learned of the break yet"
    : ", and a process of this name runs";
}
