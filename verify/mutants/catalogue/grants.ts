import { byRules, byServer, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** Grants by message, what is late or lost, and the validity of a grant: sections 1 and 3. */
export const grants: readonly Mutant[] = [
  {
    name: "validity-counts-from-the-reply",
    breaks: "a vote counts from the moment its request was sent (4.2)",
    edits: [
      redis(
        "quorum/ballot",
        "validity: validFrom(sent, ttlMs, 0, driftFactor),",
        "validity: validFrom({ now: clock.now(), wall: clock.wall() }, ttlMs, 0, driftFactor),",
      ),
    ],
    killers: [byRules("drivers/redis/quorum/quorum-rules", "a grant is valid from its request")],
  },
  {
    name: "validity-on-one-server-counts-from-the-reply",
    breaks: "a vote counts from the moment its request was sent (4.2)",
    edits: [
      redis(
        "request",
        "validFrom(reply.sent, this.#request.ttlMs)",
        "validFrom({ now: this.#host.clock.now(), wall: this.#host.clock.wall() }, this.#request.ttlMs)",
      ),
    ],
    killers: [byRules("drivers/redis/late-requests", "a lease is valid from when it was asked for")],
  },
  {
    name: "renewal-counts-from-the-reply",
    breaks: "a vote counts from the moment its request was sent (4.2): a renewed one too",
    edits: [
      redis(
        "quorum/hold",
        "renewal.validities.push(validFrom(reply.sent, ttlMs, 0, driftFactor));",
        "renewal.validities.push(validFrom({ now: clock.now(), wall: clock.wall() }, ttlMs, 0, driftFactor));",
      ),
    ],
    killers: [byRules("drivers/redis/quorum/quorum-rules", "a grant is valid from its request")],
  },
  {
    name: "renewal-on-one-server-counts-from-the-reply",
    breaks: "a vote counts from the moment its request was sent (4.2): a renewed one too",
    edits: [
      redis(
        "one-server",
        '{ outcome: "renewed", validity: validFrom(reply.sent, ttlMs) }',
        '{ outcome: "renewed", validity: validFrom({ now: this.clock.now(), wall: this.clock.wall() }, ttlMs) }',
      ),
    ],
    killers: [byRules("drivers/redis/late-requests", "a lease is valid from when it was asked for")],
  },
  {
    name: "drift-0",
    breaks: "with validity left after elapsed time and drift (4.3)",
    edits: [edit("validity.ts", "return ttlMs * driftFactor + 2;", "return 0 * ttlMs * driftFactor;")],
    killers: [byRules("validity", "clocks may disagree by one percent of the TTL and 2 ms")],
  },
  {
    name: "wall-clock-is-not-looked-at",
    breaks: "elapsed time is the larger of the monotonic and the wall clock's (3)",
    edits: [
      edit(
        "validity.ts",
        "return Math.min(validity.until - clock.now(), validity.untilWall - clock.wall());",
        "return validity.until - clock.now();",
      ),
    ],
    killers: [byRules("validity", "validity is over as soon as either clock says so")],
  },
  {
    name: "late-confirmation-shortens-a-lease",
    breaks:
      "validUntil is the largest time until which a majority is valid (4.3): an earlier one never replaces it",
    edits: [
      edit(
        "validity.ts",
        "if (confirmed.until > validity.until) {",
        "if (confirmed.until !== validity.until) {",
      ),
    ],
    killers: [byRules("validity", "a confirmation prolongs")],
  },
  {
    name: "pushed-grant-counts-from-its-receipt",
    breaks: "the waiter does not know when its TTL began, but it knows a bracket (3)",
    edits: [
      redis(
        "brackets",
        "return ageMs >= 0 && ageMs <= oldestMs ? ageMs : undefined;",
        "return ageMs >= 0 && ageMs <= oldestMs ? 0 : undefined;",
      ),
    ],
    killers: [byRules("drivers/redis/brackets", "with a bracket is valid from then")],
  },
  {
    name: "bracket-of-another-run-of-the-server",
    breaks: "brackets count only for the same run_id (3)",
    isMarked: true,
    edits: [
      redis(
        "brackets",
        "    if (bracket?.runId !== runId) {\n      return undefined;",
        '    if (bracket === undefined || runId === "") {\n      return undefined;',
      ),
    ],
    killers: [byRules("drivers/redis/brackets", "counts only for the same run of the server")],
  },
  {
    name: "bracket-survives-a-reconnect",
    breaks: "and while both connections have been up since; a reconnect of either discards them (3)",
    isMarked: true,
    edits: [redis("node", "    this.brackets.discard();\n", "")],
    killers: [byRules("drivers/redis/brackets", "is confirmed after")],
  },
  {
    name: "bracket-of-a-reply-that-was-under-way",
    breaks: "brackets count only while both connections have been up since (3)",
    isMarked: true,
    edits: [
      redis(
        "batch",
        "const isSteady = call.epoch === this.#epoch;",
        "const isSteady = call.epoch <= this.#epoch;",
      ),
    ],
    killers: [byRules("drivers/redis/brackets", "is not dated by a reply that was under way")],
  },
  {
    name: "bracket-without-drift",
    breaks: "server time Tg is at s + (Tg − T) or later, less the drift rate (3)",
    edits: [
      redis(
        "brackets",
        "const elapsedMs = elapsedSince(bracket.sent, this.#clock) * (1 + driftRate);",
        "const elapsedMs = elapsedSince(bracket.sent, this.#clock);",
      ),
    ],
    killers: [byRules("drivers/redis/brackets", "dates what happened on the server")],
  },
  {
    name: "bracket-by-the-monotonic-clock-alone",
    breaks: "elapsed time is the larger of the monotonic and the wall clock's (3)",
    edits: [
      edit(
        "clock.ts",
        "return Math.max(clock.now() - start.now, clock.wall() - start.wall);",
        "return clock.now() - start.now;",
      ),
    ],
    killers: [byRules("drivers/redis/brackets", "takes the larger of both clocks' elapsed time")],
  },
  {
    name: "old-pushed-grant-is-believed",
    breaks:
      "more than 250 ms before the receipt: the grant is confirmed by acquire and counts from that request (3)",
    edits: [redis("brackets", "ageMs >= 0 && ageMs <= oldestMs", "ageMs >= 0 && ageMs <= oldestMs * 1000")],
    killers: [
      byRules("drivers/redis/brackets", "is not believed when it dates a grant more than 250 ms back"),
    ],
  },
  {
    name: "pushed-grant-from-the-future-is-believed",
    breaks: "if the moment so found lies after the receipt, the grant is confirmed (3)",
    edits: [redis("brackets", "ageMs >= 0 && ageMs <= oldestMs", "ageMs <= oldestMs")],
    killers: [byRules("drivers/redis/brackets", "is not believed when it dates a grant after its receipt")],
  },
  {
    name: "claim-is-not-extended",
    breaks: "the grantee of a message sends extend(ttl) at once, with renew: false too (3)",
    edits: [
      redis(
        "request",
        "const isClaim = grant.ttlMs < this.#request.ttlMs;",
        "const isClaim = grant.ttlMs < 0;",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/redis/late-requests", "who is granted by message has its whole TTL soon"),
    ],
  },
  {
    name: "claim-of-a-quorum-is-not-extended",
    breaks: "the grantee of a message sends extend(ttl) at once, with renew: false too (3)",
    edits: [
      redis(
        "quorum/ballot",
        "const isClaim = grant.ttlMs < ttlMs;",
        "const isClaim = grant.ttlMs < 0 * ttlMs;",
      ),
    ],
    killers: [
      byRules("drivers/redis/quorum/late-requests", "who is granted by message has its whole TTL soon"),
    ],
  },
  {
    name: "late-message-is-not-answered",
    breaks: "any grant by message for a token that no longer waits here is answered by release at once (3)",
    isMarked: true,
    edits: [
      redis(
        "one-server",
        "} else if (!this.#taken.has(grant.token) && key !== undefined) {",
        '} else if (!this.#taken.has(grant.token) && key === "") {',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/late-requests",
        "what a waiter that gave up is granted by message is given back at once",
      ),
    ],
  },
  {
    name: "late-message-of-a-node-is-not-answered",
    breaks: "any grant by message for a token that no longer waits here is answered by release at once (3)",
    isMarked: true,
    edits: [
      redis(
        "redlock",
        "      if (key !== undefined) {\n        // Nobody waits for it here any more.",
        '      if (key === "") {\n        // Nobody waits for it here any more.',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/quorum/late-requests",
        "what a waiter that gave up is granted by message is given back at once",
      ),
    ],
  },
  {
    name: "late-reply-is-not-answered",
    breaks: "any grant by reply for a token that no longer waits here is answered by release at once (3)",
    isMarked: true,
    edits: [
      redis(
        "request",
        "    if (isThere && !isInUse) {\n      this.#takeBack();",
        '    if (isThere && !isInUse && this.token === "") {\n      this.#takeBack();',
      ),
    ],
    killers: [
      byRules("drivers/redis/twin", "a grant that comes after the caller gave up is released at once"),
    ],
  },
  {
    name: "late-reply-of-a-node-is-not-answered",
    breaks: "any grant by reply for a token that no longer waits here is answered by release at once (3)",
    isMarked: true,
    edits: [
      redis(
        "quorum/ballot",
        "    if (status === 1) {\n      this.#bid.heardTooLate(",
        "    if (status === 7) {\n      this.#bid.heardTooLate(",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/quorum/late-requests",
        "what is granted behind its own giving back is given back again",
      ),
    ],
  },
  {
    name: "late-place-in-the-queue-stays",
    breaks: "order holds only within one connection and one script: a late answer may have queued us (3)",
    isMarked: true,
    edits: [
      redis(
        "request",
        "const isThere = status === 1 || (status === 0 && Number(answer[2]) >= 0);",
        "const isThere = status === 1;",
      ),
    ],
    killers: [
      byRules("drivers/redis/late-requests", "a place in the queue that is asked for before the leaving"),
    ],
  },
  {
    name: "late-place-on-a-node-stays",
    breaks: "order holds only within one connection and one script: a late answer may have queued us (3)",
    isMarked: true,
    edits: [
      redis(
        "quorum/ballot",
        "} else if (status === 0 && Number(answer[2]) >= 0) {",
        "} else if (status === 0 && Number(answer[2]) < -1) {",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/quorum/late-requests",
        "a place in the queue that is had behind the leaving is given back",
      ),
    ],
  },
  {
    name: "release-is-sent-once",
    breaks: "cancel is re-sent until the member's deadline, release until the TTL has passed (3)",
    edits: [
      redis(
        "releaser",
        "const goesOn = isTransient(error) && now < until && !this.#isClosed;",
        "const goesOn = isTransient(error) && now < until && this.#isClosed;",
      ),
    ],
    killers: [byServer("faults/release-goes-on")],
  },
  {
    name: "release-gives-up-at-the-validity",
    breaks: "release is re-sent until the TTL has passed (3): also that of an extension without an answer",
    edits: [edit("validity.ts", "return Math.max(until, engineUntil);", "return until + 0 * engineUntil;")],
    killers: [byServer("faults/release-goes-on")],
  },
  {
    name: "repeated-release-says-not-held",
    breaks: "a release whose reply was lost and whose repeat says not-held counts as released (3)",
    edits: [
      redis(
        "releaser",
        "this.resolve(this.#wasReleased || this.failures > 0, this.#wasReleased);",
        "this.resolve(this.#wasReleased, this.#wasReleased);",
      ),
    ],
    killers: [byRules("drivers/redis/twin", "of a release: the repeat counts as released")],
  },
  {
    name: "nothing-is-released-after-a-failed-acquire",
    breaks: "after an unknown outcome the token is released in the background (1)",
    isMarked: true,
    edits: [
      redis(
        "request",
        '    if (this.token !== "" && !this.#isClaimable) {',
        '    if (this.token === "-" && !this.#isClaimable) {',
      ),
    ],
    killers: [
      bySim(1, 60),
      byServer("drivers/redis/unknown-outcome", "the grant is taken back in the background"),
    ],
  },
  {
    name: "nothing-is-released-after-a-failed-election",
    breaks: "after an unknown outcome the token is released in the background (1)",
    isMarked: true,
    edits: [
      redis(
        "redlock",
        "      if (ballot.mayHaveLeft) {\n        this.#takeBackFrom(",
        '      if (ballot.mayHaveLeft && bid.token === "-") {\n        this.#takeBackFrom(',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/quorum/lost-answers",
        "what was granted without an answer is taken back when the caller gives up",
      ),
    ],
  },
  {
    name: "named-attempt-is-taken-back",
    breaks: "with a caller's attemptId nothing is released after an unknown outcome (1)",
    isMarked: true,
    edits: [
      redis(
        "request",
        'this.#request.attemptId !== undefined && this.#attempts.outcome === "unknown" && this.token !== "";',
        'this.#request.attemptId === "" && this.#attempts.outcome === "unknown" && this.token !== "";',
      ),
    ],
    killers: [
      byServer("drivers/redis/unknown-outcome", "that the caller named itself nothing is taken back"),
    ],
  },
  {
    name: "named-attempt-is-taken-back-from-the-nodes",
    breaks: "with a caller's attemptId nothing is released after an unknown outcome (1)",
    isMarked: true,
    edits: [
      redis(
        "quorum/request",
        'this.#isSettled && this.attemptId !== undefined && bid.outcome === "unknown";',
        'this.#isSettled && this.attemptId === "" && bid.outcome === "unknown";',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/quorum/lost-answers",
        "where the caller has named its attempt it is left for the repeat",
      ),
    ],
  },
  {
    name: "waiter-without-its-poll",
    breaks:
      "the first three places poll when the holder's TTL is over; everybody at the latest after 5 s (3)",
    edits: [
      redis(
        "pacing",
        "  if (remainingMs < 0) {\n    return pollMs;\n  }\n",
        "  if (remainingMs < 0 || pollMs > 0) {\n    return 86_400_000;\n  }\n",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/redis/twin", "a grant whose message was lost is found by the poll"),
    ],
  },
  {
    name: "first-places-poll-late",
    breaks: "the first three places poll when the holder's remaining TTL is over (3)",
    edits: [
      redis(
        "pacing",
        "return Math.min(pollMs, Math.max(shortestPollMs, remainingMs + spread));",
        "return Math.min(pollMs, Math.max(pollMs, remainingMs + spread));",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/waiters",
        "the next is served within a second of the TTL when the holder was killed",
      ),
    ],
  },
  {
    name: "queues-before-its-subscription-is-proved",
    breaks:
      "a driver may queue only after a script has published to its channel, counted a receiver, and was heard (3)",
    edits: [redis("request", '(this.waits && node.hearing === "proved")', "this.waits")],
    killers: [byServer("drivers/redis/deaf-waiters", "does not queue before its subscription is proved")],
  },
  {
    name: "queues-on-a-node-before-it-is-heard",
    breaks:
      "a driver may queue only after a script has published to its channel, counted a receiver, and was heard (3)",
    edits: [
      redis(
        "quorum/ballot",
        'return this.#bid.isHeard && this.voter.node.hearing === "proved";',
        "return this.#bid.isHeard && this.voter.node.hearing !== undefined;",
      ),
    ],
    killers: [
      byRules("drivers/redis/quorum/lost-answers", "who was never heard to hear takes no place in a queue"),
    ],
  },
  {
    name: "subscription-is-proved-unheard",
    breaks: "and was heard (3): a script that counted a receiver proves nothing of our connection",
    edits: [
      redis(
        "subscriber",
        "receivers === 0 || !(await Promise.race([heard, tooLate]))",
        "receivers === 0 || !(await Promise.race([heard, tooLate, Promise.resolve(true)]))",
      ),
    ],
    killers: [byServer("drivers/redis/deaf-waiters", "does not queue before a message was heard")],
  },
  {
    name: "subscription-is-proved-once",
    breaks: "again after each reconnect (3)",
    edits: [
      redis(
        "subscriber",
        '    this.#hearing = "unproved";\n    this.#proof = undefined;',
        "    this.#proof = undefined;",
      ),
    ],
    killers: [
      byRules("drivers/redis/late-requests", "who does not hear any more takes no place in the queue"),
    ],
  },
  {
    name: "waiters-do-not-ask-again-when-messages-are-back",
    breaks: "on every (re)subscription waiting requests send acquire again (3)",
    edits: [
      redis(
        "one-server",
        "      if (request.waits) {\n        request.attempt();",
        '      if (request.waits && request.token === "") {\n        request.attempt();',
      ),
    ],
    killers: [byRules("drivers/redis/twin", "a subscription that was down meanwhile")],
  },
  {
    name: "nodes-are-not-asked-again-when-messages-are-back",
    breaks: "on every (re)subscription waiting requests send acquire again (3)",
    edits: [redis("redlock", "    this.#askAgain(index);\n  }\n\n  #askAgain", "  }\n\n  #askAgain")],
    killers: [
      byRules(
        "drivers/redis/quorum/lost-answers",
        "what was missed while messages were lost is found as soon as they are back",
      ),
    ],
  },
  {
    name: "expired-grant-is-handed-out",
    breaks: "with validity left after elapsed time and drift (4.3): a grant that came too late is none",
    edits: [
      redis(
        "request",
        "if (leftOf(validity, this.#host.clock) <= 0) {",
        "if (leftOf(validity, this.#host.clock) <= -86_400_000) {",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/late-requests",
        "a grant whose answer comes when its TTL is over is asked for again",
      ),
    ],
  },
];
