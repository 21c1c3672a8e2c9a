import { useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Holder, Owner, PastHold } from "../api/types.ts";
import { now, rows } from "../live/live.ts";
import { targetsOf } from "../model/break-target.ts";
import { stateAt, type Row } from "../model/row.ts";
import { renewedMsOf } from "../model/owners.ts";
import { sentenceOf } from "../model/sentence.ts";
import { go, hrefOf, route } from "../router.ts";
import { canBreak } from "../session.ts";
import { withOwnBreak } from "../ui/break.ts";
import { askToBreak } from "../ui/break-dialog.tsx";
import { commandFor } from "../ui/command.ts";
import { Icon } from "../ui/icons.tsx";
import { useKeys } from "../ui/keys.ts";
import { Ago, Notice, StateChip, TtlBar } from "../ui/parts.tsx";
import { copy } from "../ui/toast.tsx";
import { useHistory } from "../ui/use-history.ts";
import { usePoll } from "../ui/use-poll.ts";
import { BrokenNotice } from "./lock-broken.tsx";
import { Facts } from "./lock-facts.tsx";
import { TimelinePanel } from "./lock-timeline.tsx";
import { WaitersPanel } from "./lock-waiters.tsx";
import { mergedHolds } from "../model/timeline.ts";
import { useLock } from "./use-lock.ts";

/** The page of one lock: the first page of an alert. */
export function LockPage() {
  const key = route.value.params.get("key") ?? "";
  if (key === "") {
    return (
      <Notice title="No key in the address">
        <a href={hrefOf("locks")}>All locks</a>
      </Notice>
    );
  }
  return <OneLockPage key={key} lockKey={key} />;
}

function OneLockPage({ lockKey: key }: { lockKey: string }) {
  const { row, seen, error, refresh: refreshLock } = useLock(key);
  const { reported, at, history } = useReports(key, row);
  const refresh = (): void => [refreshLock, history.refresh].forEach((each) => each());
  useLockPageKeys(key, row, refresh);
  if (row === undefined)
    return <p class="loading">{error === undefined ? "Reading the lock…" : error.message}</p>;
  const owners = aged(reported, Math.max(0, row.at - at));
  const merged = mergedHolds(history.data?.holds ?? [], seen, row.lock.kind !== "mutex");
  const holds = merged.map(withOwnBreak);
  return (
    <div class="page page-lock">
      <Headline row={row} holds={holds} owners={owners} isOld={error !== undefined} />
      {error !== undefined && (
        <p class="warning" role="alert" data-testid="old-lock">
          {error.message}. The page shows the lock of <Ago at={row.at} now={now.value} />.
        </p>
      )}
      <BrokenNotice holds={holds} />
      <Actions row={row} refresh={refresh} />
      <div class="columns">
        <WaitersPanel row={row} owners={owners} />
        <TimelinePanel
          holds={holds}
          knownSince={history.data?.knownSince}
          isOffered={history.error?.isMissing !== true}
          isShared={row.lock.kind !== "mutex"}
        />
      </div>
      <Facts row={row} owners={owners} sameOwner={<SameOwner row={row} />} />
      {row.lock.holders.length > 1 && <HoldersPanel row={row} refresh={refresh} />}
    </div>
  );
}

/** The reports of the processes, and the history of the service. After another grant the history is read at once. */
function useReports(key: string, row: Row | undefined) {
  const grant = row?.lock.holders[0]?.fencingToken;
  const reply = usePoll<{ owners?: Owner[]; processes?: Owner[] }>("v1/processes", { key }, 5_000);
  const history = useHistory({ key }, 5_000);
  useEffect(() => history.refresh(), [grant]);
  const reported = reply.data?.owners ?? reply.data?.processes ?? [];
  return { reported, at: reply.at, history };
}

function useLockPageKeys(key: string, row: Row | undefined, refresh: () => void): void {
  useKeys({
    b: () => row !== undefined && breakRow(row, refresh),
    o: () => go("owners", { owner: row?.lock.holders[0]?.owner }),
    y: () => void copy(key, "the key"),
    c: () => void copy(commandFor(key), "the command"),
  });
}

function breakRow(row: Row, refresh: () => void, holders?: readonly Holder[]): void {
  if (canBreak(row.key)) askToBreak({ targets: targetsOf(row, holders), done: refresh });
}

/** The owners some time after their reply: holds, waits and the times since renewals are longer. */
function aged(owners: readonly Owner[], ms: number): Owner[] {
  return owners.map((owner) => ({
    ...owner,
    holds: owner.holds.map((hold) => ({
      ...hold,
      ...(hold.heldMs !== undefined && { heldMs: hold.heldMs + ms }),
      ...(hold.renewedMs !== undefined && { renewedMs: hold.renewedMs + ms }),
    })),
    waits: owner.waits.map((wait) =>
      wait.oldestMs === undefined ? wait : { ...wait, oldestMs: wait.oldestMs + ms },
    ),
  }));
}

interface HeadlineProps {
  readonly row: Row;
  readonly holds: readonly PastHold[];
  readonly owners: readonly Owner[];
  /** Whether the last request for the lock has failed. */
  readonly isOld: boolean;
}

