import Redlock, { ExecutionError } from "redlock";
import type { Contestant } from "../contestant.ts";
import { withOwnRetries, withSingleAttempts } from "./redlock-family.ts";

const library = { create: (clients: any[]) => new Redlock(clients), ExecutionError };

export const redlock: Contestant = withOwnRetries(library);
export const redlockTries: Contestant = withSingleAttempts(library);
