#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""accuracy.py BUILD: are heaptap's numbers right?

Programs that know their own truth (bench/programs/known.c) are recorded again and again; every run draws its own
samples. For every function and in total: how far the mean of the estimates is from the truth (bias), with its standard
error; how often heaptap's own 95 % intervals hold the truth; and in every run, whether the books add up.

A block of s bytes is sampled with probability p = 1 - exp(-s/T) and then counts 1/p objects and s/p bytes, so n such
blocks have variances n (1-p)/p and n s^2 (1-p)/p (proto/weight.h). Where that rests on fewer than FEW expected samples
the normal limit does not hold yet: such a cell is not judged.

ACCURACY_RUNS: runs of each cell, default 40. ACCURACY_MIXES, ACCURACY_PERIODS: only these. ACCURACY_JSON: figures to
this file too. The exit status is 1 if anything is wrong.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pprof import COLUMNS, Profile  # noqa: E402

FEW = 30
LIMIT = 4.5  # standard errors; some 600 cells are judged
MIXES = ("sizes", "heavy", "growth", "threads", "fork", "pauses")
# Period: bytes per function. Some hundred samples per run where that is affordable.
PERIODS = {1: 1 << 14, 4 << 10: 2 << 20, 64 << 10: 16 << 20, 512 << 10: 32 << 20, 4 << 20: 64 << 20}
FLOOD_PERIOD, FLOOD_BYTES = 4 << 10, 200 << 20
BACKENDS = ("auto", "copy")


IN_USE = r"^in use(?: at the peak)?: (\d+) \+- (\d+) bytes, (\d+) \+- (\d+) objects"


def profiles_of(folder, peak=False):
    """Names of those written at the end, one per process, or of those of the heap at its largest."""
    return sorted(name for name in os.listdir(folder)
                  if name.endswith(".pb.gz") and name.endswith("-peak.pb.gz") == peak)


def few(expected):
    """With few samples an estimate is skewed, and so is its interval: shown, not judged."""
    return "30 to 100" if expected < 100 else "100 to 1000" if expected < 1000 else "more than 1000"


def probability(size, period):
    return 1.0 if period <= 1 else -math.expm1(-size / period)


class Truth:
    """{function: [(size, allocs, inuse)]}"""

    def __init__(self, path):
        self.sites = {}
        with open(path, encoding="ascii") as file:
            for line in file:
                name, sizes = line.rstrip("\n").split("\t")
                self.sites[name] = [tuple(map(int, s.split(":"))) for s in sizes.split(",") if s]

    def value(self, column, name=None):
        total = 0
        for site in [self.sites[name]] if name else self.sites.values():
            for size, allocs, inuse in site:
                total += (inuse if column >= 2 else allocs) * (size if column % 2 else 1)
        return total

    def variance(self, column, period, name=None):
        """The variance of one run's estimate, and how many samples it rests on: a sum whose variance is mostly that of
        its 11 rarest samples is as skewed as those 11."""
        total = skewed = 0.0
        for site in [self.sites[name]] if name else self.sites.values():
            for size, allocs, inuse in site:
                count = inuse if column >= 2 else allocs
                p = probability(size, period)
                part = count * (1 - p) / p * (size * size if column % 2 else 1)
                total += part
                if count:
                    skewed += part * part / (count * p)
        return total, total * total / skewed if skewed else math.inf


class Cell:
    """Estimates of one number over the runs."""

    def __init__(self):
        self.ratios, self.error2, self.expected, self.rounding = [], 0.0, 0.0, 0.0

    def add(self, estimate, truth, variance, expected):
        self.ratios.append(estimate / truth - 1)
        self.error2 += variance / truth ** 2
        self.expected += expected
        # Values are whole numbers; where nearly every block is a sample, they are rounded alike in every run. One row
        # per stack, and no function here has more than two.
        self.rounding = max(self.rounding, 1 / truth)

    def bias(self):
        return sum(self.ratios) / len(self.ratios)

    def error(self):
        """Standard error of the bias, from theory: it does not depend on what was measured."""
        return math.sqrt(self.error2) / len(self.ratios)

    def spread(self):
        """Observed standard deviation over the theory's; None where there is nothing to compare."""
        n, mean = len(self.ratios), self.bias()
        if n < 2 or not self.error2:
            return None
        return math.sqrt(sum((r - mean) ** 2 for r in self.ratios) / (n - 1) / (self.error2 / n))

    def judged(self):
        return self.expected >= FEW

    def wrong(self):
        return self.judged() and self.off() > LIMIT * self.error()

    def off(self):
        return max(0.0, abs(self.bias()) - self.rounding)

    def text(self):
        return f"{self.bias() * 100:+7.2f} +- {self.error() * 100:5.2f}" + ("" if self.judged() else " *")


