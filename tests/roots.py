#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""go tool pprof -traces -unit=B PROFILE | roots.py REGEX: percentage of the bytes in stacks whose two outermost frames,
written "outermost < next", match; on stderr those of the rest."""
import re
import sys

START = re.compile(r"^ *(-?[0-9.]+)B? {2,}(\S.*)$")


def main():
    wanted = re.compile(sys.argv[1])
    stacks, inside = [], False
    for line in sys.stdin:
        line = line.rstrip("\n")
        if line.startswith("-----------+"):
            inside = True
        elif inside and (match := START.match(line)):
            stacks.append([float(match[1]), match[2], ""])
        elif inside and line.startswith("             ") and stacks:
            stacks[-1][1:] = line.strip(), stacks[-1][1]
    total = sum(size for size, _, _ in stacks)
    if not total:
        sys.exit("roots.py: no stacks")
    rest = {}
    for size, outermost, following in stacks:
        root = f"{outermost} < {following}"
        if not wanted.search(root):
            rest[root] = rest.get(root, 0) + size
    for root, size in sorted(rest.items(), key=lambda item: -item[1])[:10]:
        print(f"{100 * size / total:.3f} % end at {root}", file=sys.stderr)
    print(f"{100 - 100 * sum(rest.values()) / total:.3f}")


main()
