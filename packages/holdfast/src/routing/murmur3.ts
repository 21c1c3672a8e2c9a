/**
 * MurmurHash3 of the UTF-8 bytes of `text`, the variant x86_32 with the seed 0: an integer from 0 to 2^32 − 1. Appleby, 2011.
 * Libraries of most languages have the same function, so other programs can compute the same owners.
 */
export function murmur3(text: string): number {
  const bytes = Buffer.from(text);
  const wholeBlocks = bytes.length & ~3;
  let hash = 0;
  for (let at = 0; at < wholeBlocks; at += 4) {
    hash ^= scrambled(bytes.readInt32LE(at));
    hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
  }
  let tail = 0;
  for (let at = bytes.length - 1; at >= wholeBlocks; at -= 1) {
    tail = (tail << 8) | bytes.readUInt8(at);
  }
  return finalised(hash ^ scrambled(tail) ^ bytes.length);
}

function scrambled(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}

function finalised(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
