/** What can go wrong in a run. */
export type FaultKind =
  | "restart with its data"
  | "restart under a held lock"
  | "restart empty"
  | "restart a minority empty"
  | "freeze a server"
  | "freeze a majority"
  | "kill a primary"
  | "freeze a primary"
  | "move a slot"
  | "step a clock"
  | "step the clock back"
  | "clock runs unevenly"
  | "flush scripts"
  | "end connections"
  | "end subscriptions"
  | "freeze a client"
  | "freeze a client past the TTL"
  | "kill a client"
  | "block an event loop"
  | "refuse one link"
  | "refuse all links"
  | "black hole on one link"
  | "black hole on all links"
  | "half-open connections"
  | "half-open subscriptions"
  | "slow connections"
  | "lose a reply"
  | "lose all replies"
  | "lose all messages"
  | "break a lock";

/**
 * Why each is within what docs/redlock.md and docs/drivers/redis.md assume, so that exclusion has to hold. What is not within it
 * (a server that forgets without a guard, a majority of clocks that are off) is not done here, except by `--without`.
 */
export const faultLimits: Readonly<Record<FaultKind, string>> = {
  "restart with its data":
    "SIGKILL of a server with `appendonly yes` and `appendfsync always`: it has on its disk what it said, and votes at once.",
  "restart under a held lock":
    "SIGKILL of the one server, which has on its disk what it said, while a client is frozen with a lock in hand, most often the hot one: nobody else may get it before its time is over.",
  "restart empty":
    "SIGKILL of a server without a disk. Of a quorum only: it does not vote for the largest TTL and 3 s. A minority at a time, so that a majority can vote; exclusion would hold with more.",
  "restart a minority empty":
    "SIGKILL of a minority of servers without a disk at once, while a client that does not reach another server is frozen with a lock in hand, most often the hot one: those that remember its lease are no majority any more. The restarted ones do not vote until it is over.",
  "freeze a server":
    "SIGSTOP, and SIGCONT. Keys expire by the wall clock, which goes on; requests that waited are late.",
  "freeze a majority":
    "SIGSTOP, and SIGCONT, of most servers. Nobody can acquire; who holds keeps it until its validity ends.",
  "kill a primary":
    "SIGKILL; a replica is promoted, and the killed one comes back as its replica, with nothing of its own. What no replica had is lost, and with it exclusion; fencing tokens rise all the same, by the time.",
  "freeze a primary":
    "SIGSTOP until a replica is promoted, and SIGCONT: for a while it takes writes beside that one. Lost is what it alone has; the same as with a killed one.",
  "move a slot": "With the locks in it, to another primary, as an operator's tools do it. Nothing is lost.",
  "step a clock":
    "By 3 or 10 s either way, of a minority of a quorum. Kept for longer than the largest TTL, so that nothing that was valid when it was set is valid when it is put right: a client that did not ask meanwhile cannot have noticed.",
  "step the clock back":
    "Of one server, by at most 100 ms, and for good: keys live longer by that. A step forward would end them early, and the exclusion of one server hangs on its clock.",
  "clock runs unevenly":
    "0.8 % fast or slow, then as much the other way: within the drift of 1 % that validity allows for.",
  "flush scripts": "SCRIPT FLUSH: they are sent again.",
  "end connections": "CLIENT KILL TYPE normal.",
  "end subscriptions": "CLIENT KILL TYPE pubsub: grants by message may be lost.",
  "freeze a client": "SIGSTOP, and SIGCONT, shorter than a TTL.",
  "freeze a client past the TTL":
    "With a lock in hand, most often the hot one, between reading and writing. Its lease ends meanwhile by its own clock. What it does at the resource right after it thaws is late: only the token stops it, so the counter without tokens may lose.",
  "kill a client": "SIGKILL: its leases end by their TTL, its places in queues are passed over.",
  "block an event loop": "As frozen, but its connections are alive and no timer runs.",
  "refuse one link": "Connections of one client to one server end, and no new one is made.",
  "refuse all links": "Connections of one client to all servers end, and no new one is made.",
  "black hole on one link":
    "Nothing passes between one client and one server; what was sent meanwhile arrives afterwards, late.",
  "black hole on all links":
    "Nothing passes between one client and all servers; what was sent meanwhile arrives afterwards, late.",
  "half-open connections":
    "Nothing passes, and what was sent meanwhile is lost: the connections are ended afterwards.",
  "half-open subscriptions":
    "Those that subscribed are dead without a word; commands pass. Ended afterwards.",
  "slow connections": "Requests and replies are late by up to 300 ms, in order.",
  "lose a reply": "The server does what it is asked; the reply is thrown away and the connection ended.",
  "lose all replies":
    "The servers do all that they are asked for a while; the replies are thrown away and the connections ended.",
  "lose all messages": "Grants and questions by message are thrown away, commands pass.",
  "break a lock":
    "An operator's force. The holder that is broken learns of it by a message, so from the moment of the break its validity is not judged.",
};
