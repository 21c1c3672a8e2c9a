import { ExecutionError, Redlock } from "@sesamecare-oss/redlock";
import type { Contestant } from "../contestant.ts";
import { withOwnRetries, withSingleAttempts } from "./redlock-family.ts";

const library = { create: (clients: any[]) => new Redlock(clients), ExecutionError };

export const sesamecare: Contestant = withOwnRetries(library);
export const sesamecareTries: Contestant = withSingleAttempts(library);
