/** Every suite with its question, in the order in which they run. */
export const questions = {
  uncontended: "What does a lock cost when nobody else wants it?",
  hot: "What is a lock worth when everybody wants it, and who waits how long?",
  skew: "What if there are many keys, and few of them are wanted by most?",
  waiting: "What does it cost to wait while nothing happens?",
  renewals: "What does it cost to keep leases alive, and are they renewed in time?",
  takeover: "How long does a lock stay with the dead?",
  latency: "How many round trips does a lock take?",
  kinds: "What does each kind of lock cost when nobody else wants it?",
  "read-write": "What is it worth to let readers in together?",
  semaphore: "What are a few permits worth that many want?",
  memory: "How much memory does a lease take, a waiter, and a key that was used once?",
  churn: "Does memory grow while a million different keys come and go?",
  capacity: "Do the formulae of docs/capacity.md say what is measured?",
  service: "What does a lock cost over HTTP?",
  "command-line": "What does a lock add to the start of a command?",
  "redlock-uncontended": "What does a majority cost, and what if nodes are down?",
  "redlock-hot": "What is a majority worth when everybody wants it, and what if nodes are down?",
  "redlock-latency": "How many round trips does a majority take?",
} as const;

export type SuiteName = keyof typeof questions;

export const suiteNames: readonly SuiteName[] = Object.keys(questions) as SuiteName[];
