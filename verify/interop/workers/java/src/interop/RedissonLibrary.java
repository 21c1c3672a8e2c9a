package interop;

import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The locks of Redisson, with a lease time instead of its watchdog. */
final class RedissonLibrary implements LockLibrary {
  private final String kind;
  private final RedissonClient client;
  private RLock held;

  RedissonLibrary(String kind, int port) {
    this.kind = kind;
    Config config = new Config().setThreads(2).setNettyThreads(2);
    config
        .useSingleServer()
        .setAddress("redis://127.0.0.1:" + port)
        .setConnectionMinimumIdleSize(1)
        .setConnectionPoolSize(4)
        .setSubscriptionConnectionMinimumIdleSize(1)
        .setSubscriptionConnectionPoolSize(2);
    client = Redisson.create(config);
  }

  @Override
  public Grant acquire(String key, long ttlMs, long waitMs) throws Exception {
    RLock lock = lockOf(key);
    Grant grant;
    if (lock instanceof RFencedLock fenced) {
      Long token = fenced.tryLockAndGetToken(waitMs, ttlMs, TimeUnit.MILLISECONDS);
      grant = token == null ? null : new Grant(token);
    } else {
      grant = lock.tryLock(waitMs, ttlMs, TimeUnit.MILLISECONDS) ? Grant.WITHOUT_TOKEN : null;
    }
    if (grant != null) {
      held = lock;
    }
    return grant;
  }

  private RLock lockOf(String key) {
    return switch (kind) {
      case "redisson" -> client.getLock(key);
      case "redisson-fenced" -> client.getFencedLock(key);
      case "redisson-fair" -> client.getFairLock(key);
      case "redisson-spin" -> client.getSpinLock(key);
      case "redisson-write" -> client.getReadWriteLock(key).writeLock();
      case "redisson-read" -> client.getReadWriteLock(key).readLock();
      default -> throw new IllegalArgumentException("unknown lock of Redisson: " + kind);
    };
  }

  @Override
  public boolean release() {
    try {
      held.unlock();
      return true;
    } catch (IllegalMonitorStateException error) {
      return false;
    }
  }

  @Override
  public void close() {
    client.shutdown();
  }
}
