import { hasEtcd } from "@holdfast/test-kit/engines";

import { describeWith } from "./servers.ts";

export {
  startEtcd,
  startEtcdCluster,
  type EtcdCluster,
  type EtcdMember,
  type EtcdServer,
} from "@holdfast/test-kit/engines";

/** `describe` for tests that need etcd. */
export const onEtcd: ReturnType<typeof describeWith> = describeWith("etcd", hasEtcd);
