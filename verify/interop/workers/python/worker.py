"""The worker of the Python libraries, with the line protocol of verify/interop/README.md.

python3 worker.py LIBRARY PORT
"""

import sys
import time

from redis import Redis
from redis.exceptions import LockError


class RedisPy:
    """The Lock of redis-py, which polls every 100 ms."""

    def __init__(self, port):
        self._client = Redis(port=port)
        self._held = None

    def acquire(self, key, ttl_ms, wait_ms):
        lock = self._client.lock(key, timeout=ttl_ms / 1000)
        if not lock.acquire(blocking_timeout=wait_ms / 1000):
            return None
        self._held = lock
        return "-"

    def release(self):
        try:
            self._held.release()
            return True
        except LockError:
            return False

    def extend(self, ttl_ms):
        try:
            self._held.extend(ttl_ms / 1000, replace_ttl=True)
            return "-"
        except LockError:
            return None


class PythonRedisLock:
    """python-redis-lock. A wait has no limit, because the library refuses limits above the TTL."""

    def __init__(self, port):
        self._client = Redis(port=port)
        self._held = None

    def acquire(self, key, ttl_ms, wait_ms):
        from redis_lock import Lock

        lock = Lock(self._client, key, expire=max(1, ttl_ms // 1000))
        if not lock.acquire():
            return None
        self._held = lock
        return "-"

    def release(self):
        from redis_lock import NotAcquired

        try:
            self._held.release()
            return True
        except NotAcquired:
            return False

    def extend(self, ttl_ms):
        from redis_lock import NotAcquired

        try:
            self._held.extend(max(1, ttl_ms // 1000))
            return "-"
        except NotAcquired:
            return None


class Pottery:
    """The Redlock of pottery, with one server. `locked()` is its remaining validity in seconds."""

    def __init__(self, port):
        self._client = Redis(port=port)
        self._held = None

    def acquire(self, key, ttl_ms, wait_ms):
        from pottery import Redlock

        lock = Redlock(key=key, masters={self._client}, auto_release_time=ttl_ms / 1000)
        if not lock.acquire(timeout=wait_ms / 1000):
            return None
        self._held = lock
        return self._valid_until()

    def _valid_until(self):
        at = now()
        return f"{at + self._held.locked() * 1000:.3f}"

    def release(self):
        from pottery import ReleaseUnlockedLock

        try:
            self._held.release()
            return True
        except ReleaseUnlockedLock:
            return False

    def extend(self, ttl_ms):
        from pottery import ExtendUnlockedLock

        try:
            self._held.extend()
            return self._valid_until()
        except ExtendUnlockedLock:
            return None


LIBRARIES = {"redis-py": RedisPy, "python-redis-lock": PythonRedisLock, "pottery": Pottery}


def now():
    """Milliseconds of the monotonic clock that all processes of the machine share."""
    return time.monotonic_ns() / 1e6


def reply(library, words):
    sent = now()
    try:
        if words[0] == "acquire":
            valid_until = library.acquire(words[1], int(words[2]), int(words[3]))
            at = now()
            if valid_until is None:
                return f"refused {sent:.3f} {at:.3f}"
            return f"granted {sent:.3f} {at:.3f} {valid_until} -"
        if words[0] == "release":
            was_held = library.release()
            return f"released {sent:.3f} {now():.3f} {str(was_held).lower()}"
        if words[0] == "extend":
            valid_until = library.extend(int(words[1]))
            at = now()
            if valid_until is None:
                return f"refused {sent:.3f} {at:.3f}"
            return f"extended {sent:.3f} {at:.3f} {valid_until}"
        raise ValueError(f"unknown request: {words[0]}")
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return f"error {sent:.3f} {now():.3f} {text}"


def main():
    library = LIBRARIES[sys.argv[1]](int(sys.argv[2]))
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        print(reply(library, words), flush=True)


main()
