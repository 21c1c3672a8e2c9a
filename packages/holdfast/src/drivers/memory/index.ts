export { memory, type MemoryOptions } from "./driver.ts";
