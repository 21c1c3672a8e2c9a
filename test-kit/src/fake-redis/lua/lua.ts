import { toBytes } from "../bytes.ts";
import { formatNumber } from "../numbers.ts";
import { ServerError, type Reply } from "../reply.ts";
import { decodeJson, encodeJson } from "./json.ts";
import { prelude } from "./prelude.ts";
import { Stack } from "./stack.ts";
import { replyOf, valueOf, type Value } from "./value.ts";
import { addFunction, instantiateLua, type LuaExports } from "./wasm.ts";

/** Runs a command of a script. All texts are texts of bytes. */
export type Call = (argv: readonly string[]) => Reply;

/** The interpreter of Redis' scripts: Lua 5.1 with the additions of Redis. It caches compiled scripts. */
export class Lua {
  readonly #lua: LuaExports = instantiateLua();
  readonly #state: number = this.#lua.luaL_newstate();
  readonly #stack: Stack = new Stack(this.#lua, this.#state);
  readonly #compiled = new Map<string, number>();
  #call: Call = () => null;
  /** An error outside the running script. */
  #fault: Error | undefined;

  constructor() {
    this.#lua.luaL_openlibs(this.#state);
    this.#compile(prelude, "@prelude");
    this.#pushFunction(() => this.#command(true));
    this.#pushFunction(() => this.#command(false));
    this.#pushFunction(() => this.#answer(() => decodeJson(this.#stack.text(1))));
    this.#pushFunction(() => this.#answer(() => encodeJson(this.#stack.top())));
    if (this.#lua.lua_pcall(this.#state, 4, 1, 0) !== 0) {
      throw new Error(this.#stack.text(-1));
    }
  }

  /** Runs a script and returns the reply of Redis. */
  run(
    script: Readonly<Record<"sha1" | "source", string>>,
    keys: readonly string[],
    args: readonly string[],
    call: Call,
  ): Reply {
    this.#call = call;
    this.#fault = undefined;
    try {
      this.#setGlobal("KEYS", keys);
      this.#setGlobal("ARGV", args);
      this.#pushScript(script);
      const hasFailed = this.#lua.lua_pcall(this.#state, 0, 1, handlerIndex) !== 0;
      this.#throwFault();
      return hasFailed ? this.#failure(script.sha1) : replyOf(this.#stack.top());
    } finally {
      this.#lua.lua_settop(this.#state, handlerIndex);
    }
  }

  #pushScript({ sha1, source }: Readonly<Record<"sha1" | "source", string>>): void {
    const known = this.#compiled.get(sha1);
    if (known === undefined) {
      this.#compile(toBytes(source), "@user_script");
      this.#lua.lua_pushvalue(this.#state, -1);
      this.#compiled.set(sha1, this.#lua.luaL_ref(this.#state, registryIndex));
    } else {
      this.#lua.lua_rawgeti(this.#state, registryIndex, known);
    }
  }

  #compile(source: string, name: string): void {
    const status = this.#stack.withText(`${source}\0${name}\0`, (text) =>
      this.#lua.luaL_loadbuffer(this.#state, text, source.length, text + source.length + 1),
    );
    if (status !== 0) {
      throw new ServerError(`ERR Error compiling script (new function): ${this.#stack.text(-1)}`);
    }
  }

  #setGlobal(name: string, value: Value): void {
    this.#stack.push(name);
    this.#stack.push(value);
    this.#lua.lua_rawset(this.#state, globalsIndex);
  }

  #pushFunction(called: () => number): void {
    this.#lua.lua_pushcclosure(this.#state, addFunction(this.#lua, called), 0);
  }

  /** redis.call raises errors, redis.pcall returns them. */
  #command(raises: boolean): number {
    const argv = this.#stack.strings(formatNumber);
    const reply = argv ? this.#guarded(() => this.#call(argv)) : badArgument;
    this.#stack.push(valueOf(reply ?? null));
    if (raises && reply instanceof ServerError) {
      this.#lua.lua_error(this.#state);
    }
    return 1;
  }

  #answer(make: () => Value): number {
    this.#stack.push(this.#guarded(make));
    return 1;
  }

  #guarded<T>(action: () => T): T | undefined {
    try {
      return action();
    } catch (error) {
      this.#fault ??=
        error instanceof Error ? error : new Error("The thrown value is no Error", { cause: error });
      return undefined;
    }
  }

  #throwFault(): void {
    if (this.#fault) {
      throw this.#fault;
    }
  }

  /** The reply of Redis to a script that ends with an error: the error's text, then the script and the line. */
  #failure(sha1: string): ServerError {
    const [message = "", source, line] = ["err", "source", "line"].map((name) => this.#stack.textOf(name));
    return new ServerError(
      source === undefined ? message : `${message} script: ${sha1}, on ${source}:${line}.`,
    );
  }
}

/** The stack index of the error handler, which stays there. */
const handlerIndex = 1;
/** The pseudo-indexes of Lua's globals and of the registry, which only C can reach. */
const globalsIndex = -10_002;
const registryIndex = -10_000;

const badArgument = new ServerError("ERR Lua redis lib command arguments must be strings or integers");
