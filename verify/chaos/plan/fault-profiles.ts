import type { FaultKind } from "./fault-kinds.ts";

/** What a kind of fault happens to, how long it lasts, and how large it is. */
export interface Habit {
  /**
   * `way`: between one client and one server. `forgetful`: a server of the storm's unreliable minority that keeps nothing, and
   * `forgetful minority` all of these, together with a client. `held server`: with a client that holds a lock of it. `mortal client`: one that may be killed.
   * `primary`: one that others may take the place of, and so all servers.
   */
  readonly on:
    | "server"
    | "durable server"
    | "held server"
    | "forgetful server"
    | "forgetful minority"
    | "most servers"
    | "primary"
    | "clock"
    | "unreliable clock"
    | "client"
    | "mortal client"
    | "way"
    | "all ways";
  readonly lasts:
    "a moment" | "a restart" | "as long as a step" | "past the TTL" | "within the TTL" | "long" | "any";
  readonly size?: "step" | "step back" | "delay";
}

export const habits: Readonly<Record<FaultKind, Habit>> = {
  "restart with its data": { on: "durable server", lasts: "a restart" },
  "restart under a held lock": { on: "held server", lasts: "past the TTL" },
  "restart empty": { on: "forgetful server", lasts: "a restart" },
  "restart a minority empty": { on: "forgetful minority", lasts: "past the TTL" },
  "freeze a server": { on: "server", lasts: "any" },
  "freeze a majority": { on: "most servers", lasts: "any" },
  "kill a primary": { on: "primary", lasts: "a restart" },
  "freeze a primary": { on: "primary", lasts: "a restart" },
  "move a slot": { on: "primary", lasts: "a moment" },
  "step a clock": { on: "unreliable clock", lasts: "as long as a step", size: "step" },
  "step the clock back": { on: "clock", lasts: "a moment", size: "step back" },
  "clock runs unevenly": { on: "clock", lasts: "long" },
  "flush scripts": { on: "server", lasts: "a moment" },
  "end connections": { on: "server", lasts: "a moment" },
  "end subscriptions": { on: "server", lasts: "a moment" },
  "freeze a client": { on: "client", lasts: "within the TTL" },
  "freeze a client past the TTL": { on: "client", lasts: "past the TTL" },
  "kill a client": { on: "mortal client", lasts: "any" },
  "block an event loop": { on: "client", lasts: "past the TTL" },
  "refuse one way": { on: "way", lasts: "any" },
  "refuse all ways": { on: "all ways", lasts: "any" },
  "black hole on one way": { on: "way", lasts: "any" },
  "black hole on all ways": { on: "all ways", lasts: "any" },
  "half-open connections": { on: "way", lasts: "any" },
  "half-open subscriptions": { on: "way", lasts: "any" },
  "slow connections": { on: "way", lasts: "any", size: "delay" },
  "lose a reply": { on: "way", lasts: "any" },
  "lose all replies": { on: "way", lasts: "any" },
  "lose all messages": { on: "way", lasts: "any" },
  "break a lock": { on: "client", lasts: "a moment" },
};

/** What needs most room in a storm comes first. */
const roomy: readonly Habit["on"][] = [
  "forgetful minority",
  "held server",
  "most servers",
  "primary",
  "forgetful server",
  "unreliable clock",
  "durable server",
  "all ways",
  "mortal client",
];

export function roomOf(kind: FaultKind): number {
  const place = roomy.indexOf(habits[kind].on);
  return place === -1 ? 0 : roomy.length - place;
}
