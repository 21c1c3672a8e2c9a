import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";

import type { MessageStream } from "../output.ts";

/** How long the end waits for a reader of stderr that is slow or has stopped, ms. */
const lastWordsMs = 500;

/** Copies lines from stdin to stdout, without another program, which a small image may lack. */
const script = 'while IFS= read -r line; do printf "%s\\n" "$line"; done';

/**
 * Stderr, while a command runs. Node.js blocks at a write to a terminal: if the terminal is stopped (Ctrl-S, a stalled connection), a
 * message would stop the renewals of the lease and the signals to the command. So a shell in a session of its own writes the messages.
 * The shell starts with the first one. Without a shell the messages are written directly.
 */
export class BackgroundStream implements MessageStream {
  readonly isTTY = false; // a changing status line needs the terminal itself
  #writer: ChildProcess | undefined;
  /** The messages that the shell may not have read, while it is not known whether there is a shell. */
  #unsent: string[] = [];
  #isDirect = process.platform === "win32";

  write(text: string): void {
    if (this.#isDirect) {
      process.stderr.write(text);
      return;
    }
    if (!this.#writer?.pid) {
      this.#unsent.push(text);
    }
    this.#writer ??= this.#start();
    this.#writer.stdin?.write(text);
  }

  /** Resolves when all messages are written, or after half a second. No message may follow. */
  async end(): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined || this.#isDirect) {
      return;
    }
    const written = once(writer, "close").catch(() => undefined);
    writer.stdin?.end();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([written, new Promise((resolve) => (timer = setTimeout(resolve, lastWordsMs)))]);
    clearTimeout(timer);
    writer.unref();
  }

  #start(): ChildProcess {
    const stdio = ["pipe", process.stderr.fd, "ignore"] as const;
    const writer = spawn("/bin/sh", ["-c", script], { stdio: [...stdio], detached: true, env: {} });
    writer.on("error", () => {
      this.#isDirect = true;
      for (const text of this.#unsent.splice(0)) {
        process.stderr.write(text);
      }
    });
    writer.once("spawn", () => (this.#unsent = []));
    writer.stdin?.on("error", () => undefined); // the reader of stderr has gone
    return writer;
  }
}
