#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bomb.py KIND MEBIBYTES >FILE: a small gzip of a valid profile that unpacks to so much and takes far more.

bomb.py run LIMIT_MEBIBYTES COMMAND...: runs the command; prints its exit status and its largest resident MiB.
"""
import gzip
import resource
import subprocess
import sys


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def number(field, n):
    return varint(field << 3) + varint(n)


HEAD = (message(1, number(1, 1) + number(2, 2)) + message(6, b"") + message(6, b"inuse_space") + message(6, b"bytes")
    + message(6, b"f") + message(5, number(1, 1) + number(2, 3)) + message(4, number(1, 1) + message(4, number(1, 1))))
SAMPLE = number(1, 1) + number(2, 1)


def entries(kind, size):
    """Pieces of a profile of about that size."""
    if kind == "labels":  # one sample, all labels
        label = message(3, number(1, 1) + number(3, 5))
        yield message(2, SAMPLE + label * (size // len(label)))
    elif kind == "samples":  # told apart by a label
        for i in range(size // 14):
            yield message(2, SAMPLE + message(3, number(1, 1) + number(3, i + 1)))
    elif kind == "locations":
        for i in range(size // 8):
            yield message(4, number(1, i + 2) + number(3, i + 2))
    elif kind == "strings":
        yield message(6, b"") * (size // 2)
    elif kind == "functions":  # each a frame of its own
        for i in range(size // 60):
            yield message(6, b"f%d" % i) + message(5, number(1, i + 2) + number(2, i + 4))
            yield message(4, number(1, i + 2) + message(4, number(1, i + 2))) + message(2, number(1, i + 2) + number(2, 1))
    elif kind == "deep":  # long stacks that begin differently: a tree of as many nodes
        depth = 100000
        for i in range(2, 2 + 100):
            yield message(5, number(1, i) + number(2, 3 if i < 50 else 2)) + message(4, number(1, i) + number(3, i) + message(4, number(1, i)))
        for i in range(size // depth):
            stack = b"".join(varint(1 + (i >> bit & 1)) for bit in range(20)) + bytes([1, 50 + i % 50]) * (depth // 2)
            yield message(2, message(1, stack) + number(2, 1))
    elif kind == "product":  # a location of many lines, many times in one stack
        count = size // 8
        yield message(4, number(1, 2) + message(4, number(1, 1)) * count)
        yield message(2, message(1, b"\2" * count) + number(2, 1))
    elif kind == "names":  # a long name in each row
        yield message(6, b"n" * (size // 2)) + message(5, number(1, 2) + number(2, 4)) + message(4, number(1, 2) + message(4, number(1, 2)))
        for i in range(1000):
            if i < 100:  # with more places than that the text itself is too much
                yield message(5, number(1, 3 + i) + number(2, 3) + number(4, 4))
            yield message(2, message(1, b"\2" * (i + 1)) + number(2, 1))


def main():
    if sys.argv[1] == "run":
        limit = int(sys.argv[2]) << 20
        done = subprocess.run(sys.argv[3:], stdout=subprocess.DEVNULL, timeout=120,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (100, 100)))
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        print(done.returncode, largest >> 20)
        sys.exit(0 if largest <= limit else f"{largest >> 20} MiB resident, more than {limit >> 20}")
    with gzip.GzipFile(fileobj=sys.stdout.buffer, mode="wb", compresslevel=1, mtime=0) as out:
        out.write(HEAD)
        for piece in entries(sys.argv[1], int(sys.argv[2]) << 20):
            out.write(piece)


main()
