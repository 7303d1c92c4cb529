#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crosscheck.py BUILD: heaptap's estimates against an exact tracer, on the same run of real programs.

heaptrack's library is loaded beside ours: every allocation passes both, and heaptrack writes each down with its stack.
Both name call sites by their addresses, so that neither one's names matter. A site is the four
innermost return addresses; each with more than 1 % of the bytes must lie within the standard errors that its exact sizes
give. What heaptrack allocates for itself is told by its frames and left out.
"""
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contenders import prepare  # noqa: E402
from measure import CLEAN  # noqa: E402
from pprof import Profile  # noqa: E402

DEPTH = 4
PERIOD = 16 << 10
LIMIT = 4.5
FEW = 30
TRIES = 5
TRACER = "libheaptrack_preload"


def programs(folder):
    perl = ("my %h; for my $i (1..60000) { $h{\"key $i\"} = [1..($i % 7 + 1)]; delete $h{'key ' . ($i / 2)} if $i % 2 == 0 } "
            "print join(' ', sort { $a cmp $b } map { \"$_!\" } keys %h) ne '' ? 'ok' : 'no'")
    return [("sqlite3", ["/usr/bin/sqlite3", ":memory:"], {}, f"{folder}/work.0.016.sql"),
            ("python3", ["/usr/bin/python3", f"{folder}/work.py", "1", "20000"], {"PYTHONMALLOC": "malloc"}, None),
            ("perl", ["/usr/bin/perl", "-e", perl], {}, None)]


def exact(path):
    """{site: {size: count}} from heaptrack's raw file: `t IP PARENT` defines a stack, `+ SIZE STACK POINTER` uses it."""
    text = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout.decode("utf-8", "replace")
    address, parent, sites = [0], [0], defaultdict(lambda: defaultdict(int))
    known = {}
    for line in text.split("\n"):
        if line.startswith("t "):
            _, ip, up = line.split()
            address.append(int(ip, 16))
            parent.append(int(up, 16))
        elif line.startswith("+ "):
            _, size, stack, _ = line.split()
            at = stack = int(stack, 16)
            if stack not in known:
                site = []
                while at and len(site) < DEPTH:
                    site.append(address[at])
                    at = parent[at]
                known[stack] = tuple(site)
            sites[known[stack]][int(size, 16)] += 1
    return sites


def estimated(profile):
    """{site: [objects, bytes]}"""
    sites = defaultdict(lambda: [0, 0])
    for row in profile.rows:
        if any(TRACER in profile.mapping_name.get(profile.location_mapping[l], "") for l in row.locations):
            continue
        site = tuple(profile.location_address[l] for l in row.locations[:DEPTH])
        sites[site][0] += row.values[0]
        sites[site][1] += row.values[1]
    return sites


def compare(name, truth, estimates):
    total = sum(size * count for sizes in truth.values() for size, count in sizes.items())
    looked = held = wrong = 0
    worst = 0.0
    for site, sizes in truth.items():
        if sum(s * c for s, c in sizes.items()) < total / 100:
            continue
        for column in (0, 1):
            wanted = variance = skewed = 0.0
            for size, count in sizes.items():
                p, scale = -math.expm1(-max(size, 1) / PERIOD), size if column else 1
                part = count * (1 - p) / p * scale * scale
                wanted += count * scale
                variance += part
                skewed += part * part / (count * p)
            if not skewed or variance * variance / skewed < FEW:
                continue
            z = (estimates[site][column] - wanted) / math.sqrt(variance)
            looked, held, worst = looked + 1, held + (abs(z) < 1.96), max(worst, abs(z))
            if abs(z) > LIMIT:
                wrong += 1
                print(f"WRONG {name}, {' '.join(map(hex, site))}: {('objects', 'bytes')[column]} "
                      f"{estimates[site][column]}, heaptrack {wanted:.0f}, {z:+.1f} standard errors")
    bytes_seen = sum(e[1] for e in estimates.values())
    print(f"{name:10} heaptrack {total} bytes, heaptap {bytes_seen} ({100 * (bytes_seen / total - 1):+.2f} %); {looked} figures "
          f"of sites above 1 %: {held} within 1.96 standard errors, the farthest at {worst:.2f}")
    if not looked:
        print(f"WRONG {name}: nothing to compare")
    return wrong + (not looked)


def record(build, out, command, environment, stdin):
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    with open(stdin or os.devnull, "rb") as file:
        subprocess.run([f"{build}/heaptap", "record", "-q", "-p", str(PERIOD), "-o", f"{out}/%e.%p.pb.gz",
                        "heaptrack", "-r", "-o", f"{out}/exact", *command], stdin=file, timeout=120, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**CLEAN, **environment})


def check(build, folder, name, command, environment, stdin):
    """A run in which stacks were lost (a busy machine) says nothing of sites: it is repeated."""
    out = f"{folder}/{name}"
    for _ in range(TRIES):
        record(build, out, command, environment, stdin)
        raw = next(f"{out}/{f}" for f in os.listdir(out) if f.startswith("exact"))
        profile = Profile(next(f"{out}/{f}" for f in sorted(os.listdir(out))
                               if f.startswith(name) and f.endswith(".pb.gz") and not f.endswith("-peak.pb.gz")))
        if profile.comment(" 0 lost stacks"):
            return compare(name, exact(raw), estimated(profile))
    print(f"SKIPPED cross-check with {name}: stacks were lost in each of {TRIES} runs")
    return 0


def main():
    build = os.path.abspath(sys.argv[1])
    if not all(shutil.which(tool, path=CLEAN["PATH"]) for tool in ("heaptrack", "zstd")):
        print("SKIPPED cross-check: no heaptrack or no zstd")
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="heaptap-crosscheck.") as folder:
        prepare(folder, 0.016)
        for name, command, environment, stdin in programs(folder):
            wrong += check(build, folder, name, command, environment, stdin)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
