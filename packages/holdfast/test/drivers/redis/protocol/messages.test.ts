import fc from "fast-check";
import { expect, test } from "vitest";

import { parseMessage, type Message } from "../../../../src/drivers/redis/protocol/messages.ts";
import { createToken } from "../../../../src/drivers/redis/protocol/token.ts";
import { systemRandom } from "../../../../src/runtime/random.ts";

const clientId = systemRandom.id();
const runId = systemRandom.id() + systemRandom.id().slice(0, 8);
const most = Number.MAX_SAFE_INTEGER;

function token(lockMode?: Parameters<typeof createToken>[0]["lockMode"]): string {
  return createToken({ clientId, lockMode, ticket: 1_700_000_000_000_000 }, systemRandom);
}

const mutex = token();
const reader = token({ kind: "read-write", mode: "read" });
const permits = token({ kind: "semaphore", permits: 2, limit: 5 });

/** Messages that the scripts and the subscriber write, and their meaning. */
const written: readonly (readonly [string, Message])[] = [
  [
    `grant ${mutex} 5 8 1700000000000001 3000 ${runId} lock:a b`,
    {
      kind: "grant",
      grant: {
        token: mutex,
        first: 5,
        last: 8,
        serverMicros: 1_700_000_000_000_001,
        ttlMs: 3000,
        waitMs: 0,
        runId,
        lock: "lock:a b",
      },
    },
  ],
  [
    `grant ${permits} ${most} ${most} 1 86400000+600 ${runId} two\nlines`,
    {
      kind: "grant",
      grant: {
        token: permits,
        first: most,
        last: most,
        serverMicros: 1,
        ttlMs: 86_400_000,
        waitMs: 600,
        runId,
        lock: "two\nlines",
      },
    },
  ],
  [`retry ${reader}`, { kind: "retry", token: reader }],
  [`inquiry ${mutex} 17`, { kind: "inquiry", token: mutex, number: 17 }],
  [
    "latch-open 1700000000000001 lock:l x",
    { kind: "latch-open", createdAt: "1700000000000001", lock: "lock:l x" },
  ],
  [
    `broken ${JSON.stringify([mutex, "lock:a", "stuck since {noon}"])}`,
    { kind: "broken", token: mutex, reason: "stuck since {noon}" },
  ],
  [`ping ${systemRandom.id()}`, { kind: "ping" }],
];

test.each(written)("%s is understood", (text, message) => {
  expect(parseMessage(text)).toEqual(message);
});

const strange = [
  "",
  " ",
  "grant",
  "hello world",
  "broken {",
  "broken null",
  "broken []",
  `broken ${JSON.stringify([mutex, "lock:a"])}`,
  `broken ${JSON.stringify([mutex, "lock:a", 5])}`,
  `broken ${JSON.stringify([5, "lock:a", "why"])}`,
  `broken ${JSON.stringify(["no token", "lock:a", "why"])}`,
  `broken ${JSON.stringify({ 0: mutex, 1: "lock:a", 2: "why", length: 3 })}`,
  `grant ${mutex} x 8 1 3000 ${runId} lock:a`,
  `grant ${mutex} 5 NaN 1 3000 ${runId} lock:a`,
  `grant ${mutex} 8 5 1 3000 ${runId} lock:a`,
  `grant ${mutex} 5 ${most + 1} 1 3000 ${runId} lock:a`,
  `grant ${mutex} 5 8 ${most + 1} 3000 ${runId} lock:a`,
  `grant ${mutex} -5 8 1 3000 ${runId} lock:a`,
  `grant ${mutex} 5.5 8 1 3000 ${runId} lock:a`,
  `grant ${mutex} 5 8 1 86400001 ${runId} lock:a`,
  `grant ${mutex} 5 8 1 3000 ${runId.slice(1)} lock:a`,
  `grant ${mutex} 5 8 1 3000 ${runId} `,
  `grant ${mutex} 5 8 1 3000 ${runId} holdfast:fence:{lock:a}`,
  `grant ${mutex.slice(1)} 5 8 1 3000 ${runId} lock:a`,
  `retry ${mutex} more`,
  "retry no-token",
  `inquiry ${mutex}`,
  `inquiry ${mutex} 1e3`,
  `inquiry ${mutex} ${most + 1}`,
  "latch-open x lock:l",
  "latch-open 5 ",
  "ping of nothing",
];

test.each(strange)("%j is not understood", (text) => {
  expect(parseMessage(text)).toBeUndefined();
});

/** A valid message in which one piece is replaced by another text. */
const mutated = fc
  .record({
    text: fc.constantFrom(...written.map(([text]) => text)),
    at: fc.nat(200),
    length: fc.nat(40),
    instead: fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.constantFrom(" ", "{", '"', "\\", "\n", "999999999999999999"),
    ),
  })
  .map(({ text, at, length, instead }) => text.slice(0, at) + instead + text.slice(at + length));

test("no published text causes an exception, and every field of an understood message is well-formed", () => {
  let understood = 0;
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), mutated), (text) => {
      const message = parseMessage(text);
      understood += message ? 1 : 0;
      const fields = Object.values(message?.kind === "grant" ? message.grant : (message ?? {}));
      return fields.every((field) => (typeof field === "number" ? isWhole(field) : field !== ""));
    }),
    { numRuns: 2_000 },
  );
  expect(understood).toBeGreaterThan(0); // a mutated reason or lock is still valid
});

function isWhole(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}
