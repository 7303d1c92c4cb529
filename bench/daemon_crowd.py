#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Watches a daemon: daemon_crowd.py PID STORE BUDGET_BYTES SECONDS EVERY

Each second the store's bytes on disk (files and folders, in blocks of 4 KiB) are compared with the budget; every EVERY
seconds a line is printed: time, CPU % of one processor since the last line, of it by writers, RSS MiB, anonymous RSS MiB, descriptors,
processes (threads of the daemon's group of forked children included), store MiB, most since the last line, files.
"""

import os
import stat
import sys
import time

pid, store, budget, seconds, every = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
TICKS = os.sysconf("SC_CLK_TCK")


def cpu():
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return own / TICKS, children / TICKS


def rss():
    values = {}
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(("VmRSS", "RssAnon", "RssShmem")):
                values[line.split(":")[0]] = int(line.split()[1]) / 1024
    return values


def blocks(size):
    return (size + 4095) // 4096 * 4096


def disk(folder):
    total, files = 0, 0
    try:
        names = os.listdir(folder)
        total += blocks(os.lstat(folder).st_size)
    except FileNotFoundError:
        return 0, 0
    for name in names:
        path = os.path.join(folder, name)
        try:
            status = os.lstat(path)
        except FileNotFoundError:  # it went since; all others still count
            continue
        if stat.S_ISDIR(status.st_mode):
            more, count = disk(path)
            total, files = total + more, files + count
        else:
            total += blocks(status.st_size)
            files += 1
    return total, files


def main():
    begin = last = time.monotonic()
    before = cpu()
    most = over = polls = 0
    print("seconds  own%  writers%  rss_MiB  anon_MiB  shmem_MiB  fds  store_MiB  most_MiB  files  load", flush=True)
    while time.monotonic() - begin < seconds:
        bytes_now, files = disk(store)
        polls += 1
        over += bytes_now > budget
        most = max(most, bytes_now)
        now = time.monotonic()
        if now - last >= every:
            own, children = cpu()
            memory = rss()
            print(f"{now - begin:7.0f} {(own - before[0]) / (now - last) * 100:5.1f} {(children - before[1]) / (now - last) * 100:9.1f}"
                  f" {memory['VmRSS']:8.1f} {memory['RssAnon']:9.1f} {memory['RssShmem']:10.1f}"
                  f" {len(os.listdir(f'/proc/{pid}/fd')):4d} {bytes_now / 2**20:10.2f} {most / 2**20:9.2f} {files:6d}"
                  f"  {os.getloadavg()[0]:.1f}", flush=True)
            before, last, most = (own, children), now, 0
        time.sleep(max(0, 1 - (time.monotonic() - now)))
    print(f"polled {polls} times, over the budget {over} times")


main()
