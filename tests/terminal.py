#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""terminal.py STEP...: an interactive bash on a terminal of its own, driven like a person would.

    send:TEXT       types TEXT (Python escapes: \\n, \\x03 for Ctrl-C, \\x1a for Ctrl-Z, \\x1c for Ctrl-\\)
    expect:REGEX    waits until the screen shows REGEX after what was matched before
    insist:TEXT     from now on, TEXT is typed again every half second while an expect waits (a shell that changes the
                    terminal's mode at the same moment may lose what was typed); ends with the expect
    stopped:        waits until the process of the last "ready PID" on the screen is stopped
    timeout:SECONDS for the expects that follow (default 20), so many times as long as TEST_TIME_FACTOR says

The exit status is 0 when every expect was met; if not, the screen is printed.
"""
import os
import pty
import re
import select
import sys
import time


def wait_until_stopped(screen, timeout):
    pid = re.findall(r"ready (\d+)", screen)[-1]
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            if stat.read().rpartition(") ")[2].startswith("T"):
                return True
        time.sleep(0.01)
    print(f"terminal: process {pid} did not stop; the screen:\n{screen}", file=sys.stderr)
    return False


def main(steps):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(PS1="prompt> ", TERM="dumb")
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    screen, seen, insisted = "", 0, b""
    factor = float(os.environ.get("TEST_TIME_FACTOR", "5"))
    timeout = 20 * factor
    try:
        for step in ["expect:prompt> "] + steps:
            kind, _, text = step.partition(":")
            if kind in ("send", "insist"):
                typed = text.encode().decode("unicode_escape").encode("latin-1")
                os.write(terminal, typed)
                insisted = typed if kind == "insist" else b""
                continue
            if kind == "timeout":
                timeout = float(text) * factor
                continue
            if kind == "stopped":
                if not wait_until_stopped(screen, timeout):
                    return 1
                continue
            deadline = time.monotonic() + timeout
            while True:
                match = re.search(text, screen[seen:])
                if match:
                    seen += match.end()
                    insisted = b""
                    break
                left = deadline - time.monotonic()
                if insisted and left > 0 and not select.select([terminal], [], [], min(left, 0.5))[0]:
                    os.write(terminal, insisted)
                    continue
                if left <= 0 or not select.select([terminal], [], [], left)[0]:
                    print(f"terminal: waited in vain for {text!r}; the screen:\n{screen}", file=sys.stderr)
                    return 1
                try:
                    screen += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    print(f"terminal: bash ended before {text!r}; the screen:\n{screen}", file=sys.stderr)
                    return 1
        print(screen)
        return 0
    finally:
        os.close(terminal)


sys.exit(main(sys.argv[1:]))
