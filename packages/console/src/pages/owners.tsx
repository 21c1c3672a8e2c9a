import { useComputed, useSignal } from "@preact/signals";

import type { Owner, OwnerHold, Owners } from "../api/types.ts";
import { now, rowOfKey, rows } from "../live/live.ts";
import { targetsOfOwner } from "../model/break-target.ts";
import { brokenLately, isGrant, type BrokenHold } from "../model/broken.ts";
import { formatDuration, formatTicking } from "../model/duration.ts";
import { firstOwners, holdCountOf, matchingOwners, ownersOf } from "../model/owners.ts";
import { go, hrefOf, route, setParams } from "../router.ts";
import { canBreak } from "../session.ts";
import { askToBreak } from "../ui/break-dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { focusField, useKeys } from "../ui/keys.ts";
import { Notice, OwnerName, PageHead, TableScroll } from "../ui/parts.tsx";
import { PollNotice } from "../ui/poll-notice.tsx";
import { useHistory } from "../ui/use-history.ts";
import { usePoll } from "../ui/use-poll.ts";

const mostOwners = 200;

/** The owners, from the directory of processes or from the listed locks. */
interface Known {
  readonly owners: readonly Owner[];
  /** Why some owners may be missing. Empty: all are known. */
  readonly problem: string;
  readonly isDirectory: boolean;
  /** When the owners were read. */
  readonly at: number;
  readonly refresh: () => void;
}

/** The processes that hold or wait, and what would be free without one of them. */
export function OwnersPage() {
  const { data, error, at, refresh } = usePoll<Owners>("v1/owners", {}, 3_000);
  const fallback = useComputed(() => ownersOf(rows.value, now.value));
  useKeys({ "/": () => focusField("owner-filter") });
  if (data !== undefined) {
    const { owners, complete, problem } = data;
    const missing = problem ?? (complete ? "" : "not all processes have answered");
    return <OwnersList known={{ owners, problem: missing, isDirectory: true, at, refresh }} />;
  }
  if (error?.isMissing === true || error?.status === 403) {
    const known = { owners: fallback.value, problem: "", isDirectory: false, at: now.value, refresh };
    return <OwnersList known={known} />;
  }
  return <PollNotice error={error} subject="the directory of processes" />;
}

