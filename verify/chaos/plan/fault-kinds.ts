/** The kinds of faults in a run. */
export type FaultKind =
  | "restart with its data"
  | "restart under a held lock"
  | "restart empty"
  | "restart a minority empty"
  | "become durable"
  | "lose power"
  | "freeze a server"
  | "freeze a majority"
  | "kill a primary"
  | "freeze a primary"
  | "move a slot"
  | "step a clock"
  | "step the clock back"
  | "step the server's clock"
  | "step a client's clock"
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
 * Why each fault is within the assumptions of docs/redlock.md and docs/drivers, so that exclusion must hold. Faults outside them
 * occur only with `--without`, for example a restart without data and without a guard.
 */
export const faultLimits: Readonly<Record<FaultKind, string>> = {
  "restart with its data":
    "SIGKILL of a server that stores every grant before its reply, in Redis with `appendonly yes` and `appendfsync always`. A server of a quorum votes at once for clients that trust it, and does not vote for the others until the largest TTL and 3 s have passed.",
  "restart under a held lock":
    "SIGKILL of the one server, which is durable, while a client that holds a lock is frozen. Most often the lock is the hot one. No other client may get the lock before its TTL has passed.",
  "restart empty":
    "SIGKILL of a server of a quorum without a disk, or a loss of power during a rewrite in which no write is forced to disk. The server does not vote for the largest TTL and 3 s. Only a minority restarts at a time, so that a majority can vote. Exclusion would hold with more.",
  "restart a minority empty":
    "SIGKILL of a minority of servers without a disk at once, while a client that holds a lock is frozen. The client does not reach another server, so the servers that still have its lease are no majority. The restarted servers do not vote until the lease has expired.",
  "become durable":
    "SIGKILL of a server of a quorum without durability, which loses its data, and is durable from then on. Half of these servers switch their file on before, and are killed during its first rewrite. The server was not durable in the run before, so no client may trust it yet. It stays durable, which is the operator's promise.",
  "lose power":
    "SIGKILL of a durable server, and its files are cut to their sizes at the last `fsync`, half of the time during a rewrite. Every grant was forced to disk before its reply, so nothing is lost. The disk keeps what `fsync` confirmed, which is the operator's promise.",
  "freeze a server":
    "SIGSTOP, and SIGCONT. Keys expire by the wall clock, which continues, and requests that waited are late.",
  "freeze a majority":
    "SIGSTOP, and SIGCONT, of most servers. No client can acquire a lock, and a holder keeps its lock until the validity ends.",
  "kill a primary":
    "SIGKILL. A replica is promoted, and the killed server returns as its replica, without its own data. A grant that no replica had is lost, and with the grant exclusion. Fencing tokens still rise, because time is their floor.",
  "freeze a primary":
    "SIGSTOP until a replica is promoted, and SIGCONT. For a while the former primary accepts writes beside the new primary. Grants that only the former primary has are lost, as after a kill.",
  "move a slot":
    "A slot with its locks moves to another primary, as an operator's tools do it. No grant is lost.",
  "step a clock":
    "By 3 or 10 s in either direction, on a minority of a quorum. The step lasts longer than the largest TTL. So a grant that was valid at the step has expired at its end, because a client without requests in between cannot notice the step.",
  "step the clock back":
    "On one server, by at most 100 ms, and permanently, so that keys live longer. A step forward would expire keys early, and the exclusion of one server depends on its clock.",
  "step the server's clock":
    "By 3 or 10 s in either direction. The server's wall clock decides only about grants without extensions for a minute.",
  "step a client's clock":
    "The wall clock of one client process, by 3 or 10 s in either direction. A lease may be lost early, and never late.",
  "clock runs unevenly":
    "0.8 % fast or slow, then as much in the other direction. This is within the drift of 1 % that validity allows for.",
  "flush scripts": "SCRIPT FLUSH: clients send the scripts again.",
  "end connections":
    "The server ends the connections of all clients, in Redis by CLIENT KILL TYPE normal. For servers without such a command the proxies end them.",
  "end subscriptions":
    "The server ends the connections that receive notifications, in Redis by CLIENT KILL TYPE pubsub. Notifications may be lost.",
  "freeze a client": "SIGSTOP, and SIGCONT, shorter than a TTL.",
  "freeze a client past the TTL":
    "The client holds a lock, most often the hot one, and is between reading and writing. Its lease expires during the freeze. Its write after the thaw is late, and only the token prevents the write, so the counter without tokens may lose one.",
  "kill a client": "SIGKILL: its leases expire by their TTL, and the servers skip its queue entries.",
  "block an event loop": "Like a freeze, but its connections stay open and no timer runs.",
  "refuse one link": "Connections of one client to one server end, and new connections are refused.",
  "refuse all links": "Connections of one client to all servers end, and new connections are refused.",
  "black hole on one link":
    "No data passes between one client and one server. Data sent during the fault arrives late.",
  "black hole on all links":
    "No data passes between one client and all servers. Data sent during the fault arrives late.",
  "half-open connections":
    "No data passes, and data sent during the fault is lost, because the connections end afterwards.",
  "half-open subscriptions":
    "Subscriptions receive nothing, but commands pass. Afterwards the subscriptions end.",
  "slow connections": "Requests and replies are late by up to 300 ms, in order.",
  "lose a reply": "The server executes the request, but the reply is dropped and the connection ends.",
  "lose all replies":
    "For a while the servers execute all requests, but the replies are dropped and the connections end.",
  "lose all messages": "Grants and inquiries by notification are dropped, but commands pass.",
  "break a lock":
    "An operator breaks the lock. The holder learns about the break by a notification, so its validity is not judged after the break.",
};
