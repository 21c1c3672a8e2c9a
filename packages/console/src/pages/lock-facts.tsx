import type { ComponentChildren } from "preact";

import type { Holder, Owner } from "../api/types.ts";
import { formatDuration, formatTime, timeZone } from "../model/duration.ts";
import type { Row } from "../model/row.ts";
import { hrefOf } from "../router.ts";

interface Fact {
  readonly name: string;
  readonly value: ComponentChildren;
  /** The meaning of an uncommon name. */
  readonly title?: string;
}

/** The facts about a lock and its holder. */
export function Facts({
  row,
  owners,
  sameOwner,
}: {
  row: Row;
  owners: readonly Owner[];
  sameOwner: ComponentChildren;
}) {
  return (
    <section class="panel">
      <h2>Facts</h2>
      <dl class="facts">
        {factsOf(row, owners).map(({ name, value, title }) => (
          <div key={name} title={title}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {sameOwner}
    </section>
  );
}

function factsOf(row: Row, owners: readonly Owner[]): Fact[] {
  const [holder] = row.lock.holders;
  const process = owners.find(({ owner }) => owner === holder?.owner);
  return [...lockFacts(row), ...timeFacts(row, process), ...holderFacts(holder), ...processFacts(process)];
}

function lockFacts({ key, lock }: Row): Fact[] {
  const token = lock.holders[0]?.fencingToken ?? lock.fencingToken ?? "–";
  return [
    { name: "Key", value: <code>{key}</code> },
    { name: "Kind", value: lock.kind },
    { name: "Fencing token", value: <code class="num">{token}</code> },
    ...(lock.kind === "mutex" ? [] : [{ name: "Limit", value: lock.limit ?? "none" }]),
  ];
}

const renewalMarginTitle = "For how long the holder can miss renewals before it declares the lease lost";
const lagTitle = "How late the event loop of the process ran a timer: a large value is a blocked process";

function timeFacts(row: Row, process: Owner | undefined): Fact[] {
  const hold = process?.holds.find(({ key }) => key === row.key);
  const since =
    row.since === undefined
      ? []
      : [
          {
            name: row.isSinceExact ? "Held since" : "Seen since",
            value: `${formatTime(row.since)} ${timeZone(row.since)}`,
          },
        ];
  return [
    ...since,
    ...timeFact("TTL", hold?.ttlMs ?? row.ttlMs, hold?.ttlMs === undefined ? "at least " : ""),
    ...timeFact("Renewal margin", hold?.marginMs, "", renewalMarginTitle),
  ];
}

function holderFacts(holder: Holder | undefined): Fact[] {
  if (holder === undefined) return [];
  const labels = Object.entries(holder.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return [
    { name: "Holder", value: <a href={hrefOf("owners", { owner: holder.owner })}>{holder.owner}</a> },
    ...(holder.reason === undefined ? [] : [{ name: "Reason", value: holder.reason }]),
    ...(labels.length === 0 ? [] : [{ name: "Labels", value: labels.map(asLabel) }]),
  ];
}

function asLabel(text: string): ComponentChildren {
  return (
    <code key={text} class="label">
      {text}
    </code>
  );
}

function processFacts(process: Owner | undefined): Fact[] {
  if (process === undefined) return [];
  const version = process.version === undefined ? [] : [{ name: "Client version", value: process.version }];
  return [...timeFact("Event-loop lag", process.lagMs, "", lagTitle), ...version];
}

function timeFact(name: string, ms: number | undefined, before = "", title = ""): Fact[] {
  if (ms === undefined) return [];
  const value = <span class="num">{`${before}${formatDuration(ms)}`}</span>;
  return [{ name, value, ...(title !== "" && { title }) }];
}
