export { connect, type ConnectOptions } from "./connect.ts";