class Study:
    def __init__(self, build):
        self.build = build
        self.cells = defaultdict(lambda: [Cell() for _ in COLUMNS])  # by (mix, period, function or "")
        self.coverage = defaultdict(lambda: [0, 0])                  # by (kind, bytes or objects): held, looked at
        self.lost = defaultdict(int)
        self.runs = defaultdict(int)
        self.wrong = []

    def fault(self, text, profile=None):
        if profile and os.environ.get("ACCURACY_KEEP"):
            kept = os.path.join(os.environ["ACCURACY_KEEP"], f"wrong-{len(self.wrong)}.pb.gz")
            shutil.copy(profile, kept)
            text += f" (kept: {kept})"
        self.wrong.append(text)
        print("WRONG", text, flush=True)

    # ---- one run

    def record(self, folder, mix, period, backend, arguments=(), stdin=None):
        byte_count = FLOOD_BYTES if mix == "flood" else PERIODS[period]
        pace_bytes = 512 if period == 1 else 64 * period
        command = [f"{self.build}/heaptap", "record", "-q", "-b", backend, "-p", str(period), "-o",
                   f"{folder}/%p.pb.gz", "--min-samples", "1", *arguments, f"{self.build}/bench/known", mix,
                   str(byte_count), str(pace_bytes),
                   f"{folder}/truth"]
        return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE if stdin else None)

    def run(self, mix, period, backend):
        with tempfile.TemporaryDirectory(prefix="heaptap-accuracy.") as folder:
            process = self.record(folder, mix, period, backend)
            try:
                status = process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            if status:
                self.fault(f"{mix} at {period}, {backend}: status {status}")
                return
            self.runs[mix, period] += 1
            names = profiles_of(folder)
            if len(names) != (2 if mix == "fork" else 1):
                self.fault(f"{mix} at {period}, {backend}: profiles {names}: "
                           + "; ".join(str(Profile(f"{folder}/{n}").comments[1:4]) for n in names))
                return
            for name in names:
                self.look(f"{folder}/{name}", folder, mix, period, backend)
            for name in profiles_of(folder, peak=True):
                self.check_books(Profile(f"{folder}/{name}"), f"peak of {mix} at {period}, {backend}",
                                 f"{folder}/{name}")

    def look(self, path, folder, mix, period, backend):
        profile = Profile(path)
        flat = profile.flat()
        child = any("inherited" in row.labels for row in profile.rows) or "child_take" in flat
        truth = Truth(folder + ("/truth.child" if child else "/truth"))
        what = f"{mix}{' (child)' if child else ''} at {period}, {backend}"
        self.check_books(profile, what, path)
        mix += "-child" if child else ""
        lost = flat.get("[lost stack]", [0] * 4)
        self.lost[mix, period] += lost[0]
        # A lost stack is known to the total alone.
        for name in truth.sites if not any(lost) else ():
            self.compare(truth, name, flat[name], (mix, period), what, path)
        named = [sum(flat[name][c] for name in truth.sites) + lost[c] for c in range(4)]
        self.compare(truth, None, named, (mix, period), what, path)
        self.cover_total(profile, truth, period)
        if mix == "sizes" and not any(lost):
            self.cover_functions(truth, flat, period)

    def check_books(self, profile, what, path):
        """What must hold in every single profile."""
        if tuple(profile.types[:4]) != COLUMNS:
            self.fault(f"{what}: sample types {profile.types}", path)
        for row in profile.rows:
            frame = next(profile.frames(row), "")
            if min(row.values) < 0:
                self.fault(f"{what}: negative value in {frame}: {row.values}", path)
            if "inherited" not in row.labels and (row.values[2] > row.values[0] or row.values[3] > row.values[1]):
                self.fault(f"{what}: more in use than allocated in {frame}: {row.values}", path)
        said = profile.comment(IN_USE)
        for column, group in (("inuse_space", 1), ("inuse_objects", 3)):
            if not said or abs(profile.total(column) - int(said[group])) > len(profile.rows) + 1:
                self.fault(f"{what}: rows add up to {profile.total(column)} {column}, the comment says otherwise", path)

    def compare(self, truth, name, values, key, what, path):
        for column in range(4):
            wanted = truth.value(column, name)
            if not wanted:
                if values[column]:
                    self.fault(f"{what}: {values[column]} {COLUMNS[column]} of {name}, who has none", path)
                continue
            variance, expected = truth.variance(column, key[1], name)
            self.cells[(*key, name or "")][column].add(values[column], wanted, variance, expected)
            if key[1] == 1 and values[column] != wanted:
                self.fault(f"{what}: {name or 'sum'} {COLUMNS[column]} is {values[column]}, not {wanted}", path)

    def cover_total(self, profile, truth, period):
        said = profile.comment(IN_USE)
        if not said or period == 1:
            return
        for column, group in ((3, 1), (2, 3)):
            _, expected = truth.variance(column, period)
            if FEW <= expected < math.inf:
                self.cover(("in use, total", few(expected), column), int(said[group]), int(said[group + 1]),
                           truth.value(column))

    def cover_functions(self, truth, flat, period):
        """Blocks of one size: a reader has the interval from the estimate itself."""
        for name, ((size, _, _),) in truth.sites.items():
            p = probability(size, period)
            for column in range(4):
                _, expected = truth.variance(column, period, name)
                if FEW <= expected < math.inf:
                    weight = (size if column % 2 else 1) / p
                    error = math.sqrt(flat[name][column] * weight * (1 - p))
                    kind = "allocated" if column < 2 else "in use"
                    self.cover((f"{kind}, per function", few(expected), column), flat[name][column], error,
                               truth.value(column, name))

    def cover(self, key, estimate, error, truth):
        self.coverage[key][0] += abs(estimate - truth) <= 1.959964 * error + 1
        self.coverage[key][1] += 1

    # ---- a sampler that does not come

    def flood(self, backend):
        """The sampler is stopped while the program works: stacks are lost, bytes are not."""
        period = FLOOD_PERIOD
        with tempfile.TemporaryDirectory(prefix="heaptap-accuracy.") as folder:
            process = self.record(folder, "flood", period, backend, stdin=subprocess.PIPE)
            process.stdout.readline()
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                children = [int(pid) for pid in file.read().split()]
            samplers = []
            for pid in children:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if b"/known\0" not in file.read().split(b"record")[0]:
                        samplers.append(pid)
            for pid in samplers:
                os.kill(pid, 19)
            process.stdin.write(b"go\n")
            process.stdin.flush()
            process.stdout.readline()
            for pid in samplers:
                os.kill(pid, 18)
            process.stdin.write(b"end\n")
            process.stdin.flush()
            try:
                status = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            profiles = profiles_of(folder)
            if status or len(profiles) != 1 or not samplers:
                self.fault(f"flood, {backend}: status {status}, profiles {profiles}, samplers {samplers}")
                return
            self.look_at_flood(f"{folder}/{profiles[0]}", Truth(f"{folder}/truth"), period, backend)

    def look_at_flood(self, path, truth, period, backend):
        profile = Profile(path)
        self.check_books(profile, f"flood, {backend}", path)
        lost = profile.flat().get("[lost stack]", [0] * 4)
        said = profile.comment(r"^samples: (\d+) taken, (\d+) lost stacks")
        line = f"flood with the sampler stopped, {backend:5}: {said[1]} samples, {said[2]} lost stacks;"
        for column in range(4):
            wanted = truth.value(column)
            variance, _ = truth.variance(column, period)
            got, error = profile.total(COLUMNS[column]), math.sqrt(variance)
            line += f" {COLUMNS[column]} {100 * (got / wanted - 1):+.2f} +- {100 * error / wanted:.2f} %;"
            if abs(got - wanted) > LIMIT * error:
                self.fault(f"flood, {backend}: {COLUMNS[column]} is {got}, not {wanted} +- {error:.0f}", path)
        print(line, flush=True)
        if not int(said[2]) or not lost[1]:
            self.fault(f"flood, {backend}: nothing was lost, so this showed nothing: {said[0]}, {lost}", path)

    # ---- the report

    def report(self):
        print("\nBias in % of the truth +- its standard error, all functions together "
              "(*: under 30 expected samples, not judged)\n")
        print(f"{'mix':14} {'period':>8} {'runs':>5} {'lost':>6}  " + "  ".join(f"{c:>18}" for c in COLUMNS) + "  worst z")
        for (mix, period, name), cells in sorted(self.cells.items()):
            if name:
                continue
            worst = max((c.off() / c.error() for key, row in self.cells.items() if key[:2] == (mix, period)
                         for c in row if c.ratios and c.judged() and c.error()), default=0.0)
            texts = "  ".join(f"{c.text() if c.ratios else '-':>18}" for c in cells)
            count = max(len(c.ratios) for c in cells)
            print(f"{mix:14} {period:>8} {count:>5} {self.lost[mix, period]:>6}  {texts}  {worst:.2f}")
        self.report_functions()
        self.report_coverage()
        for key, cells in self.cells.items():
            for column, cell in enumerate(cells):
                if cell.ratios and cell.wrong():
                    self.fault(f"{key[0]} at {key[1]}: {key[2] or 'sum'} {COLUMNS[column]} is off by {cell.text()} %")

    def report_functions(self):
        print("\nBy size of block, at the default period; sd: observed over expected standard deviation\n")
        print(f"{'function':18} " + "  ".join(f"{c:>18}" for c in COLUMNS) + "  sd of bytes, objects")
        for (_, period, name), cells in self.cells.items():
            if period == 512 << 10 and name:
                spreads = " ".join("   -" if not cells[c].ratios or cells[c].spread() is None
                                   else f"{cells[c].spread():.2f}" for c in (1, 0))
                texts = "  ".join(f"{c.text() if c.ratios else '-':>18}" for c in cells)
                print(f"{name:18} {texts}  {spreads}")

    def report_coverage(self):
        print("\nHow often heaptap's own 95 % intervals hold the truth (wanted: 93 to 97 %)\n")
        for (kind, samples, column), (held, looked) in sorted(self.coverage.items()):
            share = held / looked
            error = math.sqrt(0.95 * 0.05 / looked)
            print(f"{kind:24} {samples:>12} samples  {COLUMNS[column]:14} {100 * share:6.2f} +- {100 * error:.2f} % of {looked}")
            # As many standard errors as elsewhere on top: few runs prove little.
            if samples != "30 to 100" and not 0.93 - LIMIT * error <= share <= 0.97 + LIMIT * error:
                self.fault(f"coverage, {kind}, {samples} samples, {COLUMNS[column]}: {100 * share:.2f} %")

    def write(self, path):
        cells = [{"mix": mix, "period": period, "function": name, "column": COLUMNS[i], "runs": len(c.ratios),
                  "bias": c.bias(), "error": c.error(), "spread": c.spread(), "judged": c.judged()}
                 for (mix, period, name), row in self.cells.items() for i, c in enumerate(row) if c.ratios]
        coverage = [{"kind": kind, "samples": samples, "column": COLUMNS[column], "held": held, "of": looked}
                    for (kind, samples, column), (held, looked) in self.coverage.items()]
        with open(path, "w", encoding="ascii") as file:
            json.dump({"cells": cells, "coverage": coverage, "wrong": self.wrong}, file, indent=1)


def main():
    study = Study(sys.argv[1])
    runs = int(os.environ.get("ACCURACY_RUNS", "40"))
    mixes = os.environ.get("ACCURACY_MIXES", " ".join(MIXES)).split()
    periods = [int(p) for p in os.environ.get("ACCURACY_PERIODS", "").split()] or list(PERIODS)
    for backend in BACKENDS:
        study.flood(backend)
    for run in range(runs):
        for period in periods:
            # Period 1 is exact: a few runs show as much as many.
            if period == 1 and run >= max(2, runs // 10):
                continue
            for mix in mixes:
                study.run(mix, period, BACKENDS[run % len(BACKENDS)])
    study.report()
    if "ACCURACY_JSON" in os.environ:
        study.write(os.environ["ACCURACY_JSON"])
    count = sum(study.runs.values())
    print(f"\n{count} runs, {len(study.wrong)} wrong")
    return 1 if study.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
