import { decode, encode, startingWith, type Keys } from "./keys.ts";

/** A key with its value, as the gateway writes it: 64-bit numbers are texts, and zeros are left out. */
export interface KeyValue {
  readonly key: string;
  readonly value?: string;
  readonly create_revision: string;
  readonly mod_revision: string;
  readonly lease?: string;
}

interface Header {
  readonly revision: string;
  /** Rises with each leader. */
  readonly raft_term: string;
}

export interface RangeReply {
  readonly header: Header;
  readonly kvs?: readonly KeyValue[];
  /** How many keys the whole range has. */
  readonly count?: string;
  /** Whether the limit has cut the range. */
  readonly more?: boolean;
}

export interface TxnReply {
  readonly header: Header;
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: RangeReply }[];
}

/** The value of a grant. */
interface GrantValue {
  readonly token: string;
  readonly owner: string;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The TTL that was requested for the etcd lease, seconds. */
  readonly ttl: number;
}

export interface GrantView extends GrantValue {
  readonly fencingToken: bigint;
  /** The revision of the last write of the grant. */
  readonly written: string;
  readonly lease: string;
}

export interface EntryView {
  readonly token: string;
  readonly owner: string;
  /** The create revision of the first entry of the token. */
  readonly ticket: bigint;
  readonly lease: string;
}

/** The grant and the queue of a key, at one revision. */
export interface View {
  readonly revision: bigint;
  /** The term of the leader, which a majority confirmed. */
  readonly term: string;
  readonly grant: GrantView | undefined;
  /** In queue order. */
  readonly entries: readonly EntryView[];
}

/** The two reads of a {@link View}, for a transaction. */
export function viewRequests(keys: Keys, key: string): object[] {
  return [
    { request_range: { key: encode(keys.grant(key)) } },
    { request_range: startingWith(keys.entry(key)) },
  ];
}

/** @param reply a transaction whose last two operations are {@link viewRequests} */
export function viewOf(reply: TxnReply): View {
  const [grants, entries] = (reply.responses ?? []).slice(-2).map((one) => one.response_range?.kvs ?? []);
  const [kv] = grants ?? [];
  return {
    revision: BigInt(reply.header.revision),
    term: reply.header.raft_term,
    grant: kv && grantOf(kv),
    entries: (entries ?? []).map(entryOf).sort((a, b) => (a.ticket < b.ticket ? -1 : 1)),
  };
}

export function grantOf(kv: KeyValue): GrantView {
  const value = JSON.parse(decode(kv.value)) as GrantValue;
  const { create_revision, mod_revision, lease = "0" } = kv;
  return { ...value, fencingToken: BigInt(create_revision), written: mod_revision, lease };
}

function entryOf(kv: KeyValue): EntryView {
  const { owner, ticket } = JSON.parse(decode(kv.value)) as { owner: string; ticket?: string };
  const token = decode(kv.key).split("\0")[1] as string;
  return { token, owner, ticket: BigInt(ticket ?? kv.create_revision), lease: kv.lease ?? "0" };
}
