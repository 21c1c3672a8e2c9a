/** The settings of `redlock`. All times are milliseconds. */
export interface Settings {
  /** Ignored: the library has its own allowance for the drift of clocks. */
  readonly driftFactor: number;
  /** How often a request for a lock is repeated; -1: without end. Together with `retryDelay` it sets the longest wait. */
  readonly retryCount: number;
  readonly retryDelay: number;
  /** Ignored: waiters queue, and do not retry. */
  readonly retryJitter: number;
  /** Must be at least 100 ms below the duration of `using`. A lock of `using` is extended after a third of its duration. */
  readonly automaticExtensionThreshold: number;
}

export const defaultSettings: Settings = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
});

/** The given settings, and those of `defaults` for the others. */
export function settingsFrom(given: Partial<Settings> | undefined, defaults: Settings): Settings {
  const settings = { ...defaults };
  for (const name of Object.keys(defaults) as (keyof Settings)[]) {
    const value = given?.[name];
    if (value === undefined) {
      continue;
    } else if (typeof value !== "number" || Number.isNaN(value)) {
      throw new TypeError(`Expected \`${name}\` to be a number, got ${String(value)}`);
    }
    settings[name] = value;
  }
  return settings;
}

/** How long `redlock` would repeat its request, ms. */
export function waitMsOf({ retryCount, retryDelay }: Settings): number {
  return retryCount === -1 ? Infinity : Math.max(0, retryCount) * Math.max(0, retryDelay);
}

export function checkDuration(duration: number): void {
  if (!Number.isInteger(duration)) {
    throw new Error(`Expected the duration to be an integer of milliseconds, got ${String(duration)}`);
  }
}
