package interop;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock, with the default prefix and environment. ShedLock does not wait, so the worker tries again every 50 ms. */
final class ShedLockLibrary implements LockLibrary {
  private static final long RETRY_MS = 50;

  private final LettuceConnectionFactory connections;
  private final RedisLockProvider provider;
  private SimpleLock held;

  ShedLockLibrary(String kind, int port) {
    connections = SpringLibrary.connect(port);
    provider =
        new RedisLockProvider.Builder(connections).safeUpdate(kind.equals("shedlock-safe")).build();
  }

  @Override
  public Grant acquire(String key, long ttlMs, long waitMs) throws InterruptedException {
    long deadline = System.nanoTime() + waitMs * 1_000_000;
    while (true) {
      Optional<SimpleLock> lock =
          provider.lock(new LockConfiguration(Instant.now(), key, Duration.ofMillis(ttlMs), Duration.ZERO));
      if (lock.isPresent()) {
        held = lock.get();
        return Grant.WITHOUT_TOKEN;
      }
      if (System.nanoTime() > deadline) {
        return null;
      }
      Thread.sleep(RETRY_MS);
    }
  }

  /** ShedLock does not report whether the lock was still held. */
  @Override
  public boolean release() {
    held.unlock();
    return true;
  }

  @Override
  public boolean extend(long ttlMs) {
    Optional<SimpleLock> extended = held.extend(Duration.ofMillis(ttlMs), Duration.ZERO);
    extended.ifPresent(lock -> held = lock);
    return extended.isPresent();
  }

  @Override
  public void close() {
    connections.destroy();
  }
}
