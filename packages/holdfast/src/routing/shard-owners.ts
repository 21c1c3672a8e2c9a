import { murmur3 } from "./murmur3.ts";

/** Hashes are integers from 0 up to, but not including, this. */
export const sizeOfHashes: number = 2 ** 32;
export const maxMembers = 1_024;

/** No member owns more than this part of the mean, rounded up: 1 + ε of the paper, as a fraction of integers. */
const maxLoad = { times: 21, of: 20 } as const;

/** The points of one member on the ring. The last `#` of a hashed text separates its number, so no two members have equal texts. */
export function pointsOf(member: string, replicas: number): Uint32Array {
  return Uint32Array.from({ length: replicas }, (_, replica) => murmur3(`${member}#${replica}`));
}

/**
 * The owner of each shard, as an index in `points`. The shards are assigned in ascending order. Each shard belongs to the member of the
 * next point on the ring that does not yet own its maximum.
 * @param points the points of each member, in the order of their names
 */
export function ownersOfShards(points: readonly Uint32Array[], shards: number): Uint16Array {
  const owners = new Uint16Array(points.length === 0 ? 0 : shards);
  const ring = sortedPoints(points);
  const free = new Uint32Array(points.length).fill(
    Math.ceil((maxLoad.times * shards) / (maxLoad.of * points.length)),
  );
  let next = 0;
  for (let shard = 0; shard < owners.length; shard += 1) {
    const start = Math.floor((shard * sizeOfHashes) / shards);
    while (next < ring.length && hashOf(ring[next] as number) < start) {
      next += 1;
    }
    let at = next % ring.length;
    while (free[memberOf(ring[at] as number)] === 0) {
      at = (at + 1) % ring.length;
    }
    const owner = memberOf(ring[at] as number);
    free[owner] = (free[owner] as number) - 1;
    owners[shard] = owner;
  }
  return owners;
}

/** All points in the order of the ring, as `hash × maxMembers + member`: exact in a double, and sorted without a comparison function. */
function sortedPoints(points: readonly Uint32Array[]): Float64Array {
  const ring = new Float64Array(points.reduce((sum, own) => sum + own.length, 0));
  let length = 0;
  for (const [member, own] of points.entries()) {
    for (const hash of own) {
      ring[length] = hash * maxMembers + member;
      length += 1;
    }
  }
  return ring.sort();
}

function hashOf(point: number): number {
  return Math.floor(point / maxMembers);
}

function memberOf(point: number): number {
  return point % maxMembers;
}
