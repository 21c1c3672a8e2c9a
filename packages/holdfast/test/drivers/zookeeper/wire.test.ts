import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";

import { Connection, newSession } from "../../../src/drivers/zookeeper/wire/connection.ts";
import { ZooKeeperError } from "../../../src/drivers/zookeeper/wire/errors.ts";
import { FrameSplitter, JuteReader, JuteWriter } from "../../../src/drivers/zookeeper/wire/jute.ts";
import {
  check,
  create,
  getChildren,
  getData,
  multi,
  remove,
  setData,
} from "../../../src/drivers/zookeeper/wire/operations.ts";
import { systemClock } from "../../../src/runtime/clock.ts";

describe("frames", () => {
  test("are the same, however the bytes are divided", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        (bodies, sizes) => {
          const bytes = Buffer.concat(bodies.map((body) => new JuteWriter().append(body).frame));
          const splitter = new FrameSplitter();
          const frames: Buffer[] = [];
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const size = sizes[i % sizes.length] as number;
            frames.push(...splitter.push(Buffer.from(bytes.subarray(at, at + size))));
            at += size;
          }
          expect(frames.map((frame) => frame.toString("hex"))).toEqual(
            bodies.map((body) => Buffer.from(body).toString("hex")),
          );
        },
      ),
    );
  });

  test.each([-1, -2_147_483_648, 2_147_483_647])("of the length %i are refused", (length) => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(length);
    expect(() => new FrameSplitter().push(head)).toThrow(ZooKeeperError);
  });
});

test("a created node without its properties, as a busy server reports it, is read", () => {
  const result = new JuteWriter().int(1).bool(false).int(0).text("/a");
  const reply = result.int(-1).bool(true).int(-1).body;
  const operation = multi(create("/a", "", "persistent", "world"));
  expect(operation.read(new JuteReader(reply))).toEqual([{ path: "/a", stat: undefined }]);
});

describe("replies of arbitrary bytes", () => {
  const operations = [
    create("/a", "", "persistent", "world"),
    getData("/a"),
    setData("/a", ""),
    getChildren("/a"),
    multi(check("/a"), create("/a", "", "persistent", "creator"), setData("/a", ""), remove("/a")),
  ];

  test("are read, or refused with an error of ZooKeeper", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(...operations), (bytes, operation) => {
        try {
          operation.read(new JuteReader(Buffer.from(bytes)));
        } catch (error) {
          expect(error).toBeInstanceOf(ZooKeeperError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("of the end of a frame are refused", () => {
    const reply = new JuteWriter().text("/a").body;
    for (let length = 0; length < reply.length; length += 1) {
      expect(() => new JuteReader(reply.subarray(0, length)).text()).toThrow(ZooKeeperError);
    }
  });
});

describe("a connection", () => {
  let server: Server | undefined;

  afterEach(() => server?.close());

  /** A server that accepts a session, and sends bytes after the first request. */
  async function answering(bytes: Uint8Array): Promise<Connection> {
    server = createServer((socket) => {
      socket.on("error", () => undefined);
      void answer(socket, bytes);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return Connection.open({
      host: "127.0.0.1",
      port: (server.address() as AddressInfo).port,
      session: newSession,
      sessionTimeoutMs: 6_000,
      connectTimeoutMs: 10_000,
      replyTimeoutMs: 20_000,
      credentials: undefined,
      clock: systemClock,
      onEvent: () => undefined,
    });
  }

  async function answer(socket: Socket, bytes: Uint8Array): Promise<void> {
    await once(socket, "data");
    const session = new JuteWriter().int(0).int(6_000).long(1n).bytes(Buffer.alloc(16)).bool(false);
    socket.write(session.frame);
    await once(socket, "data");
    socket.end(bytes);
  }

  test("ends and rejects its requests, whatever the server sends", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), fc.boolean(), async (bytes, isFramed) => {
        const connection = await answering(isFramed ? new JuteWriter().append(bytes).frame : bytes);
        const failed = connection.request(getData("/a")).catch((error: unknown) => error);
        const reason = await connection.closed;
        expect(reason).toBeInstanceOf(ZooKeeperError);
        expect(await failed).toMatchObject({ outcome: "unknown", retryable: true });
        await expect(connection.request(getData("/a"))).rejects.toMatchObject({ outcome: "none" });
        server?.close();
      }),
      { numRuns: 100 },
    );
  });

  test("ends at a reply with the number of another request", async () => {
    const reply = new JuteWriter().int(7).long(1n).int(0).text("data");
    const connection = await answering(reply.frame);
    await expect(connection.request(getData("/a"))).rejects.toThrow(/number 7, expected 1/);
  });

  test("rejects a request with the error of its reply", async () => {
    const connection = await answering(new JuteWriter().int(1).long(1n).int(-101).frame);
    await expect(connection.request(getData("/a"))).rejects.toMatchObject({ code: -101, outcome: "none" });
  });
});
