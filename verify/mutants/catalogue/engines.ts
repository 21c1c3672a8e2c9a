import { at, call, element, operation, phrase, value } from "../aim.ts";
import { byRules, byServer, mutant, type Mutant } from "../mutant.ts";
import { by, byArgument, withoutArgument } from "../syntax/operators.ts";

/** Replicas of one server, and the engines that are no Redis. */
export const engines: readonly Mutant[] = [
  mutant(
    "no-replica-is-enough",
    "guarantees#what-exclusion-rests-on: Each validity is one that n replicas have acknowledged",
    at("ReplicaAcks.constructor", operation("<", "#minReplicas"), by("false")),
    byServer("integration/replicas/min-replicas", "without an acknowledgement"),
  ),
  mutant(
    "reply-of-a-replica-counts",
    "protocol#operations-of-one-server: If a call wrote nothing, the script reads `INFO` and refuses on a replica",
    at("execute-single:", call("require_primary"), byArgument(1)),
    byServer("integration/replicas/replica", "refuses reads as well, and no"),
  ),
  mutant(
    "postgres-number-is-the-time-alone",
    "guarantees#the-promises: is larger than all earlier tokens of the key",
    at(
      "functions",
      phrase("greatest(lock.fencing + 1, floor(extract(epoch FROM at_time) * 1000000)::bigint)"),
      by("floor(extract(epoch FROM at_time) * 1000000)::bigint"),
    ),
    byServer("integration/postgres/schema", "fencing tokens rise although the server's clock"),
  ),
  mutant(
    "database-grant-ends-with-its-lease",
    "guarantees#what-exclusion-rests-on: `postgres()` and `mysql()` have the option `maxClockDifferenceMs` for that.",
    at("StoreCalls.constructor", value("graceMs"), by("0")),
    byRules("drivers/store/clock-difference", "a grant is stored for the largest difference of clocks"),
  ),
  mutant(
    "mysql-call-within-a-transaction",
    "guarantees#what-exclusion-rests-on: The program may leave a connection of its pool in a transaction",
    at("procedureStatements", phrase("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;"), by("")),
    byServer("integration/mysql/open-transactions", "gets no grant, no extension and no release"),
  ),
  mutant(
    "etcd-grant-over-a-grant",
    "guarantees#the-promises: no other holder has the key",
    at("Acquires.#grant", [value("compare"), element("key")], by("...[]")),
    byServer("integration/etcd/conformance", "a try of another process does not get a held lock"),
  ),
  mutant(
    "etcd-renewal-by-a-former-leader",
    "guarantees#what-exclusion-rests-on: by the leader's clock for durations, so no step has an effect.",
    at("EtcdStore.extend", operation("===", "term"), by("true")),
    byServer("integration/etcd/faults", "a renewal by a former leader does not count"),
  ),
  mutant(
    "zookeeper-takeover-of-any-version",
    "guarantees#what-exclusion-rests-on: by the durations that waiters measure, and by wall clocks only beyond `maxClockDifferenceMs`.",
    at("Acquires.#grant", call("remove", "version"), withoutArgument(2)),
    byServer("integration/zookeeper/faults", "a waiter does not take a grant that was extended"),
  ),
];
