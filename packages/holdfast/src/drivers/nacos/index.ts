export { nacos } from "./driver.ts";
export type { NacosOptions } from "./options.ts";
