<?php
// The worker of the PHP libraries, with the line protocol of verify/interop/README.md.
//
//   php worker.php LIBRARY PORT

require_once 'Predis/autoload.php';
require_once 'Illuminate/Cache/autoload.php';
require_once 'Symfony/Component/Lock/autoload.php';

/** The lock of Laravel's cache, which `Cache::lock` creates. Its connection passes each call to Predis unchanged. Its TTL has whole seconds. */
final class LaravelLock
{
    private Predis\Client $client;
    private ?Illuminate\Cache\RedisLock $held = null;

    public function __construct(int $port)
    {
        $this->client = new Predis\Client(['host' => '127.0.0.1', 'port' => $port, 'read_write_timeout' => -1]);
    }

    public function acquire(string $key, int $ttlMs, int $waitMs): ?string
    {
        $lock = new Illuminate\Cache\RedisLock($this->client, $key, max(1, intdiv($ttlMs, 1000)));
        try {
            $lock->block(intdiv($waitMs, 1000));
        } catch (Illuminate\Contracts\Cache\LockTimeoutException) {
            return null;
        }
        $this->held = $lock;
        return '-';
    }

    public function release(): bool
    {
        return $this->held->release();
    }

    public function extend(int $ttlMs): ?string
    {
        throw new BadMethodCallException();
    }
}

/** The lock of Symfony with its store for Redis. Its own blocking acquire fails after a wait of one TTL, so the worker polls every 100 ms. */
final class SymfonyLock
{
    private Predis\Client $client;
    private ?Symfony\Component\Lock\Lock $held = null;

    public function __construct(int $port)
    {
        $this->client = new Predis\Client(['host' => '127.0.0.1', 'port' => $port, 'read_write_timeout' => -1]);
    }

    public function acquire(string $key, int $ttlMs, int $waitMs): ?string
    {
        $store = new Symfony\Component\Lock\Store\RedisStore($this->client, $ttlMs / 1000);
        $lock = new Symfony\Component\Lock\Lock(new Symfony\Component\Lock\Key($key), $store, $ttlMs / 1000, false);
        $deadline = now() + $waitMs;
        while (!$lock->acquire()) {
            if (now() > $deadline) {
                return null;
            }
            usleep(100_000);
        }
        $this->held = $lock;
        return $this->validUntil();
    }

    private function validUntil(): string
    {
        return sprintf('%.3F', now() + $this->held->getRemainingLifetime() * 1000);
    }

    /** The release does not report whether the lock was still held. */
    public function release(): bool
    {
        $wasHeld = $this->held->isAcquired();
        $this->held->release();
        return $wasHeld;
    }

    public function extend(int $ttlMs): ?string
    {
        try {
            $this->held->refresh($ttlMs / 1000);
            return $this->validUntil();
        } catch (Symfony\Component\Lock\Exception\LockConflictedException) {
            return null;
        }
    }
}

/** Milliseconds of the monotonic clock that all processes of the machine share. */
function now(): float
{
    return hrtime(true) / 1e6;
}

function reply(object $library, array $words): string
{
    $sent = now();
    try {
        switch ($words[0]) {
            case 'acquire':
                $validUntil = $library->acquire($words[1], (int) $words[2], (int) $words[3]);
                $at = now();
                return $validUntil === null
                    ? sprintf('refused %.3F %.3F', $sent, $at)
                    : sprintf('granted %.3F %.3F %s -', $sent, $at, $validUntil);
            case 'release':
                $wasHeld = $library->release();
                return sprintf('released %.3F %.3F %s', $sent, now(), $wasHeld ? 'true' : 'false');
            case 'extend':
                $validUntil = $library->extend((int) $words[1]);
                return $validUntil === null
                    ? sprintf('refused %.3F %.3F', $sent, now())
                    : sprintf('extended %.3F %.3F %s', $sent, now(), $validUntil);
        }
        throw new InvalidArgumentException("unknown request: {$words[0]}");
    } catch (BadMethodCallException) {
        return 'unsupported';
    } catch (Throwable $error) {
        return sprintf('error %.3F %.3F %s', $sent, now(), preg_replace('/\s+/', ' ', (string) $error->getMessage()));
    }
}

error_reporting(E_ALL & ~E_DEPRECATED);
$library = ['laravel' => LaravelLock::class, 'symfony' => SymfonyLock::class][$argv[1]];
$library = new $library((int) $argv[2]);
echo "ready\n";
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    if ($words[0] === 'quit') {
        break;
    }
    echo reply($library, $words), "\n";
}
