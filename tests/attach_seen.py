#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attach_seen.py PID: all that others can see of a process, a line each.
attach_seen.py BEFORE AFTER: what is different in AFTER, both as written by that; "new": memory where there was none.

Mappings with protection and the kernel's flags; of those that are not writable, and of the writable ones of files except
of libc and loader, a sum of the bytes too. Descriptors with positions, dispositions and masks, ids, limits, environment.
What memory that anybody writes contains (heap, stacks, the data of libc and loader) changes as the process runs.

Anonymous memory behind the library's own file mapping is the library's.
"""
import hashlib
import os
import re
import sys

OURS = re.compile(r"libheaptap-attach|/dev/zero")


def mappings(pid):
    """(start, end, protection, path, flags)"""
    found = None
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as smaps:
        for line in smaps:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (....) [0-9a-f]+ \S+ \d+ *(.*)", line)
            if head:
                found = (int(head[1], 16), int(head[2], 16), head[3], head[4])
            elif line.startswith("VmFlags:"):
                yield (*found, line[8:].strip())


def content(memory, start, end):
    total = hashlib.sha256()
    try:
        for at in range(start, end, 1 << 20):
            total.update(os.pread(memory, min(1 << 20, end - at), at))
    except OSError as error:
        return error.strerror
    return total.hexdigest()[:16]


def show_memory(pid):
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    before = ""
    for start, end, protection, path, flags in mappings(pid):
        ours = OURS.search(path) or (not path and OURS.search(before))
        before = path
        writable = "w" in protection
        if ours or path in ("[vvar]", "[vvar_vclock]", "[vsyscall]"):
            what = ""
        elif writable and (not path.startswith("/") or re.search(r"/(libc|ld)[.-]", path)):
            what = "changes"
        else:
            what = content(memory, start, end)
        name = f"libheaptap-attach: {path}" if ours else path
        print("mapping", f"{start:x}-{end:x}", protection, flags.replace(" ", ","), what or "-", name)
    os.close(memory)


def show_descriptors(pid):
    for fd in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as info:
            print("descriptor", fd, os.readlink(f"/proc/{pid}/fd/{fd}"), " ".join(info.read().split()))


def show_status(pid):
    wanted = re.compile(r"(Name|Umask|TracerPid|[UG]id|Groups|Threads|Sig(Pnd|Blk|Ign|Cgt)|ShdPnd|Cap|NoNewPrivs|Seccomp)")
    for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as status:
            for line in status:
                if wanted.match(line):
                    print("thread", task, " ".join(line.split()))
    for file in "environ", "limits", "cgroup", "cmdline", "oom_score_adj":
        with open(f"/proc/{pid}/{file}", "rb") as text:
            print(file, re.split(rb"[\0\n]", text.read()))


# ---- of two

def parse(path):
    """([(start, end, protection, flags, content, name)], the other lines)"""
    found, others = [], []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.startswith("mapping "):
                others.append(line.rstrip())
                continue
            place, protection, flags, what, name = (line.rstrip("\n").split(" ", 5) + [""])[1:6]
            start, end = (int(word, 16) for word in place.split("-"))
            found.append((start, end, protection, flags, what, name))
    return found, others


def compare_memory(before, after):
    """The kernel joins neighbours that are alike: it is addresses that are compared."""
    for start, end, *old in before:
        for low, high, *new in after:
            if high <= start or low >= end:
                continue
            same = old[:2] == new[:2] and (old[3] == new[3] or OURS.search(new[3]) and not old[3])
            if not same or (low, high) == (start, end) and old[2] != new[2]:
                print(f"changed {start:x}-{end:x}", *old, "->", *new)
        covered = sum(min(end, high) - max(start, low) for low, high, *_ in after if low < end and high > start)
        if covered != end - start:
            print(f"gone: {end - start - covered} bytes of {start:x}-{end:x}", *old)
    for low, high, *new in after:
        covered = sum(min(end, high) - max(start, low) for start, end, *_ in before if low < end and high > start)
        if covered != high - low:
            print("new", new[0], high - low - covered, "bytes", new[3] or "(no file)")


def compare(first, second):
    (before, others), (after, later) = parse(first), parse(second)
    compare_memory(before, after)
    for line in others:
        if line not in later:
            print("gone:", line)
    for line in later:
        if line not in others:
            print("changed", line)


if len(sys.argv) == 3:
    compare(sys.argv[1], sys.argv[2])
else:
    show_memory(int(sys.argv[1]))
    show_descriptors(int(sys.argv[1]))
    show_status(int(sys.argv[1]))
