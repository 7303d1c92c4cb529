#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snapshot_latency.py BUILD [ROUNDS]: from a signal (to the target, to the sampler) or a request to the complete file, at
1 k, 10 k and 100 k live samples with warm symbols. Milliseconds: median, worst."""
import os
import signal
import subprocess
import sys
import tempfile
import time

build, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20


def child_of(pid, comm):
    """COMMAND is heaptap-parent's."""
    parents = ",".join([str(pid), *subprocess.run(["pgrep", "-P", str(pid), "heaptap-parent"], capture_output=True,
                                                  text=True).stdout.split()])
    for line in subprocess.run(["pgrep", "-P", parents, comm], capture_output=True, text=True).stdout.split():
        return int(line)


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.0005)


for live in 1000, 10000, 100000:
    with tempfile.TemporaryDirectory() as folder:
        front = subprocess.Popen(
            [f"{build}/heaptap", "record", "-q", "-p", "1", "-i", "0", "-o", f"{folder}/%n.pb.gz",
             f"{build}/tests/targets/snapshot_stacks", str(live)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        front.stdout.readline()
        time.sleep(0.5)
        target, sampler = child_of(front.pid, "snapshot_stacks"), child_of(front.pid, "heaptap-sampler")
        number = 0
        for how in "warm", "target", "sampler", "request":
            taken = []
            for _ in range(3 if how == "warm" else rounds):
                number += 1
                path = f"{folder}/{number:04}.pb.gz"
                start = time.monotonic()
                if how == "request":
                    subprocess.run([f"{build}/heaptap", "snapshot", str(target)], stdout=subprocess.DEVNULL, check=True)
                    assert os.path.exists(path)
                else:
                    os.kill(sampler if how == "sampler" else target, signal.SIGUSR1)
                    wait_for(path)
                taken.append((time.monotonic() - start) * 1e3)
                time.sleep(1.05)  # a process gets a burst of 16 snapshots on request, then one a second
            taken.sort()
            if how != "warm":
                print(f"{live:7} live, {how:8} median {taken[len(taken) // 2]:6.1f} worst {taken[-1]:6.1f}", flush=True)
        front.stdin.close()
        front.wait()
