# SPDX-License-Identifier: Apache-2.0
"""How the cost grows with threads, live samples, samples ever taken, processes, stack depth, heap size, distinct stacks.

Every point is measured under a preload that only forwards and under heaptap, one after the other, `rounds` times. The
curve is the ratio of the two, which a flat cost leaves flat.
"""
import os
import re
import statistics
import subprocess

import contenders as known
import measure
from contenders import heaptap
from measure import Contender, Workload

KIB = 1024
ONLY = os.environ.get("BENCH_CURVES", "")


class Curve:
    """base, ours: contenders; value: what is compared; absolute: the curve is ours, not the ratio."""

    def __init__(self, name, axis, points, command, base, ours, value, note, environment=None, absolute=False):
        self.name, self.axis, self.points, self.command = name, axis, points, command
        self.base, self.ours, self.value, self.note, self.environment = base, ours, value, note, environment
        self.absolute = absolute


def pair_ns(run):
    return float(run["said"].split()[1])


def cpu(run):
    return run["target_cpu"] + run["tool_cpu"]


def row(x, pairs):
    ratios = [ours / base for base, ours in pairs]
    return {"x": x, "pairs": pairs, "base": statistics.median(p[0] for p in pairs),
            "ours": statistics.median(p[1] for p in pairs), "ratio": statistics.median(ratios),
            "low": min(ratios), "high": max(ratios)}


