import { at, call, condition, element, operation, returned } from "../aim.ts";
import { byRules, bySim, mutant, type Mutant } from "../mutant.ts";
import { by, byArgument, byCallee } from "../syntax/operators.ts";

/** How long a lease is valid, when its holder learns of its end, and the hand-over of leases in memory. */
export const leases: readonly Mutant[] = [
  mutant(
    "validity-counts-from-the-reply",
    "protocol#terms: **Validity counts from the sending.**",
    at("ServerAcquire.answered", [call("validFrom"), element("sent")], by("instantNow(this.#host.clock)")),
    byRules("drivers/redis/single/late-requests", "a lease is valid from its request"),
  ),
  mutant(
    "validity-without-an-allowance-for-drift",
    "protocol#terms: A client subtracts 1 % of the TTL and 2 ms for drift",
    at("driftAllowanceMs", returned(), by("0")),
    byRules("validity", "clocks may disagree by one percent of the TTL and 2 ms"),
  ),
  mutant(
    "wall-clock-is-ignored",
    "protocol#terms: Either clock ends the lease",
    [at("remainingValidityMs", call("min"), byArgument(1)), at("validityEnd", call("min"), byArgument(1))],
    byRules("validity", "validity ends as soon as either clock reaches its end"),
  ),
  mutant(
    "repeated-renewals-go-out-together",
    "protocol#batches: A repeat after a failure keeps its own random delay.",
    at("Watchdog.#leadMs", operation("===", "0"), by("true")),
    byRules("lease/watchdog", "a deadline is not advanced by a renewal, and neither are a repeat"),
  ),
  mutant(
    "renewals-are-not-grouped",
    "protocol#batches: takes with it those that are due within 5 % of their TTL, at most 100 ms",
    at("TimerQueue.#fireDue", call("#leadOf"), by("0")),
    byRules("lease/watchdog", "a renewal is sent with another one that is due"),
  ),
  mutant(
    "confirmation-is-measured-by-one-clock",
    "protocol#terms: Either clock ends the lease",
    at("extendValidity", condition(), by("arguments[1].until > arguments[0].until")),
    byRules("validity", "a confirmation with more remaining time on the stricter clock counts"),
  ),
  mutant(
    "loss-is-declared-late",
    "guarantees#the-promises: If a lease ends because it was not renewed, its holder learns of that",
    at("Watchdog.#lossDeadline", returned(), by("$ + 50")),
    byRules("lease/watchdog", "unknown until the end: the lease is lost at its deadline"),
    bySim(1, 60),
  ),
  mutant(
    "sleep-is-not-noticed",
    "guarantees#the-promises: its holder learns of that [before its validity ends](#reports-of-a-loss), so before the next grant.",
    at("Watchdog.#checkClocks", operation(">", "suspendedMs"), by("false")),
    byRules(
      "lease/watchdog-suspension",
      "after a sleep longer than its validity a lease is lost within a second",
    ),
  ),
  mutant(
    "end-of-an-orphan-is-not-reported",
    "guarantees#the-promises: **Loss is reported in time.**",
    at("LeaseState.orphan", call("reschedule"), byCallee("unwatch")),
    byRules("lease/lease-state", "an orphan also learns of its end after close, and then no timer is left"),
  ),
  mutant(
    "loss-needs-a-timer",
    "guarantees#reports-of-a-loss: `throwIfLost()` and `remainingMs()` need no timer.",
    at("LeaseState.currentLoss", condition("#isLive"), by("false")),
    byRules(
      "lease/lease-loss",
      "after an event loop blocked past the TTL throwIfLost throws before any timer runs",
    ),
  ),
  mutant(
    "hand-overs-without-end",
    "protocol#hand-over-in-memory: That happens at most `handover.max` times and for at most `handover.maxMs`.",
    [
      at("LocalQueue.mayHandOver", operation("<", "handovers"), by("true")),
      at("LocalQueue.mayHandOver", operation("<", "since"), by("true")),
    ],
    byRules("local/local-queue", "after handover.max hand-overs the next caller requeues"),
  ),
  mutant(
    "thread-renews-for-a-process-that-hangs",
    "guarantees#reports-of-a-loss: a blocked event loop keeps its leases, for at most `maxBlockedMs`.",
    at("ThreadRenewer.#check", operation("<=", "blockedMs"), by("true")),
    byRules("watchdog-thread/thread-renewer", "stops for a thread that has been blocked for too long"),
  ),
  mutant(
    "reentrant-is-free-before-the-last-release",
    "guarantees#the-promises: While `lease.remainingMs() > 0`, no other holder has the key",
    at("ReentrantHold.exit", condition(), by("false")),
    bySim(1, 40, "reentrant"),
  ),
  mutant(
    "leader-resigns-without-a-release",
    "guarantees#the-promises: A settled call leaves neither a grant nor a queue entry",
    at("MutexElection.resign", call("release"), byCallee("orphan")),
    bySim(1, 30, "election"),
    byRules("kinds/election", "resign"),
  ),
];
