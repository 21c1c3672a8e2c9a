/** Bundles the command line into a folder; its program is `main.cjs` there. */
export declare function bundleCli(outdir?: string): Promise<void>;
