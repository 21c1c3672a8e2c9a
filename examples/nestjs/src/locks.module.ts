import { Inject, Module, type OnApplicationShutdown } from "@nestjs/common";
import { createLocks, type Locks } from "holdfast";
import { connect } from "holdfast/connect";

/** The token under which the application injects its `Locks`. */
export const LOCKS = Symbol("LOCKS");

@Module({
  providers: [
    {
      provide: LOCKS,
      useFactory: async () =>
        createLocks(await connect(process.env.HOLDFAST_URL ?? "redis://127.0.0.1:6379")),
    },
  ],
  exports: [LOCKS],
})
export class LocksModule implements OnApplicationShutdown {
  constructor(@Inject(LOCKS) private readonly locks: Locks) {}

  /** Releases all leases, and closes the connection that `connect` has opened. */
  async onApplicationShutdown(): Promise<void> {
    await this.locks.close();
  }
}
