#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""oci_config.py [OPTION...] COMMAND...: the config.json of a container that executes COMMAND, as `podman run` makes it by default.

The root is ./rootfs, the current folder is there too, at its own path and writable. Input and output are the caller's.
"""
import argparse
import json
import os
import platform

PROFILE = "/usr/share/containers/seccomp.json"  # podman's, which has conditions that runtimes do not know
DEFAULT = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT".split()
ALL = range(41)

parser = argparse.ArgumentParser()
parser.add_argument("--cap-add", default="", help="capabilities, by commas, or ALL")
parser.add_argument("--unconfined", action="store_true", help="no seccomp filter")
parser.add_argument("--host-pids", action="store_true", help="in the machine's pid namespace")
parser.add_argument("--env", action="append", default=[])
parser.add_argument("command", nargs=argparse.REMAINDER)
options = parser.parse_args()

names = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT
SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE""".split()
with open("/proc/self/status") as status:
    bits = next(int(line.split()[1], 16) for line in status if line.startswith("CapBnd:"))
ours = {name for bit, name in enumerate(names) if bits >> bit & 1}
wanted = set(names) if options.cap_add == "ALL" else set(DEFAULT) | set(filter(None, options.cap_add.split(",")))
capabilities = sorted("CAP_" + name for name in wanted & ours)


def condition_holds(rule):
    def named(which):
        held = rule.get(which) or {}
        return held.get("caps", []), held.get("arches", [])

    caps, arches = named("includes")
    without_caps, without_arches = named("excludes")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    return (all(cap in capabilities for cap in caps) and not any(cap in capabilities for cap in without_caps) and
            (not arches or machine in arches) and machine not in without_arches)


def rules_of_podman():
    with open(PROFILE) as file:
        profile = json.load(file)
    rules = []
    for rule in filter(condition_holds, profile["syscalls"]):
        made = {"names": rule["names"], "action": rule["action"]}
        if rule.get("args"):
            made["args"] = rule["args"]
        if rule["action"] == "SCMP_ACT_ERRNO":
            made["errnoRet"] = rule.get("errnoRet", 1)
        rules.append(made)
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": profile.get("defaultErrnoRet", 1), "syscalls": rules}


def rules_alike():
    refused = [] if "CAP_SYS_ADMIN" in capabilities else [
        {"names": ["perf_event_open", "bpf", "fanotify_init", "setns"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": refused}


here = os.getcwd()
device = ["nosuid", "noexec"]
namespaces = ["ipc", "uts", "mount"] + ([] if options.host_pids else ["pid"])
config = {
    "ociVersion": "1.0.2",
    "process": {
        "terminal": False,
        "user": {"uid": 0, "gid": 0},
        "args": options.command,
        "env": ["PATH=/usr/bin:/bin", "HEAPTAP_TEST=" + os.environ.get("HEAPTAP_TEST", "")] + options.env,
        "cwd": here,
        "capabilities": {kind: capabilities for kind in ("bounding", "effective", "permitted")},
        "noNewPrivileges": False,
    },
    "root": {"path": "rootfs", "readonly": False},
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": device + ["mode=1777"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": device + ["ro"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmp", "options": ["mode=1777"]},
        {"destination": here, "type": "bind", "source": here, "options": ["rbind", "rw"]},
    ],
    "linux": {
        "namespaces": [{"type": kind} for kind in namespaces],
        "maskedPaths": ["/proc/kcore", "/proc/keys"],
        "readonlyPaths": ["/proc/sys", "/proc/irq", "/proc/bus"],
    },
}
if not options.unconfined:
    config["linux"]["seccomp"] = rules_of_podman() if os.path.exists(PROFILE) else rules_alike()
with open("config.json", "w") as file:
    json.dump(config, file)