function Headline({ row, holds, owners, isOld }: HeadlineProps) {
  const reportedMs = renewedOf(row, owners);
  const renewedAt = Math.max(row.renewedAt ?? 0, reportedMs === undefined ? 0 : row.at - reportedMs);
  const renewedMs = renewedAt === 0 ? undefined : Math.max(0, now.value - renewedAt);
  const last = holds.find(({ until }) => until !== null);
  const known = { ...row, oldestWaitMs: row.oldestWaitMs ?? oldestOf(row, owners) };
  const parts = sentenceOf(known, now.value, { renewedMs, last, isOld });
  return (
    <h1 class="sentence" data-testid="sentence">
      {parts.map(({ text, isStrong, isOwner }, index) => {
        if (isOwner)
          return (
            <a key={index} class="owner-link" href={hrefOf("owners", { owner: text })}>
              {text}
            </a>
          );
        return isStrong ? <strong key={index}>{text}</strong> : text;
      })}
    </h1>
  );
}

/** The oldest wait that a process reports. */
function oldestOf({ key }: Row, owners: readonly Owner[]): number | undefined {
  const waits = owners.flatMap((owner) => owner.waits).filter((wait) => wait.key === key);
  const known = waits.flatMap(({ oldestMs }) => oldestMs ?? []);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** How long ago the holder's process renewed, as it reports. */
function renewedOf({ lock, key }: Row, owners: readonly Owner[]): number | undefined {
  const token = lock.holders[0]?.fencingToken;
  const holds = owners.flatMap((owner) => owner.holds);
  const hold = holds.find((each) => each.key === key && each.fencingToken === token);
  return hold === undefined ? undefined : renewedMsOf(hold);
}

function Actions({ row, refresh }: { row: Row; refresh: () => void }) {
  const { key, lock } = row;
  const targets = targetsOf(row);
  return (
    <div class="lock-bar">
      <StateChip state={stateAt(row, now.value)} {...(row.long && { long: row.long })} />
      <div class="lock-ttl">
        <TtlBar row={row} now={now.value} isLarge />
        {row.lock.remainingMs !== null && row.ttlMs !== undefined && (
          <small class="muted ttl-note">until expiry if renewals stop</small>
        )}
      </div>
      <Votes row={row} />
      <div class="actions">
        {canBreak(key) && lock.holders.length > 0 && (
          <button
            type="button"
            class="danger"
            disabled={targets.length === 0}
            title={targets.length === 0 ? "The grant has no fencing token to be broken by" : "b"}
            onClick={() => breakRow(row, refresh, lock.holders.slice(0, 1))}
          >
            Break… <kbd aria-hidden="true">b</kbd>
          </button>
        )}
        <button type="button" title="c" onClick={() => void copy(commandFor(key), "the command")}>
          <Icon name="copy" />
          Copy CLI
        </button>
        <button type="button" onClick={() => void copy(location.href, "the link")}>
          <Icon name="link" />
          Copy link
        </button>
      </div>
    </div>
  );
}

/** The votes of a quorum. */
function Votes({ row: { lock } }: { row: Row }) {
  if (lock.nodes.length < 2) return null;
  const held = lock.nodes.filter((node) => node.held === true).length;
  return (
    <ul class="votes" aria-label={`Held on ${held} of ${lock.nodes.length} nodes`}>
      <li class="num votes-count">
        {held}/{lock.nodes.length} nodes
      </li>
      {lock.nodes.map(({ node, held: isHeld, error }) => {
        const word = isHeld === null ? "no reply" : isHeld ? "held" : "free";
        return (
          <li key={node} class={`vote vote-${word.replace(" ", "-")}`} title={error ?? word}>
            {node} <small>{word}</small>
          </li>
        );
      })}
    </ul>
  );
}

/** A link to the other locks of the holder. */
function SameOwner({ row }: { row: Row }) {
  const owner = row.lock.holders[0]?.owner;
  const count = useComputed(
    () => rows.value.filter(({ lock }) => lock.holders.some((holder) => holder.owner === owner)).length,
  );
  if (owner === undefined || owner === "unknown" || count.value < 2) return null;
  const others = count.value === 2 ? "1 other lock" : `${count.value - 1} other locks`;
  return <a href={hrefOf("owners", { owner })}>The same owner also holds {others}</a>;
}

function HoldersPanel({ row, refresh }: { row: Row; refresh: () => void }) {
  return (
    <section class="panel">
      <h2>
        Holders <span class="num muted">{row.lock.holders.length}</span>
      </h2>
      <ul class="list">
        {row.lock.holders.map((holder) => (
          <li key={`${holder.owner} ${holder.fencingToken}`}>
            <a href={hrefOf("owners", { owner: holder.owner })}>{holder.owner}</a>
            <span class="muted">
              {[holder.mode, holder.permits === undefined ? "" : `${holder.permits} permits`, holder.reason]
                .filter(Boolean)
                .join(", ")}
            </span>
            <span class="num muted">fencing token {holder.fencingToken ?? "unknown"}</span>
            {canBreak(row.key) && (
              <button
                type="button"
                class="quiet"
                disabled={holder.fencingToken === undefined}
                onClick={() => breakRow(row, refresh, [holder])}
              >
                Break…
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
