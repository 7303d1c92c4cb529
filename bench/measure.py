# SPDX-License-Identifier: Apache-2.0
"""Runs one workload under one contender and says what it cost.

The target's own figures come from bench/programs/timed.c, which is its parent; everything else that the contender
started is waited for here (we are the subreaper of all of it), so that no process' CPU time is missed or counted twice.
"""
import ctypes
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
TIMEOUT_S = 120
TMP = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CLEAN = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": os.environ.get("HOME", "/root"), "LC_ALL": "C.UTF-8"}


class Failed(Exception):
    pass


def become_subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class Contender:
    """prefix: words before the command, {folder} filled in; environment: for all of it; inside: it starts the target
    in its own process (valgrind), so that only the whole can be timed; once: in the first round alone."""

    def __init__(self, name, prefix=(), environment=None, needs=(), inside=False, once=False):
        self.name, self.prefix, self.environment = name, list(prefix), dict(environment or {})
        self.needs, self.inside, self.once = list(needs), inside, once


def missing(needs):
    return [n for n in needs if not (os.path.exists(n) if "/" in n else shutil.which(n, path=CLEAN["PATH"]))]


class Workload:
    """command: the target; server: commands that ask whether it is ready, give it its load, and stop it."""

    def __init__(self, name, command, environment=None, stdin=None, server=None, needs=()):
        self.name, self.command = name, list(command)
        self.environment, self.stdin, self.server = dict(environment or {}), stdin, server
        self.needs = list(needs)


def sampler_kib(first):
    """Peak RSS so far of the sampler, a child of `first` that it may reap itself."""
    try:
        with open(f"/proc/{first}/task/{first}/children", encoding="ascii") as file:
            children = [pid for pid in file.read().split() if os.readlink(f"/proc/{pid}/exe").endswith("/heaptap")]
        peaks = [0]
        for pid in children:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                peaks += [int(line.split()[1]) for line in file if line.startswith("VmHWM:")]
        return max(peaks)
    except (OSError, ValueError):  # it ends as we look
        return 0


def reap(first, deadline):
    """Waits for `first` and for all that is left of it: (status of first, CPU seconds of all, peak KiB of the rest with
    the children that it has waited for, peak KiB of the sampler alone)."""
    status, cpu, rest_kib, alone_kib, looks = None, 0.0, 0, 0, 0
    while True:
        try:
            pid, code, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return status, cpu, max(rest_kib, alone_kib), alone_kib
        if pid == 0:
            if time.monotonic() > deadline:
                kill_all()
                raise Failed("took too long")
            time.sleep(0.002)
            if status is None and looks % 16 == 0:
                alone_kib = max(alone_kib, sampler_kib(first))
            looks += 1
            continue
        cpu += used.ru_utime + used.ru_stime
        if pid == first:
            status = os.waitstatus_to_exitcode(code)
        else:
            rest_kib = max(rest_kib, used.ru_maxrss)


def kill_all():
    """Our own children, and theirs as they come to us."""
    for _ in range(50):
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(pid) for pid in file.read().split()]
        if not children:
            return
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                return
        time.sleep(0.02)


def serve(workload, child, output):
    """Waits until the server answers, gives it its load, stops it. Seconds that the load took."""
    ready, load, stop = workload.server
    deadline = time.monotonic() + 30
    while subprocess.run(ready, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        if time.monotonic() > deadline or child.poll() is not None:
            raise Failed("the server does not answer")
        time.sleep(0.02)
    began = time.monotonic()
    subprocess.run(load, env=CLEAN, stdout=output, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)
    took = time.monotonic() - began
    subprocess.run(stop, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
    return took


def run(build, workload, contender):
    """The figures of one run. Seconds, KiB, bytes; `said`: what the target printed."""
    folder = tempfile.mkdtemp(prefix="heaptap-bench.", dir=TMP)
    times = f"{folder}.times"
    command, timed = [word.replace("{folder}", folder) for word in contender.prefix], [f"{build}/bench/timed", times]
    command = timed + command if contender.inside else command + timed
    command += workload.command
    environment = {**CLEAN, **workload.environment, **contender.environment}
    environment = {k: v.replace("{folder}", folder) for k, v in environment.items()}
    try:
        with open(f"{folder}.out", "w+b") as output, open(workload.stdin or os.devnull, "rb") as stdin:
            child = subprocess.Popen(command, env=environment, stdin=stdin, stdout=output,
                                     stderr=subprocess.DEVNULL, cwd=folder)
            took = serve(workload, child, output) if workload.server else None
            status, cpu, rest_kib, alone_kib = reap(child.pid, time.monotonic() + TIMEOUT_S)
            child.returncode = status
            output.seek(0)
            said = output.read().decode("utf-8", "replace")
        if status:
            raise Failed(f"status {status}")
        with open(times, encoding="ascii") as file:
            wall, user, system, kib, switches = map(float, file.read().split())
        written = sum(os.path.getsize(f) for f in glob.glob(f"{folder}/**", recursive=True) if os.path.isfile(f))
        return {"wall": took or wall, "target_cpu": user + system, "tool_cpu": max(0.0, cpu - user - system),
                "target_kib": kib, "tool_kib": rest_kib, "sampler_kib": alone_kib, "written": written, "switches": switches, "said": said}
    except (Failed, subprocess.SubprocessError, OSError) as error:
        kill_all()
        raise Failed(f"{workload.name} under {contender.name}: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for path in (times, f"{folder}.out"):
            if os.path.exists(path):
                os.unlink(path)
