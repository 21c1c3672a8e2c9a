import { setTimeout as pause } from "node:timers/promises";

import { until } from "@holdfast/test-kit";

import type { ChaosServer } from "./chaos-server.ts";

/** What differs between the ways in which one server takes another's place. */
export interface SuccessionRules {
  /** Resolves when those who decide it are of one mind. */
  agreed(): Promise<void>;
  /** What an operator does with a primary that was replaced, and lives. */
  follow(server: ChaosServer, primary: ChaosServer): Promise<unknown>;
  /** And with one that is started again. */
  argsToFollow(primary: ChaosServer): readonly string[];
  /** Of the run's fixed keys those that it has as a primary; null: all. */
  keysOf(server: ChaosServer): Promise<readonly string[] | null>;
  /** Gives a key, and what shares its slot, to another primary. */
  move?(key: string, to: ChaosServer): Promise<void>;
}

const lookEveryMs = 40;
/** Without a fault nothing takes so long. */
const withinMs = 60_000;

/** Servers in groups, of each of which one is the primary. It does not choose who: that is for sentinels, or for the cluster. */
export class Succession {
  readonly groups: readonly (readonly ChaosServer[])[];
  readonly #rules: SuccessionRules;
  #last: Promise<void> = Promise.resolve();

  constructor(groups: readonly (readonly ChaosServer[])[], rules: SuccessionRules) {
    this.groups = groups;
    this.#rules = rules;
  }

  /** Lets a primary end, or freeze, and resolves when it is back, as a replica. One after another. */
  replace(group: number, how: "kill" | "freeze", forMs: number): Promise<void> {
    return this.#inTurn(async () => {
      await this.settled();
      const members = this.groups[group % this.groups.length] as readonly ChaosServer[];
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
        await pause(forMs); // it may take writes beside the other
        await this.#rules.follow(former, successor);
      }
      await this.settled();
    });
  }

  /** Gives the key to the primary of another group. */
  move(key: string, group: number): Promise<void> {
    return this.#inTurn(async () => {
      await this.settled();
      for (const [offset] of this.groups.entries()) {
        const to = await primaryOf(
          this.groups[(group + offset) % this.groups.length] as readonly ChaosServer[],
        );
        if ((await this.#rules.keysOf(to))?.includes(key) !== true) {
          await this.#rules.move?.(key, to);
          break;
        }
      }
      await this.settled();
    });
  }

  keysOf(server: ChaosServer): Promise<readonly string[] | null> {
    return this.#rules.keysOf(server);
  }

  /** Resolves when each group has one primary, whom all others follow, and all agree. */
  async settled(): Promise<void> {
    await until(
      async () => (await Promise.all(this.groups.map(isInOrder))).every(Boolean),
      "every primary has its replicas",
      withinMs,
    );
    await this.#rules.agreed();
  }

  async #inTurn(deed: () => Promise<void>): Promise<void> {
    const before = this.#last;
    const done = before.then(deed);
    this.#last = done.catch(() => undefined);
    await done;
  }
}

/** The first that says so. */
async function primaryOf(members: readonly ChaosServer[]): Promise<ChaosServer> {
  const giveUpAt = performance.now() + withinMs;
  while (performance.now() < giveUpAt) {
    const asked = members
      .filter(({ isUp }) => isUp)
      .map(async (member) => {
        if (!(await member.isPrimary())) {
          throw new Error("a replica");
        }
        return member;
      });
    const found = await Promise.any(asked).catch(() => undefined);
    if (found) {
      return found;
    }
    await pause(lookEveryMs);
  }
  throw new Error(`nobody was the primary within ${withinMs} ms`);
}

async function isInOrder(members: readonly ChaosServer[]): Promise<boolean> {
  if (members.some(({ isUp }) => !isUp)) {
    return false;
  }
  const roles = await Promise.all(members.map(roleOf));
  return roles.filter((role) => role === "primary").length === 1 && !roles.includes("behind");
}

async function roleOf(member: ChaosServer): Promise<"primary" | "in step" | "behind"> {
  if (await member.isPrimary()) {
    return "primary";
  }
  return (await member.isInStep()) ? "in step" : "behind";
}
