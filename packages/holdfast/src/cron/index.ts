export { oncePerFire, type OncePerFireOptions } from "./once-per-fire.ts";
export {
  runCoordinator,
  type CoordinatedRun,
  type RunCoordinator,
  type RunCoordinatorOptions,
} from "./run-coordinator.ts";
