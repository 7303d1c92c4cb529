#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""walked.py BUILD [SECONDS [PROGRAM...]]: how many stacks the hook walks itself, and whether they are right.

The programs of `make bench-unwind` (and their inputs, which `build/bench/unwind none` makes) and bench/walk_stress, each
for SECONDS (61) at most, or until it ends, at a period of its own; git shows the repository that this is started in. Every
stack that was walked is dumped as well and compared. A line each: samples, of which walked, in all and by the snapshots after 1, 10 and
60 s; compared, wrong.

With WALKED_COMPARE=N one in N is compared, as in use; then the share is not lowered by the dumps' own traffic.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import CLEAN  # noqa: E402

AFTER_S = (1, 10, 60)
CC1 = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"
PYTHON = """
import json, ast, time
end = time.time() + 300
def f(n): return [f(n - 1)] if n else json.loads(json.dumps({str(i): [i] * 9 for i in range(300)}))
while time.time() < end: f(25); ast.parse('a+b*(c-d)\\n' * 50)
"""
NODE = """
let a = [], end = Date.now() + 300000;
for (let i = 0; Date.now() < end; i++) {
  a.push(JSON.parse('{"x":[' + i + ',2,3],"y":"' + i + '"}')); if (a.length > 1e4) a = [];
  Buffer.alloc(9000); require('zlib').deflateSync('x'.repeat(i % 5000)) }
"""
SQLITE = ("with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000000) "
          "select count(distinct hex(x)) from c order by 1")


TWIN = """
#include <stdlib.h>
__attribute__((noinline)) void *%s(size_t size) { void *block = malloc(size); asm volatile("" : "+r"(block)); return block; }
void *work(size_t size) { void *block = %s(size); asm volatile("" : "+r"(block)); return block; }
"""


def twins(inputs):
    """Two libraries for walk_stress, of one shape, so that one follows the other at its address."""
    libraries = [f"{inputs}/{name}.so" for name in ("alpha", "beta")]
    for name, library in zip(("alpha_inner", "beta_inner"), libraries):
        subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-shared", "-fPIC", "-Wl,--build-id", "-o", library, "-xc", "-"],
                       input=TWIN % (name, name), text=True, check=True)
    return libraries


def programs(build, inputs, seconds):
    """{name: (period, command, its load)}"""
    return {
        "stress": ("2K", [f"{build}/bench/walk_stress", str(max(1, seconds - 1)), *twins(inputs)], None),
        "cxx": ("16K", [f"{inputs}/cxx"], None),
        "deep50": ("64K", [f"{inputs}/cxx", "130"], None),
        "deep120": ("256K", [f"{inputs}/cxx", "340"], None),
        "redis": ("4K", ["redis-server", "--port", "17379", "--save", ""],
                  "until redis-cli -p 17379 ping; do sleep 0.1; done; " # a benchmark that comes too early never ends
                  "while :; do redis-benchmark -p 17379 -q -n 100000 -r 10000 -t set,lpush,hset; done"),
        "cc1": ("16K", [CC1, "-O2", "-quiet", f"{inputs}/big.i", "-o", "/dev/null"], None),
        "cc1plus": ("16K", [f"{CC1}plus", "-O2", "-quiet", f"{inputs}/big.ii", "-o", "/dev/null"], None),
        "git": ("64K", ["git", "log", "-p", "--stat"], None),
        "gdb": ("64K", ["gdb", "-batch", "-ex", "info functions", "/usr/bin/gdb"], None),
        "node": ("64K", ["node", "-e", NODE], None),
        "clang": ("16K", ["/usr/lib/llvm-14/bin/clang", "-cc1", "-x", "c++-cpp-output", "-std=gnu++17", "-O2",
                          "-fcxx-exceptions", "-fexceptions", "-S", "-o", "/dev/null", f"{inputs}/clang.ii"], None),
        "python": ("64K", ["/usr/bin/python3", "-c", PYTHON], None),
        "sqlite": ("16K", ["sqlite3", ":memory:", SQLITE], None),
    }


def counts(profile):
    """{taken, walked, compared, wrong} of its comments."""
    said = subprocess.run(["go", "tool", "pprof", "-comments", profile], capture_output=True, text=True, check=False).stdout
    line = next((text for text in said.split("\n") if text.startswith("samples: ")), "")

    def figure(pattern):
        match = re.search(pattern, line)
        return int(match.group(1)) if match else 0

    return {"taken": figure(r"samples: (\d+) taken"), "lost": figure(r"(\d+) lost stacks"),
            "walked": figure(r"walked by the hook (\d+)"),
            "compared": figure(r"compared (\d+)"), "wrong": figure(r"wrong (\d+)")}


def end(child, load):
    """The recording ends with the target, which gets the signal from it."""
    child.terminate()
    child.wait(60)
    if load:
        os.killpg(load.pid, signal.SIGKILL)
        load.wait()


def measure(build, folder, seconds, program):
    period, command, load = program
    one_in = os.environ.get("WALKED_COMPARE", "1")
    with open(f"{folder}/out", "wb") as out:
        child = subprocess.Popen([f"{build}/heaptap", "record", "-q", "-p", period, "-i", "1s", "--keep", "100",
                                  "--compare-walks", one_in, "-o", f"{folder}/x.%p.%n.pb.gz", *command],
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=CLEAN)
        load = load and subprocess.Popen(["sh", "-c", load], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         start_new_session=True, env=CLEAN)
        deadline = time.monotonic() + seconds
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        end(child, load)
    names = [name for name in os.listdir(folder) if re.search(r"\.(exit|0\d+)\.pb\.gz$", name)]
    if child.returncode not in (0, 128 + signal.SIGTERM):
        with open(f"{folder}/out", encoding="utf-8", errors="replace") as out:
            raise SystemExit(f"{command[0]}: status {child.returncode}: {out.read()}")
    pids = [name.split(".")[1] for name in names]
    target = max(pids, key=pids.count, default="") # the others are its forked children, which live shortly
    profiles = {name.split(".")[2]: f"{folder}/{name}" for name in names if name.split(".")[1] == target}
    whole = counts(profiles["exit"]) if "exit" in profiles else counts("none")
    shares = []
    for second in AFTER_S:
        if f"{second:04}" in profiles:
            now = counts(profiles[f"{second:04}"])
            shares.append(share(now["walked"], now["taken"]))
        else:
            shares.append("-")
    return whole, shares


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main():
    build = os.path.abspath(sys.argv[1])
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 61
    chosen = programs(build, f"{build}/bench-unwind", seconds)
    print("| program | period | samples | lost stacks | walked | after 1 s | 10 s | 60 s | compared | wrong |\n" + "|---" * 10 + "|")
    for name in sys.argv[3:] or chosen:
        with tempfile.TemporaryDirectory(prefix="heaptap-walked.") as folder:
            whole, shares = measure(build, folder, seconds, chosen[name])
        print(f"| {name} | {chosen[name][0]} | {whole['taken']} | {whole['lost']} | {share(whole['walked'], whole['taken'])} | "
              + " | ".join(shares) + f" | {whole['compared']} | {whole['wrong']} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
