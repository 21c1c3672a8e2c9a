import { at, condition, literal, negation, operand, operation, returned, statement, value } from "../aim.ts";
import { byKept, byRules, byServer, bySim, mutant, type Mutant } from "../mutant.ts";
import { by, byOperator, removed } from "../syntax/operators.ts";

const redlock = "drivers/redis/redlock";
const scripts = "drivers/redis/protocol/scripts";

/** The quorum: votes, yields, numbers, extension, remembered votes, and nodes that do not vote. */
export const quorum: readonly Mutant[] = [
  mutant(
    "half-of-the-nodes-is-a-majority",
    "protocol#the-quorum: Any two majorities share a node.",
    at("majorityOf", returned(), by("$ - 1")),
    byRules(`${redlock}/majority`, "are a majority: any two majorities"),
  ),
  mutant(
    "only-voters-are-released",
    "protocol#votes: Release and clean-up go to all nodes.",
    at("HeldGrant.mayBeStoredOn", returned(), by("this.members.of(arguments[0]) !== undefined")),
    byRules(`${redlock}/rules`, "the vote of a late node is released"),
  ),
  mutant(
    "larger-number-counts-as-agreement",
    "protocol#numbers-in-rounds: Only equal numbers count.",
    [
      at("isSame", operation("===", "first"), byOperator("<=")),
      at("isSame", operation("===", "last"), by("true")),
      at("isSame", operation("===", "round"), by("true")),
    ],
    byRules(`${redlock}/majority`, "a larger number is no agreement"),
  ),
  mutant(
    "no-yield",
    "protocol#inquiry-and-yield: Any other client sends `yield(token, number)`.",
    at("VoteYield.isRequestedBack", returned(), by("false")),
    bySim(1, 60),
  ),
  mutant(
    "yielded-vote-still-counts",
    "protocol#inquiry-and-yield: After the client has sent the yield, a vote of that node counts only with a greater number.",
    at("VoteRequest.record", operand("hasYielded"), by("false")),
    byRules(`${redlock}/vote-yield`, "a yielded vote does not count"),
  ),
  mutant(
    "split-votes-are-not-requested-again",
    "protocol#inquiry-and-yield: So a split request repeats its broadcast after a delay that doubles from 250 ms to 2 s.",
    at("SplitVoteTimer.observe", statement("jittered"), removed),
    bySim(1, 60),
    byRules(`${redlock}/vote-yield`, "a lost inquiry is repeated while the votes are"),
  ),
  mutant(
    "missing-reply-is-a-loss",
    "protocol#extension-adoption-refill: A missing reply is neither an extension nor a loss.",
    at("Renewal.#decide", returned("unknown"), by('{ outcome: "lost", reason: "expired" }')),
    byServer("integration/redlock/extension", "continues if the majority answers before"),
  ),
  mutant(
    "later-grant-of-the-token-is-adopted",
    "protocol#extension-adoption-refill: Adoption counts nodes that have the token with no greater number than the lease's.",
    at("verifyGrant", operation(">", "Number"), by("false")),
    byRules(`${redlock}/remembered-votes`, "an expired lease that late requests acquired"),
  ),
  mutant(
    "unreleased-holder-is-forgotten",
    "protocol#remembered-votes: The node restores the holder and votes for no other client.",
    [
      at("execute-quorum: restore_vote", literal("by"), by("'none'")),
      at("execute-quorum: write_grant", negation("6"), by("true")),
    ],
    byServer(`${scripts}/remembered-votes`, "keeps the node from voting for another until"),
  ),
  mutant(
    "vote-after-an-unreleased-holder-counts-at-once",
    "protocol#remembered-votes: The client counts the delay from the receipt, plus drift.",
    at("countsFrom", condition(), by("false")),
    byKept(),
  ),
  mutant(
    "waits-for-two-thirds-of-the-band",
    "protocol#remembered-votes: So the wait is 3 × D.",
    at("maxSkewWaitMs", literal("3"), by("2")),
    byKept(),
  ),
  mutant(
    "writer-does-not-wait-for-a-reader",
    "protocol#remembered-votes: `alone` is the same for a writer after readers, because readers need not wait for readers.",
    at("execute-quorum: load_state", literal("alone"), by("'none'")),
    byServer(`${scripts}/remembered-votes`, "counts when its wait has ended: a writer after a reader"),
  ),
  mutant(
    "node-with-a-wrong-clock-votes",
    "protocol#remembered-votes: The time in that very reply or notification must be within `maxClockDifferenceMs` (D, 200 ms) of a majority",
    at("ClockAgreement.quarantineOf", value("wasInTime"), by("true")),
    byRules(`${redlock}/rules`, "a node with a wrong clock does"),
  ),
  mutant(
    "restarted-node-votes",
    "protocol#nodes-that-do-not-vote: its uptime exceeds `maxTtlMs` + 3 × D + 2.4 s.",
    at("RestartGuard.quarantine", operation(">", "#mayForgetUntil"), by("false")),
    byRules(`${redlock}/rules`, "a node that may have lost"),
  ),
  mutant(
    "durable-now-is-durable-before",
    "protocol#nodes-that-do-not-vote: A node that is durable now waits too, because the run before decides",
    at("RestartGuard.observe", operand("#isTrusted"), by("true")),
    byRules(`${redlock}/restart-guard`, "waits if the run before was not durable"),
  ),
  mutant(
    "vote-of-an-earlier-run-counts",
    "protocol#nodes-that-do-not-vote: a vote of another run does not count.",
    at("VoteState.countsNow", operation("===", "runId"), by("true")),
    byRules(`${redlock}/queue-members`, "a vote from before its node's restart does"),
  ),
  mutant(
    "vote-of-a-quarantine-passed-around",
    "guarantees#the-promises: A free key with a waiter [is granted](#progress).",
    at("GrantRegistry.retry", operand("isQuarantined"), by("true")),
    byKept(),
  ),
];
