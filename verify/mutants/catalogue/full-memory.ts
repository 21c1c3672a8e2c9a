import { byServer, lua, type Mutant } from "../mutant.ts";

const scripts = "drivers/redis/protocol/scripts/full-memory";

/** Mutants of what a server with full memory serves: everything but new requests. */
export const fullMemory: readonly Mutant[] = [
  {
    name: "registration-needs-memory",
    brokenRule: "with full memory a new process can look, break and release, and verify its subscription",
    edits: [lua("handshake", "  redis.call('DEL', KEYS[1])\n", "")],
    killers: [byServer(scripts, "registers a client and publishes its text")],
  },
  {
    name: "break-needs-memory",
    brokenRule: "with full memory an operator can break a grant, with its record",
    edits: [lua("common/recorded-break", "  permit_writes()\n", "")],
    killers: [byServer(scripts, "breaks a grant and writes its record")],
  },
  {
    name: "poll-needs-memory",
    brokenRule: "with full memory a waiter keeps its queue entry by its polls",
    edits: [
      lua(
        "common/queue",
        "redis.call('ZSCORE', queue, queue_entry) and 0 or error(added.err, 0)",
        "error(added.err, 0)",
      ),
    ],
    killers: [byServer(scripts, "keeps a waiter that polls")],
  },
  {
    name: "refused-waiter-counts-as-queued",
    brokenRule: "a request that the server could not queue is refused with the server's reason",
    edits: [
      lua("common/queue", "redis.call('ZSCORE', queue, queue_entry) and 0 or error(added.err, 0)", "0"),
    ],
    killers: [byServer(scripts, "keeps a waiter that polls")],
  },
  {
    name: "end-of-a-vote-needs-memory",
    brokenRule: "with full memory the next operation ends an expired vote, and serves the next waiter",
    edits: [
      lua(
        "quorum/remembered-votes",
        "    forget_vote()\n    if not is_ended_by(name, own, token) then\n      delay_votes(expiry, 'notBefore')\n    end\n",
        "    if not is_ended_by(name, own, token) then\n      delay_votes(expiry, 'notBefore')\n    end\n    forget_vote()\n",
      ),
    ],
    killers: [byServer(scripts, "serves the next waiter after a holder")],
  },
  {
    name: "restored-vote-needs-memory",
    brokenRule: "with full memory a node restores a vote whose key has vanished",
    edits: [lua("quorum/remembered-votes", "    permit_writes()\n", "")],
    killers: [byServer(scripts, "restores a vote whose key has vanished")],
  },
  {
    name: "downgrade-needs-memory",
    brokenRule: "with full memory a writer can become a reader",
    edits: [
      lua(
        "common/shared-lock",
        "  permit_writes()\n  write_holder(token, number, 1",
        "  write_holder(token, number, 1",
      ),
    ],
    killers: [byServer(scripts, "makes a reader of a writer")],
  },
];
