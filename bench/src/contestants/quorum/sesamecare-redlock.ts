import { ExecutionError, Redlock } from "@sesamecare-oss/redlock";
import type { Contestant } from "../contestant.ts";
import { byItsRetries, bySingleTries } from "./redlock-family.ts";

const library = { create: (clients: any[]) => new Redlock(clients), ExecutionError };

export const sesamecare: Contestant = byItsRetries(library);
export const sesamecareTries: Contestant = bySingleTries(library);
