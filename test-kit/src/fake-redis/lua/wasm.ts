import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** The functions of Lua's C interface in use, and those that the compiler adds. Pointers are numbers, and a state is a pointer. */
export interface LuaExports {
  readonly memory: WebAssembly.Memory;
  readonly __indirect_function_table: WebAssembly.Table;
  __wasm_call_ctors(): void;
  emscripten_stack_init(): void;
  setThrew(threw: number, value: number): void;
  stackSave(): number;
  stackRestore(pointer: number): void;
  malloc(size: number): number;
  free(pointer: number): void;
  luaL_newstate(): number;
  luaL_openlibs(L: number): void;
  luaL_loadbuffer(L: number, text: number, length: number, name: number): number;
  luaL_ref(L: number, table: number): number;
  lua_gettop(L: number): number;
  lua_settop(L: number, index: number): void;
  lua_checkstack(L: number, extra: number): number;
  lua_pushvalue(L: number, index: number): void;
  lua_type(L: number, index: number): number;
  lua_tonumber(L: number, index: number): number;
  lua_toboolean(L: number, index: number): number;
  lua_tolstring(L: number, index: number, length: number): number;
  lua_pushnil(L: number): void;
  lua_pushnumber(L: number, value: number): void;
  lua_pushboolean(L: number, value: number): void;
  lua_pushlstring(L: number, text: number, length: number): void;
  lua_pushlightuserdata(L: number, pointer: number): void;
  lua_pushcclosure(L: number, index: number, upvalues: number): void;
  lua_createtable(L: number, entries: number, fields: number): void;
  lua_rawget(L: number, index: number): void;
  lua_rawgeti(L: number, index: number, n: number): void;
  lua_rawset(L: number, index: number): void;
  lua_rawseti(L: number, index: number, n: number): void;
  lua_error(L: number): void;
  lua_pcall(L: number, args: number, results: number, handler: number): number;
}

const pageSize = 65_536;
/** Thrown to leave a protected call, in place of C's longjmp. */
const longJump = new Error("longjmp");

/** Loads the original Lua 5.1, compiled to WebAssembly. The system provides only memory to Lua. */
export function instantiateLua(): LuaExports {
  const file = createRequire(import.meta.url).resolve("wasmoon-lua5.1/dist/liblua5.1.wasm");
  const module = new WebAssembly.Module(readFileSync(file));
  const imports: Record<string, Record<string, unknown>> = {};
  for (const { module: space, name } of WebAssembly.Module.imports(module)) {
    (imports[space] ??= {})[name] = () => {
      throw new Error(`Lua requested ${name}, which this system does not provide`);
    };
  }
  Object.assign(imports["env"] ?? {}, {
    _emscripten_throw_longjmp: () => {
      throw longJump;
    },
    invoke_vii: (index: number, first: number, second: number) => {
      invoke(lua, index, first, second);
    },
    emscripten_memcpy_js: (to: number, from: number, length: number) => {
      new Uint8Array(lua.memory.buffer).copyWithin(to, from, from + length);
    },
    emscripten_resize_heap: (size: number) => {
      lua.memory.grow(Math.ceil((size - lua.memory.buffer.byteLength) / pageSize));
      return 1;
    },
  });
  Object.assign(imports["wasi_snapshot_preview1"] ?? {}, { environ_sizes_get: () => 1 }); // Lua gets no environment variables
  const { exports: lua } = new WebAssembly.Instance<LuaExports>(module, imports);
  lua.emscripten_stack_init();
  lua.__wasm_call_ctors();
  return lua;
}

/** Calls a C function that may end with a long jump. */
function invoke(lua: LuaExports, index: number, first: number, second: number): void {
  const stack = lua.stackSave();
  const call = lua.__indirect_function_table.get(index) as (first: number, second: number) => void;
  try {
    call(first, second);
  } catch (error) {
    lua.stackRestore(stack);
    if (error !== longJump) {
      throw error;
    }
    lua.setThrew(1, 0);
  }
}

/**
 * The module `(import "e" "f" (func (param i32) (result i32))) (export "f" (func 0))` in hex. It turns a JavaScript function into a
 * C function.
 */
const adapter = Buffer.from("0061736d0100000001060160017f017f02070101650166000007050101660000", "hex");

/** Adds a function that Lua can call. @returns its index in the table of C functions */
export function addFunction(lua: LuaExports, called: (L: number) => number): number {
  const { exports } = new WebAssembly.Instance<{ f: unknown }>(new WebAssembly.Module(adapter), {
    e: { f: called },
  });
  const index = lua.__indirect_function_table.grow(1);
  lua.__indirect_function_table.set(index, exports.f);
  return index;
}
