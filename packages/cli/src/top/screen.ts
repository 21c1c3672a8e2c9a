import type { WriteStream } from "node:tty";

const escape = "\u001b[";

/** The alternate screen of a terminal. Only changed rows are written. The former content returns at the end. */
export class Screen implements Disposable {
  readonly #stream: WriteStream;
  #lines: readonly string[] = [];

  constructor(stream: WriteStream) {
    this.#stream = stream;
    stream.write(`${escape}?1049h${escape}?25l${escape}2J`);
  }

  get size(): { columns: number; rows: number } {
    return { columns: this.#stream.columns, rows: this.#stream.rows };
  }

  /** Redraws all rows next time, because the terminal changed its size. */
  forget(): void {
    this.#lines = [];
    this.#stream.write(`${escape}2J`);
  }

  draw(lines: readonly string[]): void {
    const changed = lines.flatMap((line, row) =>
      line === this.#lines[row] ? [] : [`${escape}${row + 1};1H${escape}2K${emphasized(line, row)}`],
    );
    this.#lines = lines;
    if (changed.length > 0) this.#stream.write(changed.join(""));
  }

  [Symbol.dispose](): void {
    this.#stream.write(`${escape}?25h${escape}?1049l`);
  }
}

/** Emphasizes the heading and the line under the cursor. Without colours, the position and the `>` show both. */
function emphasized(line: string, row: number): string {
  return row === 0 || line.startsWith(">") ? `${escape}7m${line}${escape}0m` : line;
}
