import { BaseSequencer } from "vitest/node";

export declare const slowTests: readonly string[];
export default class SlowTestsFirst extends BaseSequencer {}
