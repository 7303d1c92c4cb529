#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a process' sums with those that it had before: daemon_sums.py PROFILE ROWS SUMS; status 1: they are wrong.

ROWS is `report --json` of the profile. Exact at period 1, of a program that holds 1,000 blocks of 1,000 bytes by hold(): in
use by hold is 1,000,000 in any case. What was allocated in all never falls, and of a program that allocates nothing more it
stays the same to the byte; of hold it is 1,000,000, less what stands under a marker ([lost stack], sampled before restart).
SUMS has a line for each comparison; daemon_sums.py SUMS adds them up.
"""

import json
import sys


def add_up(path):
    with open(path, encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    steady = [row for row in rows if row[1] == "steady"]
    print(f"{len(rows)} profiles, {len(steady)} of processes that allocated nothing more: allocated the same in"
          f" {sum(row[5] == 'same' for row in steady)}; by hold the same in {sum(row[6] == '0' for row in rows)}, less in"
          f" {sum(int(row[6]) > 0 for row in rows)}, all of it under markers;"
          f" wrong {sum(row[7] == 'wrong' for row in rows)}")


def main():
    if len(sys.argv) == 2:
        return add_up(sys.argv[1])
    profile, path, sums = sys.argv[1:]
    pid = profile.rsplit("/", 1)[1].split(".")[1]
    with open(path, encoding="utf-8") as text:
        report = json.load(text)
    rows = {row["name"]: row for row in report["functions"]}
    hold = rows.get("hold", {"inuse_space": {"flat": 0}, "alloc_space": {"flat": 0}})
    total = report["totals"]["alloc_space"]["all"]
    markers = total - sum(row["alloc_space"]["flat"] for name, row in rows.items() if not name.startswith("["))
    before, held = None, hold["alloc_space"]["flat"]
    steady = markers < 10000  # the program's own few blocks
    try:
        with open(sums, encoding="utf-8") as lines:
            for line in lines:
                if line.split()[0] == pid:
                    held = int(line.split()[3]) if before is None else held
                    before, steady = int(line.split()[2]), line.split()[1] == "steady"
    except FileNotFoundError:
        pass
    same = before is None or total == before
    short = held - hold["alloc_space"]["flat"]
    wrong = hold["inuse_space"]["flat"] != 1000000 or (before or 0) > total or not 0 <= short <= markers
    wrong = wrong or (steady and not same)
    with open(sums, "a", encoding="utf-8") as out:
        out.write(f"{pid} {'steady' if steady else 'busy'} {total} {hold['alloc_space']['flat']} {markers}"
                  f" {'same' if same else 'other'} {short} {'wrong' if wrong else 'right'}\n")
    return sys.exit(wrong)


main()