function OwnersList({ known: { owners, problem, isDirectory, at, refresh } }: { known: Known }) {
  const { holds = [] } = useHistory({}, 10_000).data ?? {};
  const broken = brokenLately(holds, now.value);
  const shown = matchingOwners(owners, route.value.params.get("owner") ?? "");
  const count =
    shown.length === owners.length ? `${owners.length} owners` : `${shown.length} of ${owners.length} owners`;
  return (
    <div class="page">
      <PageHead title="Owners">
        <OwnerFilter />
        <p class="muted num" aria-live="polite">
          {count}
          {problem !== "" && `, ${problem}`}
        </p>
      </PageHead>
      {!isDirectory && (
        <p class="hint">
          This service does not offer the directory of processes. The page shows the owners of the listed
          locks, without versions and lag.
        </p>
      )}
      {shown.length === 0 ? (
        <Notice title={owners.length === 0 ? "No process holds or waits" : "No owner matches"} icon="free" />
      ) : (
        <ul class="cards">
          {firstOwners(shown, mostOwners).map((owner) => (
            <OwnerCard
              key={`${owner.owner} ${owner.instance}`}
              owner={owner}
              isOpen={shown.length <= 2}
              at={at}
              broken={broken.filter((hold) => hold.owner === owner.owner)}
              refresh={refresh}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

function OwnerFilter() {
  return (
    <label class="filter">
      <Icon name="search" />
      <span class="visually-hidden">Filter</span>
      <input
        id="owner-filter"
        type="search"
        placeholder="Owner or host"
        value={route.value.params.get("owner") ?? ""}
        onInput={({ currentTarget }) => setParams({ owner: currentTarget.value })}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

interface CardProps {
  readonly owner: Owner;
  readonly isOpen: boolean;
  /** When the owner was reported. */
  readonly at: number;
  /** The grants of this owner that were broken in the last hour. */
  readonly broken: readonly BrokenHold[];
  readonly refresh: () => void;
}

function OwnerCard({ owner: one, isOpen, at, broken, refresh }: CardProps) {
  const open = useSignal<boolean | undefined>(undefined);
  const { owner } = one;
  const targets = targetsOfOwner(one, at).filter(({ key }) => canBreak(key));
  const isShown = open.value ?? isOpen;
  const age = Math.max(0, now.value - at);
  return (
    <li class="card">
      <div class="card-head">
        <button type="button" class="opener" aria-expanded={isShown} onClick={() => (open.value = !isShown)}>
          <Icon name={isShown ? "open" : "closed"} />
          <OwnerName owner={owner} />
        </button>
        <OwnerFacts owner={one} age={age} />
        <OwnerState owner={one} broken={broken} />
        {targets.length > 0 && (
          <button
            type="button"
            class="danger ghost"
            onClick={() => askToBreak({ targets, owner, done: refresh })}
          >
            {targets.length === 1 ? "Break…" : `Break all ${targets.length}…`}
          </button>
        )}
      </div>
      {isShown && <Holdings owner={one} age={age} />}
    </li>
  );
}

function OwnerFacts({ owner, age }: { owner: Owner; age: number }) {
  const { waits, waitCount = 0, version, lagMs, seenMs } = owner;
  const waiting = waits.reduce((sum, { count }) => sum + count, 0);
  return (
    <dl class="inline-facts num">
      <InlineFact name="holds" value={String(holdCountOf(owner))} />
      <InlineFact name="waits" value={String(Math.max(waitCount, waiting))} />
      {version !== undefined && <InlineFact name="version" value={version} />}
      {lagMs !== undefined && <InlineFact name="lag" value={formatDuration(lagMs)} isAlarm={lagMs > 1_000} />}
      {seenMs !== undefined && <InlineFact name="last seen" value={`${formatTicking(seenMs + age)} ago`} />}
    </dl>
  );
}

/** Processes can share the name of an owner. Only a process that still reports the grant is known to be its former holder. */
function OwnerState({ owner, broken }: { owner: Owner; broken: readonly BrokenHold[] }) {
  if (!owner.answered) {
    return owner.seenMs === undefined ? null : <span class="chip chip-late">no answer</span>;
  }
  const reported = broken.find((grant) => owner.holds.some((hold) => isGrant(hold, grant)));
  const key = (reported ?? broken[0])?.key;
  if (key === undefined) return null;
  return (
    <a
      class="chip chip-late"
      href={hrefOf("lock", { key })}
      title={reported ? `Its grant of ${key} was broken` : `A grant of ${key} to this name was broken`}
    >
      {reported ? "broken, still runs" : "broken, may still run"}
    </a>
  );
}

function InlineFact({ name, value, isAlarm = false }: { name: string; value: string; isAlarm?: boolean }) {
  return (
    <div class={isAlarm ? "alarm" : ""}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

const mostHoldings = 100;

function Holdings({ owner, age }: { owner: Owner; age: number }) {
  const { holds, waits } = owner;
  const total = holdCountOf(owner);
  if (holds.length + waits.length === 0) return <p class="muted">It holds nothing, and waits for nothing.</p>;
  return (
    <TableScroll label={`Holds and waits of ${owner.owner}`}>
      <table class="table holdings">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Kind</th>
            <th scope="col" class="right">
              Held
            </th>
            <th scope="col" class="right">
              Since renewal
            </th>
            <th scope="col" class="right">
              Margin
            </th>
            <th scope="col" class="right">
              Waiters
            </th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {holds.slice(0, mostHoldings).map((hold) => (
            <HoldLine key={`${hold.key} ${hold.fencingToken}`} hold={hold} age={age} />
          ))}
          {waits.slice(0, mostHoldings).map(({ key, kind, count, oldestMs }) => (
            <tr key={`wait ${key}`} class="opens" onClick={(event) => openLock(event, key)}>
              <td>
                <a href={hrefOf("lock", { key })}>
                  <code>{key}</code>
                </a>
              </td>
              <td class="muted">{kind}</td>
              <td class="muted" colSpan={5}>
                waits{count > 1 && `, ${count} callers`}
                {oldestMs !== undefined && `, the oldest for ${formatTicking(oldestMs + age)}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {total > mostHoldings && <p class="muted">and {total - Math.min(mostHoldings, holds.length)} more</p>}
    </TableScroll>
  );
}

/** Opens the lock of a row. A link inside the row opens it by itself, also in another tab. */
function openLock({ target }: MouseEvent, key: string): void {
  if ((target as Element).closest("a") === null) go("lock", { key });
}

function HoldLine({ hold, age }: { hold: OwnerHold; age: number }) {
  const { key, kind, mode, heldMs, renewedMs, marginMs, localWaiters = 0, reason } = hold;
  const waiters = rowOfKey(key)?.lock.waiterCount ?? localWaiters;
  return (
    <tr class="opens" onClick={(event) => openLock(event, key)}>
      <td>
        <a href={hrefOf("lock", { key })}>
          <code>{key}</code>
        </a>
      </td>
      <td class="muted">{mode === undefined ? kind : `${kind}, ${mode}`}</td>
      <td class="num right">{heldMs === undefined ? "–" : formatTicking(heldMs + age)}</td>
      <td class="num right">{renewedMs === undefined ? "–" : formatTicking(renewedMs + age)}</td>
      <td class="num right">{marginMs === undefined ? "–" : formatDuration(marginMs)}</td>
      <td class="num right">{waiters === 0 ? "–" : waiters}</td>
      <td class="muted">{reason}</td>
    </tr>
  );
}
