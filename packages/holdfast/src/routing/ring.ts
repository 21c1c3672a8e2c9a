import { checkInteger, checkOptionNames, checkText, integerOr } from "../option-checks.ts";
import { inspectAsJson } from "../runtime/plain-values.ts";
import { murmur3 } from "./murmur3.ts";
import { maxMembers, ownersOfShards, pointsOf, sizeOfHashes } from "./shard-owners.ts";

export interface RingOptions {
  /**
   * Points of each member on the ring, 1 to 8 192. More points even out the shares and take more time to compute.
   * @defaultValue 4 096
   */
  readonly replicas?: number | undefined;
  /**
   * Number of shards, 1 to 2^22. All processes must use the same number. See {@link Ring.shards}.
   * @defaultValue 524 288
   */
  readonly shards?: number | undefined;
}

/**
 * Decides which member owns a key. The owner depends only on the set of members, `replicas`, `shards` and the key. So processes
 * with equal sets agree on every owner, without a message.
 */
export interface Ring {
  /** The members, sorted by the bytes of their names. */
  readonly members: readonly string[];
  /**
   * The number of shards. A shard is a fixed, equal part of all keys. All keys of a shard have one owner.
   * No member owns more than `ceil(1.05 × shards / members.length)` shards.
   */
  readonly shards: number;
  /** The shard of a key, from 0. The members do not matter. */
  shardOf(key: string): number;
  /**
   * The member that owns the key.
   * @throws RangeError without members
   */
  ownerOf(key: string): string;
  /**
   * The member that owns all keys of a shard.
   * @throws RangeError without members
   */
  ownerOfShard(shard: number): string;
  /** The shards of a member, ascending; empty for a name that is no member. */
  shardsOf(member: string): number[];
  /**
   * Adds a member. @returns false if the ring already has it
   * @throws RangeError with 1 024 members
   */
  add(member: string): boolean;
  /** Removes a member. @returns false if the ring does not have it */
  remove(member: string): boolean;
}

/**
 * A ring that assigns each key to one member: consistent hashing with bounded loads.
 *
 * - **Agreement.** Every process with the same members, `replicas` and `shards` computes the same owners, whatever the order in which
 *   members were added. A ring is no lock: while processes have different sets of members, a key can have two owners.
 * - **Balance.** No member owns more than 5 % above the mean, rounded up to a whole shard.
 * - **Movement.** When one of n members is added or removed, about 1 / n of the keys move. With the defaults and up to 100 members
 *   fewer than 1.2 / n move.
 *
 * Source: Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2016. Its balls are the shards here, and its
 * bins are the members.
 * @param members names of 1 to 512 bytes, 1 024 at most; repeated names count once
 * @throws TypeError or RangeError for an invalid name or option
 */
export function createRing(members: Iterable<string> = [], options: RingOptions = {}): Ring {
  checkOptionNames(options, ["replicas", "shards"]);
  const ring = new HashRing(
    integerOr(4_096, "replicas", options.replicas, [1, 8_192]),
    integerOr(2 ** 19, "shards", options.shards, [1, 2 ** 22]),
  );
  for (const member of members) {
    ring.add(member);
  }
  return ring;
}

class HashRing implements Ring {
  static {
    inspectAsJson(this.prototype, "Ring");
  }

  readonly shards: number;
  readonly #replicas: number;
  /** The hashes of each member's points. */
  readonly #points = new Map<string, Uint32Array>();
  /** Computed at the first query after a change, so that many changes in a row cost one computation. */
  #view: View | undefined;

  constructor(replicas: number, shards: number) {
    this.#replicas = replicas;
    this.shards = shards;
  }

  get members(): readonly string[] {
    return this.#current().members;
  }

  toJSON(): { members: readonly string[]; shards: number; replicas: number } {
    return { members: this.members, shards: this.shards, replicas: this.#replicas };
  }

  shardOf(key: string): number {
    return Math.floor((murmur3(checkText("key", key, 512)) * this.shards) / sizeOfHashes);
  }

  ownerOf(key: string): string {
    return this.ownerOfShard(this.shardOf(key));
  }

  ownerOfShard(shard: number): string {
    const { members, owners } = this.#current();
    checkInteger("shard", shard, 0, this.shards - 1);
    if (members.length === 0) {
      throw new RangeError("The ring has no members; add one first");
    }
    return members[owners[shard] as number] as string;
  }

  shardsOf(member: string): number[] {
    const { members, owners } = this.#current();
    const index = members.indexOf(member);
    const found: number[] = [];
    for (let shard = 0; index >= 0 && shard < owners.length; shard += 1) {
      if (owners[shard] === index) {
        found.push(shard);
      }
    }
    return found;
  }

  add(member: string): boolean {
    if (this.#points.has(checkText("member", member, 512))) {
      return false;
    }
    if (this.#points.size === maxMembers) {
      throw new RangeError(`Expected at most ${maxMembers} members, got one more`);
    }
    this.#points.set(member, pointsOf(member, this.#replicas));
    this.#view = undefined;
    return true;
  }

  remove(member: string): boolean {
    const isRemoved = this.#points.delete(member);
    if (isRemoved) {
      this.#view = undefined;
    }
    return isRemoved;
  }

  #current(): View {
    return (this.#view ??= this.#computed());
  }

  #computed(): View {
    // By bytes, because other languages do not sort by UTF-16.
    const members = [...this.#points.keys()].sort((one, other) =>
      Buffer.compare(Buffer.from(one), Buffer.from(other)),
    );
    const points = members.map((member) => this.#points.get(member) as Uint32Array);
    return { members, owners: ownersOfShards(points, this.shards) };
  }
}

/** The owners at one set of members. Never changed, so that `members` can be handed out. */
interface View {
  readonly members: readonly string[];
  /** The index in `members` of each shard's owner. */
  readonly owners: Uint16Array;
}
