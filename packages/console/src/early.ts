import { applyTheme, savedTheme } from "./theme.ts";

// Runs before the first paint, so that a chosen theme does not flash.
applyTheme(savedTheme());
