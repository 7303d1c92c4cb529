#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attach_seen.py PID: all that others can see of a process, a line each, so that two outputs can be compared.

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
        # The kernel extends these as they are used.
        place = f"{end:x}" if path == "[stack]" else f"{start:x}" if path == "[heap]" else f"{start:x}-{end:x}"
        print("mapping", place, protection, name, flags, what)
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


show_memory(int(sys.argv[1]))
show_descriptors(int(sys.argv[1]))
show_status(int(sys.argv[1]))
