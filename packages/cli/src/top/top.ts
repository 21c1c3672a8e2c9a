import { readFile } from "node:fs/promises";
import { emitKeypressEvents, type Key } from "node:readline";

import type { LockState } from "holdfast";

import { urlOf, type Engine, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { allLocks } from "../inspect/list.ts";
import { waitUnless } from "../run/wait-unless.ts";
import { errorMessage } from "../output.ts";
import { withEngine } from "../with-engine.ts";
import { Observation, type LockHistory } from "./observation.ts";
import { render, type Size } from "./render.ts";
import { Screen } from "./screen.ts";
import { firstView, actionFor, handleKey, type View } from "./view.ts";

export interface TopOptions {
  readonly target: Target;
  readonly prefix: string;
  readonly everyMs: number;
  readonly isOnce: boolean;
  /** A file with the output of `ls --json`, instead of an engine. */
  readonly file: string | undefined;
}

/** Shows holders and waiters, live. */
export async function top(options: TopOptions): Promise<number> {
  if (options.file !== undefined) {
    process.stdout.write(`${frameOnce(await captured(options.file), options.file)}\n`);
    return exitCodes.done;
  }
  return withEngine(options.target, undefined, async (engine, interrupted) => {
    const name = nameOf(urlOf(options.target));
    if (options.isOnce) {
      process.stdout.write(`${frameOnce(await readStates(engine, options.prefix), name)}\n`);
      return exitCodes.done;
    }
    if (!process.stdout.isTTY || !process.stdin.isTTY) {
      throw new Exit(
        exitCodes.usage,
        "top needs a terminal; --once prints one frame, and ls --json is for programs",
      );
    }
    using live = new Live(engine, name, options);
    await live.run(interrupted);
    return exitCodes.done;
  });
}

function frameOnce(states: readonly LockState[], engine: string): string {
  const size: Size = {
    columns: process.stdout.columns ?? Number(process.env["COLUMNS"] ?? 120),
    rows: process.stdout.rows ?? Number(process.env["LINES"] ?? states.length + 5),
  };
  const locks = new Observation().record(states, 0);
  return render({ view: firstView, locks, message: "", engine, size, now: 0, isStill: true })
    .join("\n")
    .trimEnd();
}

async function readStates({ locks }: Engine, prefix: string): Promise<LockState[]> {
  const states: LockState[] = [];
  for await (const state of allLocks(locks, prefix)) states.push(state);
  return states;
}

class Live implements Disposable {
  readonly #engine: Engine;
  readonly #name: string;
  readonly #options: TopOptions;
  readonly #screen = new Screen(process.stdout);
  readonly #observation = new Observation();
  readonly #quit = new AbortController();
  #view: View = firstView;
  #locks: readonly LockHistory[] = [];
  #message = "";

  constructor(engine: Engine, name: string, options: TopOptions) {
    this.#engine = engine;
    this.#name = name;
    this.#options = options;
    emitKeypressEvents(process.stdin);
    process.stdin.setRawMode(true).resume().on("keypress", this.#handleKeyPress);
    process.stdout.on("resize", this.#resized);
  }

  async run(interrupted: AbortSignal): Promise<void> {
    const end = AbortSignal.any([interrupted, this.#quit.signal]);
    while (!end.aborted) {
      if (!this.#view.isPaused) await this.#refresh();
      this.#draw();
      await waitUnless(this.#options.everyMs, end);
    }
  }

  [Symbol.dispose](): void {
    process.stdin.off("keypress", this.#handleKeyPress).setRawMode(false).pause();
    process.stdout.off("resize", this.#resized);
    this.#screen[Symbol.dispose]();
  }

  async #refresh(): Promise<void> {
    try {
      this.#locks = this.#observation.record(
        await readStates(this.#engine, this.#options.prefix),
        performance.now(),
      );
    } catch (error) {
      this.#message = errorMessage(error);
    }
  }

  #draw(): void {
    const { size } = this.#screen;
    const [view, locks, message, engine] = [this.#view, this.#locks, this.#message, this.#name];
    this.#screen.draw(render({ view, locks, message, engine, size, now: performance.now() }));
  }

  readonly #handleKeyPress = (text: string | undefined, key: Key): void => {
    const pressed = { name: key.name ?? "", text: text ?? "", isControl: key.ctrl === true };
    const { view, action } = handleKey(this.#view, pressed, this.#locks);
    if (action === "break") void this.#break(actionFor(this.#view, this.#locks));
    if (action === "quit") this.#quit.abort();
    this.#view = view;
    this.#draw();
  };

  readonly #resized = (): void => {
    this.#screen.forget();
    this.#draw();
  };

  async #break(locks: readonly LockHistory[]): Promise<void> {
    const outcomes = await Promise.all(locks.map((one) => this.#breakOne(one.state)));
    this.#message = outcomes.join(", ");
    this.#view = { ...this.#view, selected: new Set() };
    await this.#refresh();
    this.#draw();
  }

  async #breakOne({ key, holders }: LockState): Promise<string> {
    const [holder] = holders;
    if (holder?.fencingToken === undefined) {
      return `"${key}" has no fencing token to be broken by`;
    }
    try {
      const reason = `broken in holdfast top by ${this.#engine.owner}`;
      const isBroken = await this.#engine.locks.admin.breakLock(key, {
        fencingToken: holder.fencingToken,
        reason,
      });
      return isBroken ? `"${key}" is broken` : `"${key}" has another holder now`;
    } catch (error) {
      return errorMessage(error);
    }
  }
}

/** The URL without secrets. */
function nameOf(url: string): string {
  return url.replace(/\/\/.*@/, "//").replace(/\?.*/, "");
}

async function captured(file: string): Promise<LockState[]> {
  try {
    const { locks } = JSON.parse(await readFile(file, "utf8")) as { locks: LockState[] };
    return locks.map((state) => state);
  } catch (error) {
    throw new Exit(
      exitCodes.usage,
      `${file} is not what holdfast ls --json writes: ${errorMessage(error)}`,
      error,
    );
  }
}
