#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""without_perf.py [-EACCES] COMMAND...: runs COMMAND where perf_event_open fails with EPERM, as container filters have it,
or with EACCES, as the kernels of Debian and Ubuntu have it beyond kernel.perf_event_paranoid = 2.

The filter is four instructions of classic BPF (linux/filter.h, linux/seccomp.h); the system call's number is 298 on
x86-64 and 241 on aarch64.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
command = sys.argv[1:]
refusal = errno.EACCES if command[0] == "-EACCES" else errno.EPERM
if refusal == errno.EACCES:
    command = command[1:]
number = {"x86_64": 298, "aarch64": 241}[platform.machine()]

program = b"".join(struct.pack("HBBI", *instruction) for instruction in (
    (0x20, 0, 0, 0),       # load seccomp_data.nr
    (0x15, 0, 1, number),  # if it is perf_event_open
    (0x06, 0, 0, ERRNO | refusal),
    (0x06, 0, 0, ALLOW),
))
text = ctypes.create_string_buffer(program, len(program))
filter_program = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program):
    sys.exit("without_perf: " + os.strerror(ctypes.get_errno()))
os.execvp(command[0], command)
