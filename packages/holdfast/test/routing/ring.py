"""The ring of `holdfast/routing`, written again from docs/routing.md.

Reads {"members", "replicas", "shards", "keys"} as JSON from stdin.
Writes {"hashes", "shards", "owners", "sizes"} as JSON: of each key its hash, shard and owner, and of each member its number of shards.
"""

import bisect
import json
import sys


def murmur3(text):
    data = text.encode("utf-8")
    mask = 0xFFFFFFFF

    def scrambled(block):
        block = block * 0xCC9E2D51 & mask
        block = (block << 15 | block >> 17) & mask
        return block * 0x1B873593 & mask

    value = 0
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        value ^= scrambled(int.from_bytes(data[at : at + 4], "little"))
        value = (value << 13 | value >> 19) & mask
        value = (value * 5 + 0xE6546B64) & mask
    value ^= scrambled(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    return value ^ value >> 16


def owners_of_shards(members, replicas, shards):
    members = sorted(members, key=lambda name: name.encode("utf-8"))
    ring = sorted(
        (murmur3(f"{member}#{replica}"), index)
        for index, member in enumerate(members)
        for replica in range(replicas)
    )
    free = [-(-21 * shards // (20 * len(members)))] * len(members)
    owners = []
    for shard in range(shards):
        at = bisect.bisect_left(ring, (shard * 2**32 // shards, 0)) % len(ring)
        while free[ring[at][1]] == 0:
            at = (at + 1) % len(ring)
        free[ring[at][1]] -= 1
        owners.append(members[ring[at][1]])
    return owners


request = json.load(sys.stdin)
owners = owners_of_shards(request["members"], request["replicas"], request["shards"])
hashes = [murmur3(key) for key in request["keys"]]
shards = [value * request["shards"] >> 32 for value in hashes]
json.dump(
    {
        "hashes": hashes,
        "shards": shards,
        "owners": [owners[shard] for shard in shards],
        "sizes": [owners.count(member) for member in request["members"]],
    },
    sys.stdout,
)
