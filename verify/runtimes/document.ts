import { toText, type Results } from "./report.ts";
import type { Client, Server } from "./roster.ts";

/** The page docs/compatibility.md. */
export function document(
  results: Results,
  listed: { readonly clients: readonly Client[]; readonly servers: readonly Server[] },
): string {
  return `${introduction(results.date)}\n\n${toText(results, listed)}\n\n${notes}`;
}

function introduction(date: string): string {
  return `# Compatibility

\`npm run verify:runtimes -- --write\` wrote this page on ${date}. [The command](../verify/runtimes/README.md) installs the packed package in
empty folders, and runs one program in each cell. "Yes" means that the program had every result that it checks:

- It acquires a lock, waits for a lock and gets it by a hand-over, and reports a timeout with the holder.
- A lease is renewed and extended. After an operator's break its signal aborts.
- A semaphore has its limit, and the end of a block releases a lease.
- \`connect(url)\` opens the client library. iovalkey, Valkey GLIDE and Bun's client have no URL: pass the client to \`redis(client)\`.
- After the server has closed all connections, a lock is granted and handed over again.
- After \`close()\` the process ends without an exit call.`;
}

const notes = `## Notes

- **Valkey GLIDE** prints warnings on standard output by default: [settings](drivers/redis.md#valkey-glide).
- **Bun's own \`RedisClient\`** is a client of \`redis()\` too. It exists in Bun only.
- **Versions:** a row or a column names the exact version that ran. The page has no result for other versions of a major version.
- **Node:** 20.19 is the lowest version. \`require("holdfast")\` loads the ES modules, so a process has one copy.
- **Bun** loads the bundle for \`require\` and the ES modules for \`import\`. Two copies work together: \`isLockError\` recognises the errors of
  both. \`instanceof\` does not.
- **Jest** loads the bundle too. [The example in CommonJS](../examples/nestjs/README.md) runs Jest.
- **Deno** needs the packages in \`node_modules\`, and the permissions \`--allow-net\`, \`--allow-env\`, \`--allow-read\` and \`--allow-sys\`.
- **\`await using\`** is a syntax error in the JavaScript of Node 20 and 22. TypeScript compiles it for them. Without TypeScript, use \`withLock\`, or
  release the lease in \`finally\`.
- **TypeScript** compiles with \`skipLibCheck: false\`, \`strict\`, and \`@types/node\` 20. Lower versions than 5.4 do not know \`NoInfer\`.
  TypeScript 7 has no \`node10\`.
- **Replicas and Sentinel:** the command also runs their tests on each server from Redis 7 on (\`--only suites\`). Redis 7.0.15, Redis 8.0.2,
  Valkey 8.1.1 and Valkey 9.1.2 pass. From Redis 7.2 on \`WAIT\` counts differently, and until this was tested a grant with \`minReplicas\` could be
  one that no replica had: [failover](failover.md#minreplicas).
- **Redis Cluster** is not part of the matrix, and must have version 7 or newer.
`;
