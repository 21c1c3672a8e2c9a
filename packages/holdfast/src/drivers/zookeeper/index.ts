export { zookeeper } from "./driver.ts";
export type { ZooKeeperOptions } from "./options.ts";
