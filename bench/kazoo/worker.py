"""The process of the contestant `kazoo`: `worker.py <contestant> <topology> <host:port>`.

It answers the requests of src/run/protocol.ts on the channel that Node opens for its children, as lines of JSON. It runs one load: tasks
that acquire and release without pause.
"""

import json
import os
import platform
import socket
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.version import __version__ as kazoo_version

pause_after_failure_s = 0.01
settings = (
    f"kazoo {kazoo_version} on Python {platform.python_version()}: Lock of one KazooClient, "
    "a thread for each task, one object for each key in use"
)


def now_ms():
    """The machine's monotonic clock, which all workers share."""
    return time.monotonic() * 1000


class Task(threading.Thread):
    """Acquires and releases until `running` is cleared, and records its waits and holds since `begin`."""

    def __init__(self, client, number, load, running):
        super().__init__(daemon=True)
        self.client = client
        self.number = number
        self.load = load
        self.running = running
        self.turn = 0
        self.lock = None
        self.waiting_since = None
        self.inside_since = None
        self.begin()

    def begin(self):
        self.waits = []
        self.holds = []
        self.failures = []

    def run(self):
        while self.running.is_set():
            try:
                self.cycle()
            except Exception as error:
                self.waiting_since = None
                self.inside_since = None
                self.failures.append(str(error))
                time.sleep(pause_after_failure_s)
            self.turn += 1

    def cycle(self):
        self.waiting_since = now_ms()
        lock = self.next_lock()
        lock.acquire()
        self.waits.append(now_ms() - self.waiting_since)
        self.waiting_since = None
        if self.load.get("isWatched"):
            self.inside_since = now_ms()
        if self.load["holdMs"] > 0:
            time.sleep(self.load["holdMs"] / 1000)
        self.holds += self.hold()
        self.inside_since = None
        lock.release()

    def next_lock(self):
        """A lock object is reused while the key stays the same."""
        keys = self.load["keys"]
        if keys["by"] == "acquisition":
            return self.client.Lock(f"/by-hand/fresh:{os.getpid()}:{self.number}:{self.turn}")
        name = keys["name"] if keys["by"] == "name" else f"task:{os.getpid()}:{self.number}"
        self.lock = self.lock or self.client.Lock(f"/by-hand/{name}")
        return self.lock

    def hold(self):
        since = self.inside_since
        return [] if since is None else [since, now_ms(), 1]

    def measurement(self):
        since = self.waiting_since
        return {"waitsMs": self.waits, "pendingMs": None if since is None else now_ms() - since}


class Worker:
    def __init__(self, address):
        self.client = KazooClient(hosts=address)
        self.client.start()
        self.running = threading.Event()
        self.tasks = []

    def answer(self, request):
        call = request["call"]
        if call == "start":
            self.start(request["load"])
        elif call == "begin":
            self.begin()
        elif call == "end":
            return {"outcome": "measured", "measurement": self.end()}
        elif call == "stop":
            self.stop()
        else:
            raise ValueError(f"kazoo does not run {call}")
        return {"outcome": "done"}

    def start(self, load):
        self.running.set()
        self.tasks = [Task(self.client, number, load, self.running) for number in range(load["tasks"])]
        for task in self.tasks:
            task.start()

    def begin(self):
        for task in self.tasks:
            task.begin()
        self.started_at = now_ms()
        self.cpu_at_start = time.process_time()

    def end(self):
        elapsed = now_ms() - self.started_at
        failures = [failure for task in self.tasks for failure in task.failures]
        return {
            "elapsedMs": elapsed,
            "cpuMs": (time.process_time() - self.cpu_at_start) * 1000,
            "tasks": [task.measurement() for task in self.tasks],
            "holds": [value for task in self.tasks for value in task.holds + task.hold()],
            "leasesLost": 0,
            "failures": len(failures),
            "firstFailure": failures[0] if failures else None,
        }

    def stop(self):
        self.running.clear()
        for task in self.tasks:
            task.join()


def main(address):
    channel = socket.socket(fileno=int(os.environ["NODE_CHANNEL_FD"]))
    channel.setblocking(True)

    def send(reply):
        channel.sendall(json.dumps(reply).encode() + b"\n")

    try:
        worker = Worker(address)
        send({"outcome": "ready", "settings": settings})
    except Exception as error:
        send({"outcome": "failed", "reason": str(error)})
        return
    for line in channel.makefile("r"):
        try:
            send(worker.answer(json.loads(line)))
        except Exception as error:
            send({"outcome": "failed", "reason": str(error)})


main(sys.argv[3])