class Curves:
    """data: {name of the curve: what plot() and tables() want}; single: {what: figures, one a run}"""

    def __init__(self, build, out, quick, say):
        self.build, self.out, self.quick, self.say, self.data, self.single = build, out, quick, say, {}, {}

    def extend(self, data, single):
        """By those of another run."""
        for name, curve in data.items():
            mine = self.data.setdefault(name, {**curve, "rows": []})
            pairs = {r["x"]: r["pairs"] for r in mine["rows"]}
            for r in curve["rows"]:
                pairs[r["x"]] = pairs.get(r["x"], []) + r["pairs"]
            mine["rows"] = [row(x, pairs[x]) for x in sorted(pairs)]
        for name, figures in single.items():
            self.single.setdefault(name, []).extend(figures)

    def all(self):
        build, n = self.build, (50 if self.quick else 1)
        loops = f"{build}/bench/loops"
        forward = Contender("forward", environment={"LD_PRELOAD": f"{build}/bench/forward"})
        default = Contender("512K", heaptap(build, "auto", "512K"))
        copy = Contender("512K", heaptap(build, "copy", "512K"))
        fine = Contender("16K", heaptap(build, "auto", "16K"))
        walk = Contender("walk 1", heaptap(build, "walk", "1"))

        def loop(kind, pairs, *options):
            return lambda x: [loops, kind, "1", str(pairs // n), *(o.format(int(x)) for o in options)]

        return [
            Curve("threads", "threads", (1, 4, 16, 64, 256), lambda x: [loops, "small", str(x), str(30000000 // n)],
                  forward, default, pair_ns, "CPU per pair at the default period", known.ARENAS),
            Curve("live", "live samples", (1000, 10000, 100000, 1000000), loop("small", 30000000, "live={}"),
                  forward, copy, pair_ns, "CPU per unsampled pair"),
            Curve("taken", "samples taken and freed before", (1, 10000, 100000, 1000000, 10000000),
                  loop("small", 30000000, "churn={}"), forward, copy, pair_ns, "CPU per unsampled pair"),
            # Each does the same, some 40 ms of it: the curve is flat where a process costs the same beside many others.
            Curve("processes", "processes", (1, 10, 50, 200),
                  lambda x: ["/bin/sh", "-c", f"for i in $(seq {x}); do {loops} small 1 {2000000 // n} & done >/dev/null; wait"],
                  forward, default, cpu, "CPU of all processes and the sampler at the default period"),
            Curve("depth", "frames above the loop", (1, 10, 100, 1000), loop("batch", 8000000, "deep={}"),
                  forward, default, cpu, "CPU of target and sampler at the default period, 2 KiB a block"),
            Curve("heap", "heap, MiB", (1, 64, 1024, 8192),
                  lambda x: [loops, "batch", "1", str(8000000 // n), f"heap={x * KIB * KIB // (8 if self.quick else 1)}"],
                  forward, default, pair_ns, "CPU per pair at the default period"),
            Curve("stacks", "distinct stacks", (10, 1000, 100000),
                  lambda x: [f"{build}/bench/stacks", str(x if not self.quick else min(x, 1000))],
                  forward, fine, lambda run: run["sampler_kib"] or 1, "peak RSS of the sampler, KiB (its writer, a child, not counted)",
                  absolute=True),
            Curve("walk-depth", "frames above the loop", (1, 10, 100, 1000), loop("pingpong", 1000000, "deep={}"),
                  forward, walk, pair_ns, "CPU ns of the target per pair, each walked (-p 1)", absolute=True),
            Curve("walk-threads", "threads", (1, 4, 16, 64, 256), lambda x: [loops, "small", str(x), str(6000000 // n)],
                  forward, walk, pair_ns, "CPU ns of the target per pair, each walked (-p 1)", known.ARENAS, absolute=True),
            # A region has room for 4 M live samples: of the last point most are counted as having none.
            Curve("walk-live", "live blocks", (10000, 100000, 1000000, 10000000), loop("small", 3000000, "live={}"),
                  forward, walk, pair_ns, "CPU ns of the target per pair, each walked (-p 1)", absolute=True),
        ]

    def run(self, rounds):
        for curve in (c for c in self.all() if re.search(ONLY, c.name)):
            rows = []
            for x in curve.points if not self.quick else curve.points[:2]:
                pairs = []
                for _ in range(rounds):
                    try:
                        base, ours = (measure.run(self.build, Workload(f"{curve.name} {x}", curve.command(x), curve.environment), c)
                                      for c in (curve.base, curve.ours))
                        pairs.append((curve.value(base), curve.value(ours)))
                    except measure.Failed as error:
                        self.say(f"SKIPPED growth: {error}")
                if pairs:
                    rows.append(row(x, pairs))
            self.data[curve.name] = {"axis": curve.axis, "note": curve.note, "absolute": curve.absolute, "rows": rows}
            self.say(f"growth with {curve.axis}: " + ", ".join(f"{r['x']}: {r['ratio']:.2f}" for r in rows))

    def plot(self):
        for name, curve in self.data.items():
            if not curve["rows"]:
                continue
            absolute = curve["absolute"]
            data = "\n".join(f"{r['x']} {r['ours'] if absolute else r['ratio']} {r['ours'] if absolute else r['low']} "
                             f"{r['ours'] if absolute else r['high']}" for r in curve["rows"])
            script = (f"set terminal svg size 640,400 background 'white'\nset output '{self.out}/{name}.svg'\n"
                      f"set xlabel '{curve['axis']}'\nset logscale x\nset yrange [0:]\nset grid\nunset key\n"
                      f"set title '{curve['note']}{'' if absolute else ', over the forwarding preload'}'\n"
                      f"$data << EOD\n{data}\nEOD\n"
                      "plot $data using 1:2:3:4 with yerrorlines linewidth 2 pointtype 7\n")
            try:
                subprocess.run(["gnuplot"], input=script, text=True, check=True, env=measure.CLEAN)
            except (OSError, subprocess.CalledProcessError) as error:
                self.say(f"SKIPPED plot of {name}: {error}")

    def tables(self):
        text = ""
        for name, curve in self.data.items():
            text += f"\n### Growth with {curve['axis']}: {curve['note']}\n\n![{name}]({name}.svg)\n\n"
            text += f"| {curve['axis']} | forward | heaptap | ratio |\n|---|---|---|---|\n"
            for r in curve["rows"]:
                text += f"| {r['x']} | {r['base']:.2f} | {r['ours']:.2f} | {r['ratio']:.2f} [{r['low']:.2f}..{r['high']:.2f}] |\n"
        return text

    def goals(self):
        """(what, goal, figure, met)"""
        taken = {r["x"]: r for r in self.data.get("taken", {"rows": []})["rows"]}
        if 1 in taken and 1000000 in taken:
            yield ("unsampled pair after 1 M samples, over the same before", "no change",
                   f"{taken[1000000]['ratio']:.2f} [{taken[1000000]['low']:.2f}..{taken[1000000]['high']:.2f}] after, "
                   f"{taken[1]['ratio']:.2f} [{taken[1]['low']:.2f}..{taken[1]['high']:.2f}] before",
                   taken[1000000]["low"] <= taken[1]["high"])
        stacks = {r["x"]: r for r in self.data.get("stacks", {"rows": []})["rows"]}
        if 100000 in stacks:
            kib = stacks[100000]["ours"]
            yield "sampler's RSS, 100 k distinct stacks", "<= 64 MiB", f"{kib / KIB:.1f} MiB", kib <= 64 * KIB
        if self.single.get("idle"):
            idle = [figure * 100 for figure in self.single["idle"]]
            yield ("sampler's CPU while the target sleeps", "< 0.1 %", ", ".join(f"{figure:.3f}" for figure in idle) + " %",
                   statistics.median(idle) < 0.1)
        if self.single.get("written"):
            most = max(self.single["written"])
            yield "written in 60 s of work, -i 10s", "<= 2 MiB", f"{most / KIB / KIB:.2f} MiB", most <= 2 << 20

    def sleeping(self, seconds):
        command = ["/usr/bin/python3", "-c", f"import time; x = [bytearray(1000000) for _ in range(50)]; time.sleep({seconds})"]
        return measure.run(self.build, Workload("sleep", command), Contender("512K", heaptap(self.build, "auto", "512K")))

    def idle(self):
        """Two lengths of sleep: what start and end cost falls out."""
        short, long = (self.sleeping(seconds)["tool_cpu"] for seconds in (1, 21))
        return max(0.0, long - short) / 20

    def written(self):
        code = ("import time, json\nend = time.time() + 60\nwhile time.time() < end:\n"
                "    json.loads(json.dumps({str(i): [i, {'x': i}] for i in range(20000)}))\n")
        run = measure.run(self.build, Workload("minute", ["/usr/bin/python3", "-c", code]),
                          Contender("512K", heaptap(self.build, "auto", "512K", "-i", "10s")))
        return run["written"]

    def run_single(self):
        if not self.quick and not ONLY:
            self.single = {"idle": [self.idle()], "written": [self.written()]}
