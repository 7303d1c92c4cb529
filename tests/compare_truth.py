#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_truth.py TRUTH PERIOD < `oracle -func PROFILE`: does a profile agree with what tests/targets/truth.c knows?

At period 1 every number must be equal. Else each must lie within LIMIT standard errors. A block of s bytes is sampled
with probability p = 1 - exp(-s/T) and then counts 1/p objects and s/p bytes (Horvitz-Thompson), so n such blocks have
variances n (1-p)/p and n s^2 (1-p)/p. Where that rests on fewer than FEW expected samples, the normal limit does not hold,
and the row is left to the sum over all functions.
"""
import math
import sys

LIMIT = 4.5  # about 40 rows are looked at in each of many runs; at 3 one run in nine would be beyond it
FEW = 30
COLUMNS = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def read_truth(path):
    for line in open(path):
        name, *numbers, sizes = line.rstrip("\n").split("\t")
        yield name, [int(n) for n in numbers], [tuple(map(int, s.split(":"))) for s in sizes.split(",")]


def read_flat(lines):
    flat = {}
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "func":
            flat[(fields[4], fields[1].split("/")[0])] = int(fields[2])
    return flat


def variance(sizes, column, period):
    """The variance, and how many samples it rests on: a sum that is mostly the variance of 11 expected samples is as
    skewed as those 11, whatever the other sizes add."""
    total = skewed = 0.0
    for size, allocs, inuse in sizes:
        count = inuse if column >= 2 else allocs
        p = -math.expm1(-size / period)
        part = count * (1 - p) / p * (size * size if column % 2 else 1)
        total += part
        if count:
            skewed += part * part / (count * p)
    return total, total * total / skewed if skewed else math.inf


def main():
    period = int(sys.argv[2])
    flat = read_flat(sys.stdin)
    bad = 0
    sums = [[0, 0.0, 0.0] for _ in COLUMNS]
    for name, truth, sizes in read_truth(sys.argv[1]):
        for column, (kind, wanted) in enumerate(zip(COLUMNS, truth)):
            got = flat.get((name, kind), 0)
            square, expected = variance(sizes, column, period) if period > 1 else (0.0, math.inf)
            sums[column][0] += wanted
            sums[column][1] += got
            sums[column][2] += square
            error = math.sqrt(square)
            wrong = abs(got - wanted) > LIMIT * error + 1 if period > 1 else got != wanted
            if wrong and expected >= FEW:
                bad += 1
            if wrong or "-v" in sys.argv:
                z = (got - wanted) / error if error else 0.0
                note = "WRONG" if wrong and expected >= FEW else "few samples" if expected < FEW else ""
                print(f"{name:16} {kind:14} truth {wanted:12} profile {got:12} +- {error:.0f} ({z:+.2f}) {note}")
    for kind, (wanted, got, square) in zip(COLUMNS, sums):
        error = math.sqrt(square)
        wrong = abs(got - wanted) > LIMIT * error + len(COLUMNS) if period > 1 else got != wanted
        bad += wrong
        z = (got - wanted) / error if error else 0.0
        print(f"{'sum':16} {kind:14} truth {wanted:12} profile {got:12.0f} +- {error:.0f} ({z:+.2f}) {'WRONG' if wrong else ''}")
    return 1 if bad else 0


sys.exit(main())
