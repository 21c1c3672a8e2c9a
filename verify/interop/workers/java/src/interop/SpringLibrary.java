package interop;

import java.time.Duration;
import java.util.ConcurrentModificationException;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.integration.support.locks.DistributedLock;

/** The RedisLockRegistry of Spring Integration, with the registry key "interop". */
final class SpringLibrary implements LockLibrary {
  private static final String REGISTRY_KEY = "interop";

  private final LettuceConnectionFactory connections;
  private final RedisLockRegistry registry;
  private DistributedLock held;

  SpringLibrary(String kind, int port) {
    connections = connect(port);
    registry = new RedisLockRegistry(connections, REGISTRY_KEY);
    registry.setRedisLockType(kind.equals("spring-spin") ? RedisLockType.SPIN_LOCK : RedisLockType.PUB_SUB_LOCK);
  }

  static LettuceConnectionFactory connect(int port) {
    LettuceConnectionFactory connections =
        new LettuceConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port));
    connections.afterPropertiesSet();
    connections.start();
    return connections;
  }

  @Override
  public Grant acquire(String key, long ttlMs, long waitMs) throws Exception {
    DistributedLock lock = registry.obtain(key);
    if (!lock.tryLock(Duration.ofMillis(waitMs), Duration.ofMillis(ttlMs))) {
      return null;
    }
    held = lock;
    return Grant.WITHOUT_TOKEN;
  }

  @Override
  public boolean release() {
    try {
      held.unlock();
      return true;
    } catch (ConcurrentModificationException | IllegalStateException error) {
      return false;
    }
  }

  @Override
  public void close() {
    registry.destroy();
    connections.destroy();
  }
}
