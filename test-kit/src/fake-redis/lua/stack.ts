import type { LuaExports } from "./wasm.ts";
import type { Fields, Value } from "./value.ts";

/** The results of `lua_type` for each type of value. */
const kinds = { nil: 0, boolean: 1, number: 3, string: 4, table: 5 } as const;
const bufferSize = 65_536;

/** The stack for the exchange of values with Lua. All texts are texts of bytes. */
export class Stack {
  readonly #lua: LuaExports;
  readonly #state: number;
  /** The address of the buffer from which Lua reads texts. */
  readonly #buffer: number;
  /** The address to which Lua writes the length of a text. */
  readonly #length: number;
  #memory: Buffer;

  constructor(lua: LuaExports, state: number) {
    this.#lua = lua;
    this.#state = state;
    this.#buffer = lua.malloc(bufferSize);
    this.#length = lua.malloc(4);
    this.#memory = Buffer.from(lua.memory.buffer);
  }

  push(value: Value): void {
    if (typeof value === "string") {
      this.withText(value, (text, length) => {
        this.#lua.lua_pushlstring(this.#state, text, length);
      });
    } else if (typeof value === "number") {
      this.#lua.lua_pushnumber(this.#state, value);
    } else if (typeof value === "boolean") {
      this.#lua.lua_pushboolean(this.#state, value ? 1 : 0);
    } else if (value === undefined) {
      this.#lua.lua_pushnil(this.#state);
    } else if (value === null) {
      this.#lua.lua_pushlightuserdata(this.#state, 0);
    } else {
      this.#pushTable(value);
    }
  }

  /** The value on top, which stays there. */
  top(): Value {
    const kind = this.#lua.lua_type(this.#state, -1);
    if (kind === kinds.string) {
      return this.text(-1);
    } else if (kind === kinds.number) {
      return this.#lua.lua_tonumber(this.#state, -1);
    } else if (kind === kinds.boolean) {
      return this.#lua.lua_toboolean(this.#state, -1) === 1;
    }
    return kind === kinds.table ? this.#table() : undefined;
  }

  /** All values on the stack, as strings; undefined if one is neither a text nor a number. */
  strings(format: (number: number) => string): string[] | undefined {
    const count = this.#lua.lua_gettop(this.#state);
    const strings: string[] = [];
    for (let index = 1; index <= count; index += 1) {
      const kind = this.#lua.lua_type(this.#state, index);
      if (kind === kinds.string) {
        strings.push(this.text(index));
      } else if (kind === kinds.number) {
        strings.push(format(this.#lua.lua_tonumber(this.#state, index)));
      } else {
        return undefined;
      }
    }
    return strings;
  }

  text(index: number): string {
    const text = this.#lua.lua_tolstring(this.#state, index, this.#length);
    const bytes = this.#bytes();
    return bytes.toString("latin1", text, text + bytes.readUInt32LE(this.#length));
  }

  /** A field of the table on top, if it is a text or a number. */
  textOf(name: string): string | undefined {
    this.push(name);
    this.#lua.lua_rawget(this.#state, -2);
    const value = this.#pop();
    return typeof value === "string" || typeof value === "number" ? `${value}` : undefined;
  }

  /** Makes a text readable for Lua while the action runs. */
  withText<T>(text: string, action: (text: number, length: number) => T): T {
    if (text.length <= bufferSize) {
      this.#bytes().write(text, this.#buffer, "latin1");
      return action(this.#buffer, text.length);
    }
    const pointer = this.#lua.malloc(text.length);
    this.#bytes().write(text, pointer, "latin1");
    const result = action(pointer, text.length);
    this.#lua.free(pointer);
    return result;
  }

  #pushTable(value: readonly Value[] | Fields): void {
    this.#lua.lua_checkstack(this.#state, 4);
    this.#lua.lua_createtable(this.#state, 0, 0);
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        this.push(value[index] as Value);
        this.#lua.lua_rawseti(this.#state, -2, index + 1);
      }
      return;
    }
    for (const [name, field] of Object.entries(value)) {
      this.push(name);
      this.push(field);
      this.#lua.lua_rawset(this.#state, -3);
    }
  }

  #table(): Value {
    this.#lua.lua_checkstack(this.#state, 4);
    for (const name of ["err", "ok"]) {
      const text = this.textOf(name);
      if (text !== undefined) {
        return { [name]: text };
      }
    }
    const values: Value[] = [];
    for (;;) {
      this.#lua.lua_rawgeti(this.#state, -1, values.length + 1);
      const value = this.#pop();
      if (value === undefined) {
        return values;
      }
      values.push(value);
    }
  }

  #pop(): Value {
    const value = this.top();
    this.#lua.lua_settop(this.#state, -2);
    return value;
  }

  /** All memory of Lua. The buffer changes when Lua's memory grows. */
  #bytes(): Buffer {
    if (this.#memory.length === 0) {
      this.#memory = Buffer.from(this.#lua.memory.buffer);
    }
    return this.#memory;
  }
}
