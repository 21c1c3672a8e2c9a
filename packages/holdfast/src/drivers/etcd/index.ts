export { etcd } from "./driver.ts";
export type { EtcdOptions } from "./options.ts";
