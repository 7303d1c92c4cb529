#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_truth.py TRUTH PERIOD < `oracle -func PROFILE`: does a profile agree with what tests/targets/truth.c knows?

At period 1 every number must be equal. Else a block of s bytes is sampled with probability p = 1 - exp(-s/T) and then counts
1/p objects and s/p bytes (Horvitz-Thompson), each block for itself. How far the sum of such blocks may be from the truth is
Chernoff's bound with the exact moment generating function of every block, for few samples as for many: beyond it is no more
than one run in a million, of all rows together.

What is under [lost stack] may be any function's: it is allowed for below, never above.
"""
import math
import sys

ONCE_IN = 1e6
COLUMNS = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
LOST = "[lost stack]"


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


def blocks_of(sizes, column, period):
    """(number, value, p) of the blocks of each size."""
    for size, allocs, inuse in sizes:
        count = inuse if column >= 2 else allocs
        if count:
            yield count, size if column % 2 else 1, -math.expm1(-size / period)


def variance(blocks):
    return sum(count * (1 - p) / p * value * value for count, value, p in blocks)


def log_moment(weight, value, p):
    """log E exp(weight (X - value)) of one block."""
    if p == 1:
        return 0.0
    x = weight * value / p
    if x > 0:
        return x - weight * value + math.log(p + (1 - p) * math.exp(-x))
    return math.log1p(p * math.expm1(x)) - weight * value


def bound(blocks, sign, rows):
    """The distance above (sign 1) or below (-1) the truth that is exceeded once in 2 ONCE_IN rows: the least, over all
    weights w, of (sum of log moments + log(2 ONCE_IN rows)) / w."""
    square, wanted = variance(blocks), math.log(2 * ONCE_IN * rows)
    if not square:
        return 0.0

    def distance(power):
        weight = math.sqrt(2 * wanted / square) * math.exp(power)
        return (sum(count * log_moment(sign * weight, value, p) for count, value, p in blocks) + wanted) / weight

    low, high = -12.0, 12.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if distance(left) < distance(right):
            high = right
        else:
            low = left
    return distance(low)


def main():
    period = int(sys.argv[2])
    flat = read_flat(sys.stdin)
    truth = list(read_truth(sys.argv[1]))
    rows = (len(truth) + 1) * len(COLUMNS)
    bad = 0

    def check(name, column, wanted, got, blocks, rounding):
        nonlocal bad
        kind = COLUMNS[column]
        lost = flat.get((LOST, kind), 0)
        below, above = (bound(blocks, sign, rows) + rounding if period > 1 else 0 for sign in (-1, 1))
        wrong = got > wanted + above or got + lost < wanted - below
        bad += wrong
        if wrong or name == "sum" or "-v" in sys.argv:
            error = math.sqrt(variance(blocks)) if period > 1 else 0.0
            print(f"{name:16} {kind:14} truth {wanted:12} profile {got:12} +- {error:.0f} ({(got - wanted) / (error or 1):+.2f}), "
                  f"allowed -{below:.0f} +{above:.0f}, {lost} lost {'WRONG' if wrong else ''}")

    for column, kind in enumerate(COLUMNS):
        every, found = [], 0
        for name, numbers, sizes in truth:
            blocks = list(blocks_of(sizes, column, period))
            every += blocks
            found += flat.get((name, kind), 0)
            check(name, column, numbers[column], flat.get((name, kind), 0), blocks, 1)
        check("sum", column, sum(numbers[column] for _, numbers, _ in truth), found, every, len(truth))
    return 1 if bad else 0


sys.exit(main())
