#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A load, so many requests a second, until it is ended: load.py http PORT PATH PER_S | redis PORT PER_S | redis-step PORT |
prepare PORT PER_S (in PostgreSQL)."""
import http.client
import itertools
import socket
import subprocess
import sys
import time

what, port, rest = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def paced(per_s):
    """In groups of a tenth of a second."""
    begin = time.monotonic()
    for number in itertools.count():
        wait = begin + (number // max(per_s // 10, 1)) / 10 - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        yield number


if what == "http":
    for _ in paced(int(rest[1])):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", rest[0])
            connection.getresponse().read()
            connection.close()
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
elif what == "prepare":
    psql = subprocess.Popen(["psql", "-qAt", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "postgres"],
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for number in paced(int(rest[0])):
        psql.stdin.write(f"PREPARE p{number} AS SELECT relname, relkind, nspname FROM pg_class JOIN pg_namespace n ON n.oid = "
                         f"relnamespace WHERE relname = $1;\nEXECUTE p{number}('a');\n")
        psql.stdin.flush()
else:
    with socket.create_connection(("127.0.0.1", port)) as server:
        def ask(*words):
            server.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
            server.recv(4096)

        if what == "redis":
            for number in paced(int(rest[0])):
                ask(b"SET", b"user:%d" % number, b"x" * 1500)
        else:
            for key in range(12000):
                ask(b"SET", b"user:%d" % key, b"x" * 1500)
            for number in paced(200):
                ask(b"GET", b"user:%d" % (number % 12000))
