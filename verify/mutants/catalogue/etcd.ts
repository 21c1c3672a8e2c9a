import { byServer, edit, type Mutant } from "../mutant.ts";

/** Mutants of the driver for etcd. */
export const etcd: readonly Mutant[] = [
  {
    name: "etcd-renewal-by-a-former-leader",
    brokenRule:
      "a renewal counts only if a later linearizable read shows the same term, because a leader renews alone",
    edits: [edit("drivers/etcd/store.ts", " && renewed.term === term;", ";")],
    killers: [byServer("integration/etcd/faults", "a renewal by a former leader does not count")],
  },
  {
    name: "etcd-grant-over-a-grant",
    brokenRule: "the transaction of a grant demands that the key has no grant",
    edits: [
      edit(
        "drivers/etcd/acquires.ts",
        "compare: [{ ...absent, key: grantKey }, ...(isNew",
        "compare: [...(isNew",
      ),
    ],
    killers: [byServer("integration/etcd/conformance", "a try of another process does not get a held lock")],
  },
  {
    name: "etcd-repeat-is-another-request",
    brokenRule: "a repeat of a granted request gets that grant",
    edits: [
      edit(
        "drivers/etcd/acquires.ts",
        "if (view?.grant?.token === token) {",
        'if (view?.grant?.token === token && token === "") {',
      ),
    ],
    killers: [byServer("integration/etcd/faults", "a grant whose reply was lost is found by the repeat")],
  },
  {
    name: "etcd-longer-ttl-without-a-new-lease",
    brokenRule: "a longer TTL needs another lease of etcd, because the TTL of a lease cannot change",
    edits: [
      edit("drivers/etcd/store.ts", "if (ttl !== grant.ttl) {", "if (ttl < grant.ttl) {"),
      edit("drivers/etcd/store.ts", "return isConfirmed ? renewed.ttl * 1_000", "return isConfirmed ? ttlMs"),
    ],
    killers: [
      byServer("integration/etcd/conformance", "extend raises the TTL of a lease and never lowers it"),
    ],
  },
  {
    name: "etcd-renewals-start-a-longer-ttl-again",
    brokenRule:
      "etcd: an extension leaves the grant for the requested TTL, if the rest of a longer TTL is shorter",
    edits: [
      edit("drivers/etcd/store.ts", "known?.ttl === ttl && !info", "known && !info"),
      edit("drivers/etcd/store.ts", "if (ttl !== grant.ttl) {", "if (ttl > grant.ttl) {"),
    ],
    killers: [byServer("integration/etcd/conformance", "once with ifCrashed keep ends with keepMs")],
  },
  {
    name: "etcd-break-of-a-later-grant",
    brokenRule: "a break ends only the grant with its fencing token",
    edits: [edit("drivers/etcd/store.ts", "if (grant?.fencingToken !== fencingToken) {", "if (!grant) {")],
    killers: [
      byServer("integration/etcd/conformance", "a break with another grant's number changes nothing"),
    ],
  },
  {
    name: "etcd-extension-to-any-lease",
    brokenRule:
      "an extension demands the grant as it was read, because a late one would move the grant to a lease that ends sooner",
    edits: [
      edit(
        "drivers/etcd/store.ts",
        'compare: [this.#isGrant(key, grant), { target: "MOD", key: grantKey, mod_revision: grant.written }],',
        "compare: [this.#isGrant(key, grant)],",
      ),
    ],
    killers: [byServer("integration/etcd/faults", "a late extension does not move the grant")],
  },
  {
    name: "etcd-late-requests-keep-their-lease",
    brokenRule:
      "etcd executes no request of a token later than its release, because the lease that the request names has ended",
    edits: [
      edit("drivers/etcd/acquires.ts", "if (lease !== inUse) {", 'if (lease !== inUse && inUse === "") {'),
    ],
    killers: [byServer("integration/etcd/faults", "a request that is executed after the release")],
  },
  {
    name: "etcd-list-from-any-cursor",
    brokenRule: "a list shows no key outside of its prefix, whatever the cursor is",
    edits: [
      edit(
        "drivers/etcd/store.ts",
        "Buffer.from(start)) > 0 ? after : start;",
        "Buffer.from(start)) > 9 ? start : after;",
      ),
    ],
    killers: [byServer("integration/etcd/conformance", "list shows no key outside of its prefix")],
  },
  {
    name: "etcd-token-after-a-change-of-users",
    brokenRule: "a token that etcd refuses because the users have changed is replaced",
    edits: [edit("drivers/etcd/errors.ts", ' || message.endsWith("revision of auth store is old");', ";")],
    killers: [
      byServer("integration/etcd/faults", "tokens of the type JWT are replaced when the users have changed"),
    ],
  },
];
