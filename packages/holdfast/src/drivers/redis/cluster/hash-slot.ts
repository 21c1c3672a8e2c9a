const slotCount = 16_384;

/** The hash slot of a key in Redis Cluster. If the key has a hash tag, only the tag counts. */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return crc16(Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key)) % slotCount;
}

const tags = new Map<number, string>();
let maxTried = 0;

/** A short hash tag that leads to a slot. Every client computes the same tag. */
export function tagOf(slot: number): string {
  let tag = tags.get(slot);
  while (tag === undefined) {
    const candidate = maxTried.toString(36);
    const found = slotOf(candidate);
    maxTried += 1;
    if (!tags.has(found)) {
      tags.set(found, candidate);
    }
    tag = tags.get(slot);
  }
  return tag;
}

/** CRC-16/XMODEM: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#appendix-a-crc16-reference-implementation-in-ansi-c */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) {
    crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  }
  return crc & 0xffff;
});

function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc = ((crc << 8) ^ (table[((crc >> 8) ^ byte) & 0xff] as number)) & 0xffff;
  }
  return crc;
}
