/** Writes the command line's bundle into a folder, beside other files of it; its program is `main.cjs` there. */
export declare function bundleCli(outdir?: string): Promise<void>;
