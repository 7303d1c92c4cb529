# SPDX-License-Identifier: Apache-2.0
"""compare_top.py REPORT.json TYPE < `go tool pprof -top -unit=B -nodecount=0 -nodefraction=0 -sample_index=TYPE`

Every function's flat and cum, and the total, must be what heaptap report --json says.
"""
import json
import re
import sys
from collections import Counter

report, kind = json.load(open(sys.argv[1])), sys.argv[2]


def number(text):
    return int(float(text.rstrip("B")))


theirs, total = Counter(), None
for line in sys.stdin:
    match = re.search(r"of (-?[0-9.e+]+)B? total", line)
    if match:
        total = number(match.group(1))
    match = re.match(r"\s*(-?[0-9.e+]+)B?\s+\S+%?\s+\S+%\s+(-?[0-9.e+]+)B?\s+\S+%?\s+(.*)$", line)
    if match:
        name = re.sub(r" \((partial-)?inline\)$", "", match.group(3).strip())
        theirs[(name, number(match.group(1)), number(match.group(2)))] += 1
ours = Counter()
for function in report["functions"]:
    sums = function[kind]
    if sums["flat"] or sums["cum"]:
        ours[(function["name"].strip(), sums["flat"], sums["cum"])] += 1
for row in (theirs - ours).items():
    print("only pprof:", row)
for row in (ours - theirs).items():
    print("only heaptap:", row)
print(f"{kind}: {sum(theirs.values())} functions, total {total}")
same_total = total == report["totals"][kind]["all"]
if not same_total:
    print("total differs:", total, report["totals"][kind]["all"])
sys.exit(theirs != ours or not same_total or (total != 0 and not theirs))
