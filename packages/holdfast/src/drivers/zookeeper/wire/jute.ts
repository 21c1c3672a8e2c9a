import { protocolError } from "./errors.ts";

/** Writes the values of ZooKeeper's serialization (Jute): big-endian numbers, and texts and bytes with a length before. */
export class JuteWriter {
  readonly #parts: Buffer[] = [];

  int(value: number): this {
    const part = Buffer.allocUnsafe(4);
    part.writeInt32BE(value);
    return this.#add(part);
  }

  long(value: bigint): this {
    const part = Buffer.allocUnsafe(8);
    part.writeBigInt64BE(value);
    return this.#add(part);
  }

  bool(value: boolean): this {
    return this.#add(Buffer.of(value ? 1 : 0));
  }

  bytes(value: Uint8Array): this {
    return this.int(value.length).#add(value);
  }

  text(value: string): this {
    return this.bytes(Buffer.from(value));
  }

  append(body: Uint8Array): this {
    return this.#add(body);
  }

  get body(): Buffer {
    return Buffer.concat(this.#parts);
  }

  /** The values with their length before, as a frame of the connection. */
  get frame(): Buffer {
    const { body } = this;
    const length = Buffer.allocUnsafe(4);
    length.writeInt32BE(body.length);
    return Buffer.concat([length, body]);
  }

  #add(part: Uint8Array): this {
    this.#parts.push(Buffer.from(part.buffer, part.byteOffset, part.byteLength));
    return this;
  }
}

/** Reads the values of one frame. @throws {ZooKeeperError} if the frame ends before a value does */
export class JuteReader {
  readonly #frame: Buffer;
  #offset = 0;

  constructor(frame: Buffer) {
    this.#frame = frame;
  }

  get hasMore(): boolean {
    return this.#offset < this.#frame.length;
  }

  int(): number {
    return this.#take(4).readInt32BE();
  }

  long(): bigint {
    return this.#take(8).readBigInt64BE();
  }

  bool(): boolean {
    return this.#take(1)[0] !== 0;
  }

  /** Bytes without a value (length -1) are read as empty. */
  bytes(): Buffer {
    const length = this.int();
    if (length < -1) {
      throw protocolError(`a value has the length ${length}`);
    }
    return this.#take(Math.max(0, length));
  }

  text(): string {
    return this.bytes().toString();
  }

  texts(): string[] {
    const count = this.int();
    const left = this.#frame.length - this.#offset;
    if (count < -1 || count * 4 > left) {
      throw protocolError(`a list of ${count} texts does not fit in ${left} bytes`);
    }
    return Array.from({ length: Math.max(0, count) }, () => this.text());
  }

  #take(length: number): Buffer {
    const end = this.#offset + length;
    if (end > this.#frame.length) {
      throw protocolError(`a frame of ${this.#frame.length} bytes ends before byte ${end}`);
    }
    const taken = this.#frame.subarray(this.#offset, end);
    this.#offset = end;
    return taken;
  }
}

/** The longest frame that is accepted, bytes. A list of a million locks fits. */
const maxFrameBytes = 128 * 1024 * 1024;

/** Splits the bytes of a connection into frames. */
export class FrameSplitter {
  #chunks: Buffer[] = [];
  #bytes = 0;

  /** @returns the frames that are complete now @throws {ZooKeeperError} */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const frames: Buffer[] = [];
    for (let length = this.#nextLength(); length !== undefined; length = this.#nextLength()) {
      const all = this.#joined();
      frames.push(all.subarray(4, 4 + length));
      this.#chunks = [all.subarray(4 + length)];
      this.#bytes = all.length - 4 - length;
    }
    return frames;
  }

  /** The length of the next frame, if that frame is complete. */
  #nextLength(): number | undefined {
    if (this.#bytes < 4) {
      return undefined;
    }
    const first = this.#chunks[0] as Buffer;
    const length = (first.length < 4 ? this.#joined() : first).readInt32BE();
    if (length < 0 || length > maxFrameBytes) {
      throw protocolError(`a frame has the length ${length}`);
    }
    return this.#bytes < 4 + length ? undefined : length;
  }

  #joined(): Buffer {
    const all = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}
