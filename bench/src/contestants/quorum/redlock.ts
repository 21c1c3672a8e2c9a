import Redlock, { ExecutionError } from "redlock";
import type { Contestant } from "../contestant.ts";
import { byItsRetries, bySingleTries } from "./redlock-family.ts";

const library = { create: (clients: any[]) => new Redlock(clients), ExecutionError };

export const redlock: Contestant = byItsRetries(library);
export const redlockTries: Contestant = bySingleTries(library);
