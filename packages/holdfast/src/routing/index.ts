export { createRing, type Ring, type RingOptions } from "./ring.ts";
