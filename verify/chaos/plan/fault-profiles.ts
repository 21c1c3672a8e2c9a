import type { FaultKind } from "./fault-kinds.ts";

/** The target of a kind of fault, its duration, and its size. */
export interface FaultProfile {
  /**
   * `link` is the connection between one client and one server. `forgetful` is a server without durability in the storm's unreliable
   * minority. `forgetful minority` is all of these, together with a client. `held server` is a server and a client that holds a lock on it.
   * `mortal client` is a client that may be killed. `primary` is a server that may be replaced, and so includes all servers.
   */
  readonly target:
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
    | "link"
    | "all links";
  readonly duration:
    "a moment" | "a restart" | "as long as a step" | "past the TTL" | "within the TTL" | "long" | "any";
  readonly size?: "step" | "step back" | "delay";
}

export const faultProfiles: Readonly<Record<FaultKind, FaultProfile>> = {
  "restart with its data": { target: "durable server", duration: "a restart" },
  "restart under a held lock": { target: "held server", duration: "past the TTL" },
  "restart empty": { target: "forgetful server", duration: "a restart" },
  "become durable": { target: "forgetful server", duration: "a restart" },
  "lose power": { target: "durable server", duration: "a restart" },
  "restart a minority empty": { target: "forgetful minority", duration: "past the TTL" },
  "freeze a server": { target: "server", duration: "any" },
  "freeze a majority": { target: "most servers", duration: "any" },
  "kill a primary": { target: "primary", duration: "a restart" },
  "freeze a primary": { target: "primary", duration: "a restart" },
  "move a slot": { target: "primary", duration: "a moment" },
  "step a clock": { target: "unreliable clock", duration: "as long as a step", size: "step" },
  "step the clock back": { target: "clock", duration: "a moment", size: "step back" },
  "step the server's clock": { target: "clock", duration: "long", size: "step" },
  "step a client's clock": { target: "client", duration: "any", size: "step" },
  "clock runs unevenly": { target: "clock", duration: "long" },
  "flush scripts": { target: "server", duration: "a moment" },
  "end connections": { target: "server", duration: "a moment" },
  "end subscriptions": { target: "server", duration: "a moment" },
  "freeze a client": { target: "client", duration: "within the TTL" },
  "freeze a client past the TTL": { target: "client", duration: "past the TTL" },
  "kill a client": { target: "mortal client", duration: "any" },
  "block an event loop": { target: "client", duration: "past the TTL" },
  "refuse one link": { target: "link", duration: "any" },
  "refuse all links": { target: "all links", duration: "any" },
  "black hole on one link": { target: "link", duration: "any" },
  "black hole on all links": { target: "all links", duration: "any" },
  "half-open connections": { target: "link", duration: "any" },
  "half-open subscriptions": { target: "link", duration: "any" },
  "slow connections": { target: "link", duration: "any", size: "delay" },
  "lose a reply": { target: "link", duration: "any" },
  "lose all replies": { target: "link", duration: "any" },
  "lose all messages": { target: "link", duration: "any" },
  "break a lock": { target: "client", duration: "a moment" },
};

/** Faults that need more room in a storm are placed first. */
const bySpaceNeeded: readonly FaultProfile["target"][] = [
  "forgetful minority",
  "forgetful server",
  "held server",
  "most servers",
  "primary",
  "unreliable clock",
  "durable server",
  "all links",
  "mortal client",
];

export function placementPriority(kind: FaultKind): number {
  const rank = bySpaceNeeded.indexOf(faultProfiles[kind].target);
  const least = kind === "become durable" ? 0.5 : 0; // it uses its server until the end of the storm
  return rank === -1 ? 0 : bySpaceNeeded.length - rank + least;
}
