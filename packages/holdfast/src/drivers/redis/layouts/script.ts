export type { Script } from "../protocol/script.ts";
