#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py BUILD OUT: what heaptap costs, beside its peers.
bench.py --join OUT RUN...: the same of several runs (their OUT folders), as if it were one.

A round runs contenders on every workload, one after the other: those that the goals are about in every round, the others
in the first. A cell is the median, with its smallest and largest value, of the ratio to the native run of the same round. OUT gets results.json, results.md and, by
bench/growth.py, a curve per kind of growth.

BENCH_QUICK=1: one round of little work, to see that everything runs. BENCH_ROUNDS (3), BENCH_SCALE (1: a native run takes
some seconds), BENCH_ONLY (a regular expression for names of workloads), BENCH_UNDER (for names of contenders), BENCH_CURVES (for those of
bench/growth.py, whose rounds are BENCH_GROWTH_ROUNDS).
"""
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contenders as known  # noqa: E402
import growth  # noqa: E402
import measure  # noqa: E402

QUICK = os.environ.get("BENCH_QUICK") == "1"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "1" if QUICK else "3"))
SCALE = float(os.environ.get("BENCH_SCALE", "0.02" if QUICK else "1"))


ONLY = os.environ.get("BENCH_ONLY", "^(batch 1|storm|sqlite|python$|redis P16)" if QUICK else "")
UNDER = os.environ.get("BENCH_UNDER", "")


def say(text):
    print(text, file=sys.stderr, flush=True)


class Results:
    """runs: {(scale, workload, contender): [figures or None by round]}"""

    def __init__(self, rounds):
        self.runs, self.skipped, self.rounds = {}, [], rounds

    def skip(self, text):
        if text not in self.skipped:
            self.skipped.append(text)
            say(f"SKIPPED {text}")

    def add(self, key, index, figures):
        self.runs.setdefault(key, [None] * self.rounds)[index] = figures

    def extend(self, runs):
        """By the rounds of another run, as results.json has them."""
        rounds = max((len(run["rounds"]) for run in runs), default=0)
        for run in runs:
            self.runs.setdefault((run["scale"], run["workload"], run["contender"]), [None] * self.rounds)
        theirs = {(run["scale"], run["workload"], run["contender"]): run["rounds"] for run in runs}
        for key, mine in self.runs.items():
            mine.extend(theirs.get(key, [None] * rounds))
        self.rounds += rounds

    def ratios(self, key, value, base="native"):
        """Of `value(figures)` to that of `base` in the same round."""
        pairs = zip(self.runs.get(key, []), self.runs.get((key[0], key[1], base), []))
        return [value(mine) / value(theirs) for mine, theirs in pairs if mine and theirs and value(theirs)]

    def figures(self, key, value):
        return [value(run) for run in self.runs.get(key, []) if run]


def cpu(run):
    return run["target_cpu"] + run["tool_cpu"]


def pair_ns(run):
    """CPU per pair as the loop itself has it: no start, no end."""
    return float(run["said"].split()[1])


def spread(values, form="{:.2f}"):
    if not values:
        return "-"
    low, middle, high = form.format(min(values)), form.format(statistics.median(values)), form.format(max(values))
    return middle if len(values) == 1 else f"{middle} [{low}..{high}]"


def run_all(build, folder):
    results = Results(ROUNDS)
    plan = []
    for scale, only, group in known.contenders(build):
        group = [c for c in group if c.name == "native" or re.search(UNDER, c.name)]
        if len(group) < 2:
            continue
        for contender in group:
            for need in measure.missing(contender.needs):
                results.skip(f"{contender.name}: no {need}")
        group = [c for c in group if not measure.missing(c.needs)]
        for workload in known.workloads(build, folder, scale * SCALE):
            if not re.search(only, workload.name) or not re.search(ONLY, workload.name):
                continue
            if measure.missing(workload.needs):
                results.skip(f"{workload.name}: no {', '.join(measure.missing(workload.needs))}")
                continue
            plan.extend((scale, workload, contender) for contender in group)
    for index in range(ROUNDS):
        began = time.monotonic()
        for scale, workload, contender in plan:
            if contender.once and index:
                continue
            key = (scale, workload.name, contender.name)
            try:
                results.add(key, index, measure.run(build, workload, contender))
            except measure.Failed as error:
                results.add(key, index, None)
                results.skip(f"{error} (round {index + 1})")
        say(f"round {index + 1} of {ROUNDS}: {time.monotonic() - began:.0f} s")
    return results


# ---- tables

def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def matrix(results, scale, cell):
    names = [list(dict.fromkeys(key[i] for key in results.runs if key[0] == scale)) for i in (1, 2)]
    rows = [[contender] + [cell((scale, workload, contender)) for workload in names[0]] for contender in names[1]]
    return table(["", *names[0]], [row for row in rows if any(text != "-" for text in row[1:])])


def tables(results):
    text = ""
    for scale in dict.fromkeys(key[0] for key in results.runs):
        kind = "" if scale == 1 else f", with {scale:g} of the work"
        text += f"\n### CPU of target and tool over native{kind}\n\n"
        text += matrix(results, scale, lambda key: spread(results.ratios(key, cpu)))
        text += f"\n### Time over native{kind}\n\n"
        text += matrix(results, scale, lambda key: spread(results.ratios(key, lambda run: run["wall"])))
        if scale != 1:
            continue
        text += "\n### CPU nanoseconds per malloc+free pair, by the loop's own clock\n\n"
        text += matrix(results, scale, lambda key: spread(results.figures(key, pair_ns), "{:.1f}")
                       if key[1].split()[0] in known.LOOPS else "-")
        text += "\n### The tool's own CPU, seconds\n\n"
        text += matrix(results, scale, lambda key: "-" if not key[2].startswith("heaptap") else
                       spread(results.figures(key, lambda run: run["tool_cpu"]), "{:.3f}"))
        text += "\n### Peak RSS: of the target over native, MiB / of the tool, MiB / KiB written\n\n"
        text += matrix(results, scale, lambda key: memory(results, key))
    return text


def memory(results, key):
    native = results.figures((key[0], key[1], "native"), lambda run: run["target_kib"])
    mine = results.figures(key, lambda run: run["target_kib"])
    if key[2] == "native" or not native or not mine:
        return "-"
    more = statistics.median(mine) - statistics.median(native)
    tool = statistics.median(results.figures(key, lambda run: run["tool_kib"]))
    written = statistics.median(results.figures(key, lambda run: run["written"]))
    return f"{more / 1024:+.1f} / {tool / 1024:.1f} / {written / 1024:.0f}"


# ---- goals

def median_of(values):
    return statistics.median(values) if values else float("nan")


def goals(results, curves):
    workloads = list(dict.fromkeys(key[1] for key in results.runs if key[0] == 1))
    rows = []

    def goal(what, wanted_text, figure, met):
        rows.append([what, wanted_text, figure, "met" if met else "MISSED"])

    for name in workloads:
        if name.split()[0] in known.LOOPS:
            ratios = results.ratios((1, name, "heaptap unsampled"), pair_ns, "forward")
            if ratios:
                goal(f"unsampled pair over forwarding, {name}", "<= 1.10", spread(ratios), median_of(ratios) <= 1.10)
    for backend in known.backends():
        programs = [name for name in workloads if name in known.PROGRAMS]
        for label, value in (("CPU", cpu), ("time", lambda run: run["wall"])):
            medians = {n: median_of(results.ratios((1, n, f"heaptap {backend} 512K"), value)) for n in programs}
            medians = {n: ratio for n, ratio in medians.items() if not math.isnan(ratio)}
            if medians:
                worst = max(medians, key=medians.get)
                middle = median_of(list(medians.values()))
                goal(f"whole programs, {backend}, {label} over native", "median <= 1.01, worst <= 1.02",
                     f"median {middle:.3f}, worst {medians[worst]:.3f} ({worst})",
                     middle <= 1.01 and medians[worst] <= 1.02)
        storm = [results.ratios((1, n, f"heaptap {backend} 512K"), cpu) for n in workloads if n.startswith("storm")]
        if storm and storm[0]:
            goal(f"storm, {backend}, CPU over native", "<= 1.05", spread(storm[0]), median_of(storm[0]) <= 1.05)
        goal_switches(results, backend, goal)
        if backend == known.backends()[0]:
            goal_memory(results, workloads, backend, goal)
            goal_heaptrack(results, workloads, backend, goal)
    show_peak(results, goal)
    for name, wanted_text, figure, met in curves.goals():
        goal(name, wanted_text, figure, met)
    return table(["what", "goal", "measured", ""], rows)


def goal_memory(results, workloads, backend, goal):
    worst, where = None, ""
    for name in workloads:
        native = results.figures((1, name, "native"), lambda run: run["target_kib"])
        mine = results.figures((1, name, f"heaptap {backend} 512K"), lambda run: run["target_kib"])
        if native and mine:
            more = statistics.median(mine) - statistics.median(native) * 1.01
            if worst is None or more > worst:
                worst, where = more, name
    if worst is not None:
        goal("target's RSS above 1.01 of native's, worst", "<= 4 MiB", f"{worst / 1024:.1f} MiB ({where})",
             worst <= 4096)


def goal_switches(results, backend, goal):
    for name in known.SWITCHES:
        ratios = results.ratios((1, name, f"heaptap {backend} 512K"), cpu)
        if ratios:
            goal(f"context switches, {name}, {backend}, CPU over native", "<= 1.02", spread(ratios, "{:.3f}"),
                 median_of(ratios) <= 1.02)


def show_peak(results, goal):
    for scale, name, contender in results.runs:
        ratios = results.ratios((scale, name, contender.removesuffix(" no peak")), cpu, contender)
        if contender.endswith(" no peak") and ratios:
            goal(f"keeping the peak at 64K, CPU over --no-peak, {name}", "no change", spread(ratios, "{:.3f}"),
                 min(ratios) <= 1)


def goal_heaptrack(results, workloads, backend, goal):
    for name in workloads:
        theirs = [r - 1 for r in results.ratios((known.EXACT, name, "heaptrack"), cpu)]
        ours = [r - 1 for r in results.ratios((1, name, f"heaptap {backend} 512K"), cpu)]
        every = [r - 1 for r in results.ratios((known.EXACT, name, "heaptap auto 1"), cpu)]
        if theirs and ours:
            goal(f"overhead, heaptrack's over ours at 512K, {name}", ">= 10",
                 f"{median_of(theirs):.2f} / {median_of(ours):.3f}", median_of(theirs) >= 10 * max(0, median_of(ours)))
        if theirs and every:
            goal(f"overhead at period 1 and heaptrack's, {name}", "less",
                 f"{median_of(every):.2f} and {median_of(theirs):.2f}", median_of(every) < median_of(theirs))


# ---- the machine

def first_line(*command):
    try:
        said = subprocess.run(command, capture_output=True, text=True, env=measure.CLEAN, check=False).stdout
    except OSError:
        return ""
    return said.strip().split("\n")[0]


def commit():
    where = os.path.dirname(os.path.abspath(__file__))
    said = first_line("git", "-c", f"safe.directory={os.path.dirname(where)}", "-C", where, "describe", "--always", "--dirty")
    return f", commit {said}" if said else ""


def machine():
    cpu_name = first_line("sh", "-c", "sed -n 's/^model name.*: //p' /proc/cpuinfo")
    lines = [f"{os.cpu_count()} x {cpu_name}, kernel {platform.release()}, {platform.freedesktop_os_release()['PRETTY_NAME']}, "
             f"{' '.join(platform.libc_ver())}, load {' '.join(f'{v:.1f}' for v in os.getloadavg())} at the end"]
    versions = first_line("sh", "-c", "dpkg-query -W -f '${Package} ${Version}, ' heaptrack libgoogle-perftools4 valgrind gcc-12 "
                          "redis-server sqlite3 python3 nodejs 2>/dev/null")
    return "\n\n".join([*lines, versions.rstrip(", ") + commit()])


def write(out, head, where, results, curves):
    """results.md and results.json, and the curves. where: the machine."""
    text = f"{head}\n\n{where}\n\n"
    if not QUICK: # so little work shows what start and end cost, and nothing else
        text += f"### Goals\n\n{goals(results, curves)}"
    text += tables(results) + curves.tables()
    if results.skipped:
        text += "\n### Skipped or failed\n\n" + "".join(f"- {line}\n" for line in results.skipped)
    curves.plot()
    with open(f"{out}/results.md", "w", encoding="utf-8") as file:
        file.write(text)
    with open(f"{out}/results.json", "w", encoding="utf-8") as file:
        json.dump({"head": head, "machine": where, "skipped": results.skipped, "curves": curves.data, "single": curves.single,
                   "runs": [{"scale": s, "workload": w, "contender": c, "rounds": runs}
                            for (s, w, c), runs in results.runs.items()]}, file, indent=1)
    print(text)


def join(out, folders):
    results, curves, heads, where = Results(0), growth.Curves("", out, False, say), [], ""
    for folder in folders:
        with open(f"{folder}/results.json", encoding="utf-8") as file:
            run = json.load(file)
        results.extend(run["runs"])
        curves.extend(run["curves"], run["single"])
        for line in run["skipped"]:
            results.skip(line)
        heads.append(run["head"])
        where = run["machine"]
    write(out, "\n\n".join(heads), where, results, curves)


def main():
    if sys.argv[1] == "--join":
        os.makedirs(sys.argv[2], exist_ok=True)
        join(sys.argv[2], sys.argv[3:])
        return 0
    build, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(out, exist_ok=True)
    measure.become_subreaper()
    results = run_all(build, f"{build}/bench/inputs")
    curves = growth.Curves(build, out, QUICK, say)
    if os.environ.get("BENCH_GROWTH", "1") == "1":
        curves.run(int(os.environ.get("BENCH_GROWTH_ROUNDS", "1" if QUICK else "3")))
        curves.run_single()
    ended = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    write(out, f"{ended} UTC at the end, rounds: {ROUNDS}, scale {SCALE:g}", machine(), results, curves)
    return 0


if __name__ == "__main__":
    sys.exit(main())
