/** The few parts of WebAssembly that run Lua: the types of Node have none. */
declare namespace WebAssembly {
  type Exports = Readonly<Record<string, unknown>>;

  class Module {
    static imports(module: Module): readonly { readonly module: string; readonly name: string }[];
    constructor(bytes: Uint8Array);
  }

  class Instance<T = Exports> {
    readonly exports: T;
    constructor(module: Module, imports: Readonly<Record<string, Exports>>);
  }

  interface Memory {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }

  interface Table {
    get(index: number): unknown;
    set(index: number, value: unknown): void;
    grow(count: number): number;
  }
}
