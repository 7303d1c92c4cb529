# SPDX-License-Identifier: Apache-2.0
"""mutate.py HEAPTAP COUNT SEED PROFILE...

Runs reports, diffs and exports on COUNT damaged profiles: bytes changed, inserted, removed, cut short, in the gzip file
or inside of it. Each run must end with status 0 and no complaint, or with status 1 and one line that names the file, and no
output but of the other profile, which says so.
"""
import gzip
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

heaptap, count, seed, sources = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
COMMANDS = [
    ["report"], ["report", "--tree"], ["report", "--inverted", "--lines"], ["report", "--leaks"], ["report", "--json"],
    ["report", "--cum", "--focus", "main"], ["report", "--leaks", "--json"], ["report", "--tree", "--json"],
    ["report", "--lines", "-n", "all", sources[0]], ["diff", sources[0]], ["diff", "--normalize", "--json", sources[0]],
    ["merge", "-o", "/dev/null"], ["merge", "--anonymize", "-o", "/dev/null", sources[0]],
    ["export", "-f", "folded"], ["export", "-f", "flamegraph"], ["export", "-f", "speedscope"],
    ["export", "-f", "json"], ["export", "-f", "csv"], ["export", "-f", "massif"], ["export", "-f", "heaptrack"],
    ["export", "-f", "folded", "--anonymize"],
]


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data)) if data else 0
        what = rng.randrange(6)
        if what == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1 and data:
            data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        elif what == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12)))
        elif what == 3:
            del data[at:at + rng.randrange(1, 40)]
        elif what == 4:
            del data[at:]
        else:
            source = rng.randrange(len(data)) if data else 0
            data[at:at] = data[source:source + rng.randrange(1, 60)]
    return bytes(data)


# Lines that are not about damage: heaptrack's events are one by one, and two profiles may be of two sessions.
NOTES = tuple(b"heaptap: " + note for note in (b"too many blocks for heaptrack", b"this is session ", b"2 sessions added up",
                                               b"merged: ", b"left out: ", b"counted once: ", b"1 profile of perf events left out"))


def run(number):
    rng = random.Random(seed * 1000003 + number)
    data = open(rng.choice(sources), "rb").read()
    if rng.random() < 0.8:
        data = mutate(gzip.decompress(data), rng)
        data = data if rng.random() < 0.5 else gzip.compress(data, 1)
    else:
        data = mutate(data, rng)
    path = f"mutated.{number}.pb.gz"
    with open(path, "wb") as file:
        file.write(data)
    command = [heaptap] + rng.choice(COMMANDS) + [path]
    result = subprocess.run(command, capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
    error = result.stderr
    good = result.returncode == 0 and all(line.startswith(NOTES) for line in error.splitlines())
    lacking = b"INCOMPLETE: 1 " in result.stdout or b'"unread":1,' in result.stdout
    bad = (result.returncode == 1 and error.startswith(b"heaptap: ") and error.count(b"\n") == 1
           and (lacking if sources[0] in command and command[1] == "report" else not result.stdout))
    if not good and not bad:
        return result.returncode, f"{' '.join(command)}: status {result.returncode}\n{error.decode(errors='replace')[:2000]}"
    os.unlink(path)
    return result.returncode, None


with ThreadPoolExecutor(2) as pool:
    results = list(pool.map(run, range(count)))
statuses = [status for status, _ in results]
for _, complaint in results:
    if complaint:
        print(complaint)
print(f"{count} damaged profiles: {statuses.count(0)} still valid, {statuses.count(1)} refused, "
      f"{count - statuses.count(0) - statuses.count(1)} otherwise")
sys.exit(any(complaint for _, complaint in results))
