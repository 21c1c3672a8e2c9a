import { byRules, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of the end of validity, for grants by reply and by notification. */
export const validity: readonly Mutant[] = [
  {
    name: "validity-counts-from-the-reply",
    brokenRule: "the validity of a vote starts when its request is sent",
    edits: [
      redis(
        "redlock/vote",
        "validity: validFrom(sent, ttlMs, 0, driftFactor),",
        "validity: validFrom({ now: clock.now(), wall: clock.wall() }, ttlMs, 0, driftFactor),",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "a grant is valid from its request")],
  },
  {
    name: "validity-on-one-server-counts-from-the-reply",
    brokenRule: "the validity of a grant starts when its request is sent",
    edits: [
      redis(
        "single/request",
        "validFrom(reply.sent, this.#request.ttlMs)",
        "validFrom({ now: this.#host.clock.now(), wall: this.#host.clock.wall() }, this.#request.ttlMs)",
      ),
    ],
    killers: [byRules("drivers/redis/single/late-requests", "a lease is valid from its request")],
  },
  {
    name: "renewal-counts-from-the-reply",
    brokenRule: "the validity of a renewed vote starts when its request is sent",
    edits: [
      redis(
        "redlock/renewal",
        "this.#validities.push(validFrom(reply.sent, this.#ttlMs, 0, this.#host.driftFactor));",
        "const { clock } = this.#host;\n      this.#validities.push(validFrom({ now: clock.now(), wall: clock.wall() }, this.#ttlMs, 0, this.#host.driftFactor));",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/rules", "a grant is valid from its request")],
  },
  {
    name: "renewal-on-one-server-counts-from-the-reply",
    brokenRule: "the validity of a renewed grant starts when its request is sent",
    edits: [
      redis(
        "single/driver",
        '{ outcome: "extended", validity: validFrom(reply.sent, ttlMs) }',
        '{ outcome: "extended", validity: validFrom({ now: this.clock.now(), wall: this.clock.wall() }, ttlMs) }',
      ),
    ],
    killers: [byRules("drivers/redis/single/late-requests", "a lease is valid from its request")],
  },
  {
    name: "drift-0",
    brokenRule: "the validity is reduced by the elapsed time and the drift",
    edits: [edit("validity.ts", "return ttlMs * driftFactor + 2;", "return 0 * ttlMs * driftFactor;")],
    killers: [byRules("validity", "clocks may disagree by one percent of the TTL and 2 ms")],
  },
  {
    name: "wall-clock-is-ignored",
    brokenRule: "elapsed time is the larger of the monotonic and the wall clock's measurements",
    edits: [
      edit(
        "validity.ts",
        "return Math.min(validity.until - clock.now(), validity.untilWall - clock.wall());",
        "return validity.until - clock.now();",
      ),
    ],
    killers: [byRules("validity", "validity ends as soon as either clock reaches its end")],
  },
  {
    name: "late-confirmation-shortens-a-lease",
    brokenRule:
      "the validity ends at the latest time that a majority supports, and an earlier time never replaces it",
    edits: [
      edit(
        "validity.ts",
        "if (remainingValidityMs(confirmed, clock) > remainingValidityMs(validity, clock)) {",
        "if (confirmed.until !== validity.until) {",
      ),
    ],
    killers: [byRules("validity", "a confirmation extends, and a late confirmation does not shorten")],
  },
  {
    name: "notified-grant-counts-from-its-receipt",
    brokenRule: "a waiter does not know when the TTL of its grant began, but it knows a bracket of that time",
    edits: [
      redis(
        "server/grant-age",
        "return ageMs >= 0 && ageMs <= maxAgeMs ? ageMs : undefined;",
        "return ageMs >= 0 && ageMs <= maxAgeMs ? 0 : undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/server/grant-age", "with a bracket is valid from then")],
  },
  {
    name: "age-and-validity-by-two-readings",
    brokenRule: "the age and the validity of a notification count from one reading of the clocks",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request",
        "validFrom(at, grant.ttlMs, ageMs)",
        "validFrom(instantNow(this.#host.clock), grant.ttlMs, ageMs)",
      ),
    ],
    killers: [byRules("drivers/redis/server/pause-within-a-turn", "a pause at any reading of a clock")],
  },
  {
    name: "bracket-of-another-run-of-the-server",
    brokenRule: "brackets count only for the same run_id",
    hasCounterexample: true,
    edits: [
      redis(
        "server/grant-age",
        "    if (bracket?.runId !== runId) {\n      return undefined;",
        '    if (bracket === undefined || runId === "") {\n      return undefined;',
      ),
    ],
    killers: [byRules("drivers/redis/server/grant-age", "counts only for the same run of the server")],
  },
  {
    name: "bracket-survives-a-reconnect",
    brokenRule: "a reconnect of either connection discards the brackets",
    hasCounterexample: true,
    edits: [redis("server/server", "    this.grantAges.discard();\n", "")],
    killers: [byRules("drivers/redis/server/grant-age", "is confirmed after")],
  },
  {
    name: "bracket-of-a-reply-in-flight",
    brokenRule: "brackets count only while both connections have been up since",
    hasCounterexample: true,
    edits: [
      redis(
        "server/batch",
        "const sameConnection = call.epoch === this.#epoch;",
        "const sameConnection = call.epoch <= this.#epoch;",
      ),
    ],
    killers: [byRules("drivers/redis/server/grant-age", "is not dated by a reply that was under way")],
  },
  {
    name: "bracket-without-drift",
    brokenRule: "server time Tg is at s + (Tg − T) or later, less the drift rate",
    edits: [
      redis(
        "server/grant-age",
        "const elapsedMs = elapsedBetween(bracket.sent, at) * (1 + driftRate);",
        "const elapsedMs = elapsedBetween(bracket.sent, at);",
      ),
    ],
    killers: [byRules("drivers/redis/server/grant-age", "dates an event on the server")],
  },
  {
    name: "bracket-by-the-monotonic-clock-alone",
    brokenRule: "elapsed time is the larger of the monotonic and the wall clock's measurements",
    edits: [
      edit(
        "runtime/clock.ts",
        "return Math.max(end.now - start.now, end.wall - start.wall);",
        "return end.now - start.now;",
      ),
    ],
    killers: [byRules("drivers/redis/server/grant-age", "takes the larger of both clocks' elapsed time")],
  },
  {
    name: "old-notified-grant-is-not-confirmed",
    brokenRule: "a grant that began more than 250 ms before its receipt is confirmed by an acquire",
    edits: [
      redis("server/grant-age", "ageMs >= 0 && ageMs <= maxAgeMs", "ageMs >= 0 && ageMs <= maxAgeMs * 1000"),
    ],
    killers: [
      byRules(
        "drivers/redis/server/grant-age",
        "is not believed when it dates a grant more than 250 ms back",
      ),
    ],
  },
  {
    name: "notified-grant-from-the-future-is-not-confirmed",
    brokenRule: "a grant that seems to begin after its receipt is confirmed by an acquire",
    edits: [redis("server/grant-age", "ageMs >= 0 && ageMs <= maxAgeMs", "ageMs <= maxAgeMs")],
    killers: [
      byRules("drivers/redis/server/grant-age", "is not believed when it dates a grant after its receipt"),
    ],
  },
  {
    name: "expired-grant-is-used",
    brokenRule: "a grant without remaining validity after elapsed time and drift is not used",
    edits: [
      redis(
        "single/request",
        "if (remainingValidityMs(validity, this.#host.clock) <= 0) {",
        "if (remainingValidityMs(validity, this.#host.clock) <= -86_400_000) {",
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a grant whose reply comes after its TTL is requested"),
    ],
  },
];
