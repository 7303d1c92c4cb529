#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growth_traces.py BUILD FOLDER [SECONDS]: writes down all allocations of some steady programs, for bench/growth_replay.c.

Nothing here leaks: a cache that is full (redis), keys that come and expire (redis), lists that are built and dropped (Python),
cycles that only Python's collector frees, and a database in memory whose oldest rows are deleted (sqlite).
"""
import os
import random
import socket
import subprocess
import sys
import threading
import time

LISTS = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
rows, begin = [], time.monotonic()
def read_row(number):
    return {"number": number, "name": "row %d" % number, "body": bytes(16000)}
while time.monotonic() < end:
    for number in range(50):
        rows.append(read_row(number))
    if time.monotonic() - begin > 3:
        rows, begin = [], time.monotonic()
    time.sleep(0.01)
"""
CYCLES = """
import json, random, sys, time
end = time.monotonic() + float(sys.argv[1])
text = json.dumps({"items": [{"id": i, "tags": ["a%d" % i, "b%d" % i], "price": i / 3} for i in range(10)]})
class Node:
    def __init__(self, parent, item):
        self.parent, self.item, self.children = parent, item, []
def parse():
    root = Node(None, None)
    for item in json.loads(text)["items"]:
        root.children.append(Node(root, item))
    root.body = bytes(random.randrange(100000))
    return root
cache = {}
while time.monotonic() < end:
    for _ in range(3):
        cache[random.randrange(60)] = parse()
    time.sleep(0.01)
"""
TABLE = """CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, at INT, body BLOB);
CREATE INDEX IF NOT EXISTS log_at ON log (at);
"""


def paced(seconds, per_s):
    begin = time.monotonic()
    number = 0
    while time.monotonic() - begin < seconds:
        time.sleep(max(0, begin + number / per_s - time.monotonic()))
        yield number
        number += 1


def words(*parts):
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def drain(server):
    try:
        while server.recv(65536):
            pass
    except OSError:
        pass


def redis(run, seconds, make, options=(), at_once=0):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = run(["redis-server", "--port", str(port), "--save", "", *options])
    for _ in range(200):
        try:
            client = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            time.sleep(0.05)
    threading.Thread(target=drain, args=(client,), daemon=True).start()
    for number in range(at_once):
        client.sendall(make(number))
    for number in paced(seconds, 50):
        client.sendall(b"".join(make(number * 60 + i) for i in range(60)))
    subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], check=False, stdout=subprocess.DEVNULL)
    server.wait()


def cache(run, seconds):
    redis(run, seconds, lambda number: words(b"SET", b"page:%d" % random.randrange(10**9), b"x" * random.randrange(8000)),
          ("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), 30000)


def churn(run, seconds):
    def make(number):
        kind, key = number % 4, b"%d" % random.randrange(5000)
        if kind == 0:
            return words(b"SET", b"session:" + key, b"x" * random.randrange(24000), b"PX", b"%d" % random.randrange(200, 6000))
        if kind == 1:
            return words(b"LPUSH", b"queue:%d" % (number % 7), b"y" * random.randrange(4000))
        if kind == 2:
            return words(b"HSET", b"user:%d" % (number % 300), b"field%d" % random.randrange(20), b"z" * random.randrange(2000))
        return words(b"LTRIM", b"queue:%d" % ((number - 2) % 7), b"0", b"%d" % random.randrange(500, 3000))
    redis(run, seconds, make)


def sqlite(run, seconds):
    shell = run(["sqlite3", ":memory:"], stdin=subprocess.PIPE)
    shell.stdin.write(TABLE.encode())
    for number in paced(seconds, 20):
        shell.stdin.write(b"INSERT INTO log (at, body) SELECT random() %% 1000, randomblob(abs(random()) %% 3000) FROM "
                          b"generate_series(1, 150);\n"
                          b"DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - 8000;\n"
                          b"SELECT at, group_concat(length(body)) FROM log WHERE at %% 50 = %d GROUP BY at ORDER BY 2 LIMIT 2;\n"
                          % (number % 50))
        shell.stdin.flush()
    shell.stdin.close()
    shell.wait()


def python(program):
    def trace(run, seconds):
        run(["/usr/bin/python3", "-c", program, str(seconds)], PYTHONMALLOC="malloc").wait()
    return trace


def main():
    build, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 120
    os.makedirs(folder, exist_ok=True)
    random.seed(1)

    def record(name, trace):
        def run(command, stdin=subprocess.DEVNULL, **env):
            return subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, cwd=folder, env={
                **os.environ, **env, "LD_PRELOAD": f"{build}/bench/growth_log.so", "GROWTH_LOG": f"{folder}/{name}"})
        trace(run, seconds)
        print(f"{name}: {os.path.getsize(f'{folder}/{name}') / 2**20:.0f} MiB of events", flush=True)

    traces = {"cache": cache, "churn": churn, "lists": python(LISTS), "cycles": python(CYCLES), "sqlite": sqlite}
    threads = [threading.Thread(target=record, args=pair) for pair in traces.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
