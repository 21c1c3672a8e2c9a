/** To an instance. The first message is `start`. */
export type ToInstance =
  | {
      readonly kind: "start";
      readonly name: string;
      readonly members: readonly string[];
      readonly redisUrl: string;
      readonly prefix: string;
    }
  | { readonly kind: "members"; readonly members: readonly string[] }
  | { readonly kind: "request"; readonly id: number; readonly order: string };

/** `not-owner` and `failed`: the sender tries again, after it has updated its members. */
export type Outcome = "done" | "not-owner" | "failed";

export type FromInstance =
  { readonly kind: "ready" } | { readonly kind: "reply"; readonly id: number; readonly outcome: Outcome };

/** All processes use the same number. Each instance holds a lease for each of its shards in use. */
export const shards = 256;
