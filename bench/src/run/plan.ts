import type { ResolvedOptions } from "../options.ts";
import { engines, type Engine } from "../engines/engine.ts";
import { rivals, rivalsOf } from "./engine-contestants.ts";
import { hasQuorum, withKinds, withVariants, semaphoresOf, type ContestantName } from "./contestant-list.ts";
import { quickSizes, fullSizes, type Sizes } from "./sizes.ts";
import type { Suite } from "../suites/suite.ts";
import type { SuiteName } from "../report/suite-names.ts";
import { capacity } from "../suites/capacity.ts";
import { churn } from "../suites/churn.ts";
import { commandLine } from "../suites/command-line.ts";
import { hot } from "../suites/hot.ts";
import { kinds } from "../suites/kinds.ts";
import { latency, redlockLatency } from "../suites/latency.ts";
import { memory } from "../suites/memory.ts";
import { redlockHot } from "../suites/redlock-hot.ts";
import { redlockUncontended } from "../suites/redlock-uncontended.ts";
import { renewals } from "../suites/renewals.ts";
import { service } from "../suites/service.ts";
import { readWrite, semaphore } from "../suites/shared.ts";
import { skew } from "../suites/skew.ts";
import { takeover } from "../suites/takeover.ts";
import { uncontended } from "../suites/uncontended.ts";
import { waiting } from "../suites/waiting.ts";
import type { Timing } from "../measure/window.ts";

type PlanOptions = Pick<
  ResolvedOptions,
  "suites" | "peers" | "only" | "quick" | "rounds" | "measureMs" | "minutes"
>;

/** The requested suites. */
export function plan(options: PlanOptions): readonly Suite[] {
  const suites = byName(options, sizesFor(options));
  const requested = options.only ?? ["raw", ...options.peers, "holdfast", ...rivals];
  return options.suites.map((name) => withOnly(availableOnly(suites[name](), requested), options.only));
}

type SuiteFactories = Readonly<Record<SuiteName, () => Suite>>;

function byName({ peers, ...options }: PlanOptions, sizes: Sizes): SuiteFactories {
  const rounds = options.rounds ?? sizes.rounds;
  const redlockRounds = options.rounds ?? sizes.redlockRounds;
  const all: readonly ContestantName[] = ["raw", ...peers, "holdfast"];
  const withStrict: readonly ContestantName[] = [...all, "holdfast-strict"];
  const voting = all.filter(hasQuorum);
  const votingFar = voting.map((one): ContestantName => (one === "holdfast" ? "holdfast-far" : one));
  return {
    uncontended: () => uncontended(all, sizes.uncontended, rounds),
    hot: () => hot(withStrict, sizes.hot, rounds),
    skew: () => skew(all, sizes.skew, rounds),
    waiting: () => waiting(withStrict, sizes.waiting, rounds),
    renewals: () => renewals(all, sizes.renewals, rounds),
    takeover: () => takeover(withStrict, sizes.takeover, rounds),
    latency: () => latency(all, sizes.latency, rounds),
    kinds: () => kinds(withKinds(all), sizes.kinds, rounds),
    "read-write": () => readWrite([...all, "holdfast-read-write"], sizes.shared, rounds),
    semaphore: () => semaphore(semaphoresOf(all), sizes.shared, rounds),
    memory: () => memory(all, sizes.memory, rounds),
    churn: () => churn(["raw", "holdfast"], sizes.churn, 1),
    capacity: () => capacity(["holdfast"], sizes.capacity, rounds),
    service: () => service(["bare-http", "holdfast", "holdfast-service"], sizes.service, rounds),
    "command-line": () => commandLine(["holdfast"], sizes.commandLineStarts, rounds),
    "redlock-uncontended": () => redlockUncontended(voting, sizes.redlockUncontended, redlockRounds),
    "redlock-hot": () => redlockHot(withVariants(voting), sizes.redlockHot, redlockRounds),
    "redlock-latency": () => redlockLatency(votingFar, sizes.redlockLatency, redlockRounds),
    ...onEngines(sizes, rounds),
  };
}

type EngineFactories = Pick<SuiteFactories, `${Engine}-${"uncontended" | "hot"}`>;

function onEngines(sizes: Sizes, rounds: number): EngineFactories {
  const factories = engines.flatMap((engine) => {
    const all: readonly ContestantName[] = [...rivalsOf[engine], "holdfast"];
    return [
      [`${engine}-uncontended`, () => uncontended(all, sizes.engineUncontended, rounds, engine)],
      [`${engine}-hot`, () => hot(all, sizes.engineHot, rounds, engine)],
    ] as const;
  });
  return Object.fromEntries(factories) as EngineFactories;
}

/** The sizes of the suites, with the requested durations. */
function sizesFor({ quick, measureMs, minutes }: PlanOptions): Sizes {
  const sizes = quick ? quickSizes : fullSizes;
  const timing = (options: Timing): Timing => ({ ...options, measureMs: measureMs ?? options.measureMs });
  const timed = <Size extends { readonly timing: Timing }>(size: Size): Size => ({
    ...size,
    timing: timing(size.timing),
  });
  return {
    ...sizes,
    uncontended: timed(sizes.uncontended),
    hot: timed(sizes.hot),
    skew: timed(sizes.skew),
    waiting: timed(sizes.waiting),
    latency: timed(sizes.latency),
    kinds: timing(sizes.kinds),
    shared: timed(sizes.shared),
    churn: { ...sizes.churn, minutes: minutes ?? sizes.churn.minutes },
    service: timing(sizes.service),
    redlockUncontended: timed(sizes.redlockUncontended),
    redlockHot: timed(sizes.redlockHot),
    engineUncontended: timed(sizes.engineUncontended),
    engineHot: timed(sizes.engineHot),
    redlockLatency: timed(sizes.redlockLatency),
  };
}

/** A contestant that cannot run the suite has no turn. If the contestant was requested, the tables state the reason. */
function availableOnly(suite: Suite, requested: readonly ContestantName[]): Suite {
  const absent = suite.absent
    .map(({ contestants, reason }) => ({
      contestants: contestants.filter((one) => requested.includes(one)),
      reason,
    }))
    .filter(({ contestants }) => contestants.length > 0);
  const missing = absent.flatMap(({ contestants }) => contestants);
  return { ...suite, absent, contestants: suite.contestants.filter((one) => !missing.includes(one)) };
}

function withOnly(suite: Suite, only: readonly ContestantName[] | null): Suite {
  return only === null
    ? suite
    : { ...suite, contestants: suite.contestants.filter((one) => only.includes(one)) };
}
