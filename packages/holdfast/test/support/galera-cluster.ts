import { hasGalera } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export { startGalera, type GaleraCluster } from "@holdfast/test-kit/engines";

/** `describe` for tests that need a Galera cluster of MariaDB servers. */
export const onGalera: ReturnType<typeof describeWith> = describeWith("Galera", hasGalera);
