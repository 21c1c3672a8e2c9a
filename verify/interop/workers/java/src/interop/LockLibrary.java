package interop;

/** One library, with at most one held lock. All calls come from one thread, because some libraries identify the holder by its thread. */
interface LockLibrary {
  /** The result of an acquisition. */
  record Grant(Long fencingToken) {
    static final Grant WITHOUT_TOKEN = new Grant(null);
  }

  /** @return null if the wait ended first */
  Grant acquire(String key, long ttlMs, long waitMs) throws Exception;

  /** @return false if the library reports that the lock was no longer held */
  boolean release() throws Exception;

  /** @return false if the library reports that the lock was no longer held */
  default boolean extend(long ttlMs) throws Exception {
    throw new UnsupportedOperationException("this library has no extension");
  }

  void close();
}
