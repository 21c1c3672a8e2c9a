import { byRules, byServer, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** Leases and their end, renewal, timers, calls: sections 3, 4 and 7. */
export const leases: readonly Mutant[] = [
  {
    name: "signal-late",
    brokenRule: "a lease is over when our clock says so: its signal aborts before the validity ends (3)",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    const endsAt = Math.min(this.#lossDeadline(target), target.endsAt);",
        "    const endsAt = Math.min(this.#lossDeadline(target) + 50, target.endsAt);",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("lease/watchdog", "unknown until the end: the lease is lost at its deadline"),
    ],
  },
  {
    name: "deadline-has-no-lead",
    brokenRule: "a lease's signal aborts before the validity ends (3): timers run late",
    edits: [
      edit(
        "lease/watchdog.ts",
        "return this.#expiryOf(target) - this.#lateness.leadMs(target.ttlMs);",
        "return this.#expiryOf(target) - 0 * this.#lateness.leadMs(target.ttlMs);",
      ),
    ],
    killers: [
      byServer("integration/single/loss-before-end", "each signal aborts before the validity ends"),
      byRules("lease/watchdog", "unknown until the end: the lease is lost at its deadline"),
    ],
  },
  {
    name: "late-timers-are-not-noted",
    brokenRule:
      "a lease's signal aborts before the validity ends (3): earlier where timers of the process run late",
    edits: [edit("lease/watchdog.ts", "      this.#lateness.record(item.dueAt);\n", "")],
    killers: [byRules("lease/watchdog-deadline", "where timers ran late, the loss is declared earlier")],
  },
  {
    name: "overdue-renewal-counts-as-a-late-timer",
    brokenRule: "the lead of a deadline is the lateness of timers, and not of what was due before it was set",
    edits: [
      edit(
        "lease/watchdog.ts",
        "this.#queue.schedule(watched, Math.max(dueAt, this.#clock.now()));",
        "this.#queue.schedule(watched, dueAt);",
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog-deadline",
        "a lease that is reviewed when its renewal is overdue shows no late timer",
      ),
    ],
  },
  {
    name: "late-timer-is-forgotten-with-its-window",
    brokenRule: "the lead of a deadline is the worst lateness of this window and the one before",
    edits: [
      edit("runtime/timer-lateness.ts", "Math.max(this.#maxMs, this.#previousMaxMs)", "this.#maxMs"),
      edit("runtime/timer-lateness.ts", "? this.#maxMs : 0;", "? this.#previousMaxMs : 0;"),
    ],
    killers: [
      byRules(
        "runtime/timer-lateness",
        "a late timer counts for the window of 30 s in which it ran, and for the next",
      ),
    ],
  },
  {
    name: "late-timer-is-never-forgotten",
    brokenRule: "a lease is not cut short for ever because timers were late once",
    edits: [edit("runtime/timer-lateness.ts", "      this.#maxMs = 0;\n", "")],
    killers: [
      byRules(
        "runtime/timer-lateness",
        "a late timer counts for the window of 30 s in which it ran, and for the next",
      ),
    ],
  },
  {
    name: "lead-has-no-bound",
    brokenRule:
      "a lease is not cut short by more than a twentieth of its TTL because the event loop was blocked once",
    edits: [edit("runtime/timer-lateness.ts", ", ttlMs / 20, maxLeadMs);", ", ttlMs, maxLeadMs * 1e6);")],
    killers: [byRules("runtime/timer-lateness", "the lead is at most a twentieth of the TTL and 50 ms")],
  },
  {
    name: "early-loss-looks-like-a-suspension",
    brokenRule: "suspended: the wall clock ended the lease, and not the monotonic one",
    edits: [
      edit(
        "validity.ts",
        "return validity.until - clock.now() - remainingValidityMs(validity, clock) > clockGrainMs;",
        "return validity.until - clock.now() > clockGrainMs;",
      ),
    ],
    killers: [byRules("lease/watchdog-deadline", "a loss that is declared early is no suspension")],
  },
  {
    name: "loss-needs-a-timer",
    brokenRule: "the event loop blocked past the TTL: whoever asks compares clocks",
    edits: [
      edit(
        "lease/lease-state.ts",
        "    if (this.#isLive) {\n      if (remainingValidityMs",
        '    if (this.#isLive && this.#state === "leaked") {\n      if (remainingValidityMs',
      ),
    ],
    killers: [
      byRules("lease/lease-loss", "with the event loop blocked past the TTL throwIfLost throws at once"),
    ],
  },
  {
    name: "timer-of-an-ended-lease-runs-on",
    brokenRule: "timer not cleared: nothing is left behind by a lease that ended",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    watched.isEnded = true;\n    this.#queue.cancel(watched);\n",
        "    watched.isEnded = true;\n",
      ),
    ],
    killers: [byRules("lease/watchdog")],
  },
  {
    name: "orphan-is-told-of-no-end",
    brokenRule: "a lease that is left to expire is told of its end, also after close (3)",
    edits: [
      edit(
        "lease/lease-state.ts",
        '      this.#state = "orphaned";\n      this.#host.watchdog.reschedule(this.#watched);\n',
        '      this.#state = "orphaned";\n      this.#host.watchdog.unwatch(this.#watched);\n',
      ),
    ],
    killers: [byRules("lease/lease-state", "an orphan is told of its end after close")],
  },
  {
    name: "adopted-behind-close",
    brokenRule: "after close nothing is taken into the rounds, and no timer is left",
    edits: [
      edit(
        "locks.ts",
        "    const verified = await this.#driver.verify(key, token, fencingToken);\n    this.#coordinator.assertOpen(key);\n",
        "    const verified = await this.#driver.verify(key, token, fencingToken);\n",
      ),
    ],
    killers: [byRules("lease/lease-state", "what is adopted while close comes is refused")],
  },
  {
    name: "timer-of-an-answered-call-runs-on",
    brokenRule: "timer not cleared: nothing is left behind by a call that was answered (7)",
    edits: [redis("server/batch", "    this.#clock.clearTimer(call.timer);\n", "")],
    killers: [byRules("drivers/redis/server/batch", "after an answer no timer is left")],
  },
  {
    name: "what-is-adopted-late-waits-as-a-new-lease-does",
    brokenRule: "a lease that is to be renewed is asked for before it is over",
    edits: [
      edit(
        "lease/watchdog.ts",
        "Math.min(minRenewalDelayMs, remainingMs / 20)",
        "Math.min(minRenewalDelayMs, remainingMs / 20 + target.ttlMs / 20)",
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog",
        "what has less than that left, as where it is adopted late, is renewed before it is over",
      ),
    ],
  },
  {
    name: "one-failed-renewal-loses-the-lease",
    brokenRule: "one transient error at renewal loses nothing: unknown is not lost (4.8)",
    edits: [
      edit(
        "lease/watchdog.ts",
        "        watched.lastError = extension.error;\n",
        '        watched.lastError = extension.error;\n        this.#end(watched, "engine-unreachable");\n',
      ),
    ],
    killers: [byRules("lease/watchdog", "unknown: renewal is tried again with growing backoff")],
  },
  {
    name: "renewal-without-an-answer-is-repeated-often",
    brokenRule:
      "a slow server is not made slower: a renewal without an answer is repeated after another third of the TTL",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    watched.renewAt = now + target.ttlMs / 3;\n",
        "    watched.renewAt = now + target.ttlMs / 30;\n",
      ),
    ],
    killers: [byRules("lease/watchdog", "a renewal without an answer is repeated only when")],
  },
  {
    name: "all-that-is-due-is-woken-before-any-reply-is-read",
    brokenRule: "a process with many leases that was late reads replies between its renewals",
    edits: [edit("runtime/timer-queue.ts", "const mostAtOnce = 256;", "const mostAtOnce = 1_000_000;")],
    killers: [byRules("runtime/timer-queue", "at most 256 items are woken")],
  },
  {
    name: "loss-waits-for-a-timer-behind-an-answer",
    brokenRule: "loss is told on time: an extension that is heard behind its own end sets nothing right",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    if (this.#lossDeadline(target) <= this.#clock.now()) {\n      this.#end(watched, this.#lossReason(watched)); //",
        "    if (watched.isEnded) {\n      this.#end(watched, this.#lossReason(watched)); //",
      ),
    ],
    killers: [byRules("lease/watchdog", "heard behind the end: the loss is told at once")],
  },
  {
    name: "renewal-that-hangs-is-waited-for",
    brokenRule: "each call with its own small timeout (4.2): a renewal that hangs is tried again",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    watched.renewAt = now + target.ttlMs / 3;\n",
        "    watched.renewAt = now + target.ttlMs;\n",
      ),
    ],
    killers: [byRules("lease/watchdog", "a renewal that hangs is tried again")],
  },
  {
    name: "a-claim-is-renewed-late",
    brokenRule: "the grantee sends extend(ttl) at once (3)",
    edits: [
      edit(
        "lease/watchdog.ts",
        "return target.isClaim ? 0 : this.#expiryOf(target) - (target.ttlMs * 2) / 3;",
        "return this.#expiryOf(target) - (Math.min(target.ttlMs, remainingValidityMs(target.validity, this.#clock)) * 2) / 3;",
      ),
    ],
    killers: [byRules("lease/watchdog", "a claim is renewed as soon as its work is seen to go on")],
  },
  {
    name: "sleep-is-not-noticed",
    brokenRule:
      "elapsed time is the larger of the monotonic and the wall clock's (3): timers stand still while the machine sleeps",
    edits: [
      edit(
        "lease/watchdog.ts",
        "const jumped = this.#clockJumps.readJumpMs(this.#clock) > suspendedMs;",
        "const jumped = this.#clockJumps.readJumpMs(this.#clock) > suspendedMs * 1e9;",
      ),
    ],
    killers: [
      byRules("lease/watchdog", "after a sleep longer than its validity a lease is lost within a second"),
    ],
  },
  {
    name: "lost-lease-is-left-at-the-engine",
    brokenRule: "release is re-sent until the TTL has passed (3): also of a lease that was lost for us alone",
    edits: [
      edit(
        "lease/lease-state.ts",
        "      this.#host.driver.release(this.key, this.grant.token, engineExpiry(this.validity)).catch(() => false);\n",
        "      void engineExpiry(this.validity);\n",
      ),
    ],
    killers: [byRules("lease/lease-state", "a lost lease is taken back at the engine all the same")],
  },
  {
    name: "confirmation-is-measured-by-one-clock",
    brokenRule: "a lease is over as soon as either of our clocks says so (3)",
    edits: [
      edit(
        "validity.ts",
        "if (remainingValidityMs(confirmed, clock) > remainingValidityMs(validity, clock)) {",
        "if (remainingValidityMs(confirmed, clock) > 0 && confirmed.until > validity.until) {",
      ),
    ],
    killers: [byRules("validity", "a confirmation that leaves more by the stricter clock")],
  },
  {
    name: "extension-counts-without-an-answer",
    brokenRule: "unknown is neither held past validUntil nor lost before it (4.8)",
    edits: [
      edit(
        "lease/lease-state.ts",
        '    if (extension.outcome === "lost") {\n      this.#host.markLost(',
        '    if (extension.outcome === "unknown") {\n      const { clock } = this.#host;\n      extendValidity(validity, { until: clock.now() + ttlMs, untilWall: clock.wall() + ttlMs }, clock);\n    } else if (extension.outcome === "lost") {\n      this.#host.markLost(',
      ),
    ],
    killers: [
      byRules("lease/lease-state", "an extension that is not answered rejects and loses nothing"),
      byRules("lease/lease-loss", "a lease whose renewals are not answered"),
    ],
  },
  {
    name: "operations-share-an-answer",
    brokenRule: "operations issued in one turn travel as one script call, each with its own answer (7)",
    edits: [
      redis(
        "server/batch",
        "operation.answered({ value: values[index],",
        "operation.answered({ value: values[0 * index],",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/redis/server/batch", "operations of one turn travel as one call"),
    ],
  },
  {
    name: "a-call-without-its-time-limit",
    brokenRule: "each with its own small timeout (4.2)",
    edits: [
      redis(
        "server/batch",
        "      call.fail(timeoutError(this.#timeoutMs));",
        "      void timeoutError(this.#timeoutMs);",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch", "no answer in time is told as a failure")],
  },
  {
    name: "silent-node-is-waited-for-each-time",
    brokenRule:
      "each with its own small timeout (4.2): requests do not pile up before a node that does not answer",
    edits: [redis("server/batch", "      this.#responsiveness.callTimedOut(call.callNumber);\n", "")],
    killers: [
      byServer("integration/redlock/minority", "2 000 acquisitions do not pile up before it"),
      byServer(
        "integration/single/silent-server",
        "frozen: ioredis that keeps every command keeps few calls",
      ),
    ],
  },
  {
    name: "silent-server-is-asked-past-the-batches",
    brokenRule:
      "after a timeout one probe is under way and other calls are refused at once: also those that are not batched",
    edits: [
      redis(
        "server/server",
        "      throw this.#responsiveness.rejection();\n",
        "      this.#responsiveness.rejection();\n",
      ),
    ],
    killers: [
      byServer(
        "integration/single/silent-server",
        "frozen: ioredis that keeps every command keeps few calls",
      ),
    ],
  },
  {
    name: "silence-ends-with-any-late-answer",
    brokenRule: "calls that the client library still keeps count as unanswered: no more are added to them",
    edits: [redis("server/responsiveness", "if (other <= callNumber) {", "if (other > 0) {")],
    killers: [byRules("drivers/redis/server/batch", "a late answer to the first of two ends no silence")],
  },
  {
    name: "silence-ends-with-what-its-client-drops",
    brokenRule: "only an answer of the server ends a silence: who was refused is not called for nothing",
    edits: [
      redis(
        "server/responsiveness",
        "      this.#unanswered.delete(callNumber);\n    }\n  }",
        "      this.callAnswered(callNumber);\n    }\n  }",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch", "a call that its client drops is no answer")],
  },
  {
    name: "probe-of-a-silent-server-is-not-repeated-later",
    brokenRule: "one probe is under way: the next one comes after a part of the silence",
    edits: [
      redis(
        "server/responsiveness",
        "Math.max(timeoutMs, probeFraction * (now - this.#since))",
        "timeoutMs * (probeFraction * 10)",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch", "a probe without an answer is repeated")],
  },
  {
    name: "message-ends-no-silence",
    brokenRule: "a message ends the silence, and the grant that it brings is confirmed",
    edits: [
      redis(
        "server/server",
        "        this.#handleMessage(text);\n        this.#responsiveness.messageReceived();\n",
        "        this.#handleMessage(text);\n",
      ),
    ],
    killers: [
      byServer(
        "integration/single/silent-server",
        "confirms a grant by message, although it answers nothing",
      ),
    ],
  },
  {
    name: "renewals-wait-after-a-silence",
    brokenRule: "after a silence extensions are sent at once, and first",
    edits: [redis("single/driver", "      listener.engineRecovered();\n", "      void listener;\n")],
    killers: [byServer("integration/single/silent-server", "is asked for renewals first when it is back")],
  },
  {
    name: "releases-wait-after-a-silence",
    brokenRule: "after a silence releases are sent at once, behind the extensions",
    edits: [redis("single/driver", "    this.releaseQueue.recovered(server);\n", "")],
    killers: [byServer("integration/single/silent-server", "is asked for renewals first when it is back")],
  },
  {
    name: "clone-releases-what-the-other-was-granted",
    brokenRule: "a grant for an unknown token is given back only where nobody else hears the channel",
    edits: [
      redis(
        "single/driver",
        "if (server.hasOwnChannel && !isExpired(grant, server)) {",
        "if (!isExpired(grant, server)) {",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/single/clones-apart",
        "a clone: one server leaves alone what the other is granted",
      ),
    ],
  },
  {
    name: "clone-gives-back-votes-of-the-other",
    brokenRule: "a vote for an unknown token is given back only where nobody else hears the channel",
    edits: [redis("redlock/grant-registry", "} else if (node.server.hasOwnChannel) {", "} else {")],
    killers: [
      byRules(
        "drivers/redis/single/clones-apart",
        "a clone: a quorum leaves alone what the other is granted",
      ),
    ],
  },
  {
    name: "clone-keeps-its-client-id",
    brokenRule: "a process that hears the proof of a clone takes a new client id",
    edits: [redis("server/server", "        listener.cloned();\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "that hears of the other waits with a new token")],
  },
  {
    name: "clone-keeps-its-leases",
    brokenRule: "a process that hears the proof of a clone loses its leases",
    edits: [redis("single/driver", '      listener.lost(null, "suspended", clonedError());\n', "")],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: one server that hears of the other loses"),
    ],
  },
  {
    name: "clone-keeps-its-leases-on-a-quorum",
    brokenRule: "a process that hears the proof of a clone loses its leases",
    edits: [redis("redlock/driver", '      listener.lost(null, "suspended", clonedError());\n', "")],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: a quorum that hears of the other loses"),
    ],
  },
  {
    name: "clone-waits-with-its-token",
    brokenRule: "a request goes on with a new token when a clone has the same",
    edits: [redis("single/driver", "      request.cloned();\n", "")],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: one server that hears of the other waits"),
    ],
  },
  {
    name: "clone-waits-with-its-token-on-a-quorum",
    brokenRule: "a request goes on with a new token when a clone has the same",
    edits: [redis("redlock/driver", "      request.cloned();\n", "")],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: a quorum that hears of the other waits"),
    ],
  },
  {
    name: "clone-releases-a-former-token",
    brokenRule: "no operation names a token of a former client id",
    edits: [redis("server/server", "    this.#formerIds.add(this.#clientId);\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "loses its leases, and releases nothing")],
  },
  {
    name: "proof-of-another-server-is-a-clones",
    brokenRule:
      "only a clone's proof parts a process from its leases (core-2, 3.6): a replica passes on its master's",
    edits: [redis("server/subscriber", "!text.startsWith(this.#pingPrefix) || ", "")],
    killers: [byServer("integration/redlock/restart", "is quarantined, with replica-read-only")],
  },
  {
    name: "own-proof-looks-like-a-clone",
    brokenRule: "a proof of one's own that comes late is no proof of a clone",
    edits: [redis("server/subscriber", "    this.#ownPings.push(text);\n", "")],
    killers: [byRules("drivers/redis/single/clones-apart", "is not seen in a proof of one's own")],
  },
  {
    name: "clones-draw-from-one-pool",
    brokenRule: "ids that were drawn ahead are thrown away when the wall clock jumped",
    edits: [edit("runtime/random.ts", " || Math.abs(wallLead - lead) > jumpMs", "")],
    killers: [byRules("runtime/random", "ids that were drawn ahead are thrown away")],
  },
  {
    name: "loss-that-was-missed-is-not-asked-for",
    brokenRule: "messages may be lost (3): a holder asks when they are heard again",
    edits: [
      redis("single/driver", "        listener.notificationsInterrupted();\n", "        void listener;\n"),
    ],
    killers: [byServer("integration/single/loss", "is told lost at once when messages are heard again")],
  },
];
