import { setTimeout as pause } from "node:timers/promises";

import { waitUntil } from "@holdfast/test-kit";

import type { RedisChaosServer } from "./redis-chaos-server.ts";

/** The differences between the ways in which a server replaces another. */
export interface FailoverRules {
  /** Resolves when the processes that decide about failovers agree. */
  topologyAgreed(): Promise<void>;
  /** The action of an operator on a former primary that still runs. */
  follow(server: RedisChaosServer, primary: RedisChaosServer): Promise<unknown>;
  /** The arguments for a former primary that is started again. */
  argsToFollow(primary: RedisChaosServer): readonly string[];
  /** The fixed keys of the run of which the server is the primary. null: all keys. */
  keysOf(server: RedisChaosServer): Promise<readonly string[] | null>;
  /** Moves a key, and the other keys of its slot, to another primary. */
  move?(key: string, to: RedisChaosServer): Promise<void>;
}

const pollMs = 40;
/** Without a fault no failover takes this long. */
const failoverTimeoutMs = 60_000;

/** Groups of servers, each with one primary. Sentinels or the cluster choose the primary. */
export class FailoverGroups {
  readonly groups: readonly (readonly RedisChaosServer[])[];
  readonly #rules: FailoverRules;
  #last: Promise<void> = Promise.resolve();

  constructor(groups: readonly (readonly RedisChaosServer[])[], rules: FailoverRules) {
    this.groups = groups;
    this.#rules = rules;
  }

  /** Kills or freezes a primary, and resolves when that server is back as a replica. Calls run one after another. */
  replace(group: number, how: "kill" | "freeze", forMs: number): Promise<void> {
    return this.#runExclusive(async () => {
      await this.awaitStable();
      const members = this.groups[group % this.groups.length] as readonly RedisChaosServer[];
      const former = await primaryOf(members);
      let successor = former;
      const replaced = async (): Promise<void> => {
        successor = await primaryOf(members.filter((member) => member !== former));
        await pause(forMs);
      };
      if (how === "kill") {
        await former.restart(replaced, () => this.#rules.argsToFollow(successor));
      } else {
        former.freeze();
        await replaced();
        former.thaw();
        await pause(forMs); // both primaries may accept writes
        await this.#rules.follow(former, successor);
      }
      await this.awaitStable();
    });
  }

  /** Moves the key to the primary of another group. */
  move(key: string, group: number): Promise<void> {
    return this.#runExclusive(async () => {
      await this.awaitStable();
      for (const [offset] of this.groups.entries()) {
        const to = await primaryOf(
          this.groups[(group + offset) % this.groups.length] as readonly RedisChaosServer[],
        );
        if ((await this.#rules.keysOf(to))?.includes(key) !== true) {
          await this.#rules.move?.(key, to);
          break;
        }
      }
      await this.awaitStable();
    });
  }

  keysOf(server: RedisChaosServer): Promise<readonly string[] | null> {
    return this.#rules.keysOf(server);
  }

  /** Resolves when each group has one primary, all others follow it, and all agree. */
  async awaitStable(): Promise<void> {
    await waitUntil(
      async () => (await Promise.all(this.groups.map(isInOrder))).every(Boolean),
      "every primary has its replicas",
      failoverTimeoutMs,
    );
    await this.#rules.topologyAgreed();
  }

  async #runExclusive(action: () => Promise<void>): Promise<void> {
    const previous = this.#last;
    const done = previous.then(action);
    this.#last = done.catch(() => undefined);
    await done;
  }
}

/** The first server that reports the role of the primary. */
async function primaryOf(members: readonly RedisChaosServer[]): Promise<RedisChaosServer> {
  const failsAt = performance.now() + failoverTimeoutMs;
  while (performance.now() < failsAt) {
    const answers = members
      .filter(({ isUp }) => isUp)
      .map(async (member) => {
        if (!(await member.isPrimary())) {
          throw new Error("a replica");
        }
        return member;
      });
    const found = await Promise.any(answers).catch(() => undefined);
    if (found) {
      return found;
    }
    await pause(pollMs);
  }
  throw new Error(`no server was the primary within ${failoverTimeoutMs} ms`);
}

async function isInOrder(members: readonly RedisChaosServer[]): Promise<boolean> {
  if (members.some(({ isUp }) => !isUp)) {
    return false;
  }
  const roles = await Promise.all(members.map(roleOf));
  return roles.filter((role) => role === "primary").length === 1 && !roles.includes("behind");
}

async function roleOf(member: RedisChaosServer): Promise<"primary" | "in step" | "behind"> {
  if (await member.isPrimary()) {
    return "primary";
  }
  return (await member.isReplicationInSync()) ? "in step" : "behind";
}
