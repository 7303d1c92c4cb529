# SPDX-License-Identifier: Apache-2.0
# The errors that are given, against the truth: of sums over forked children, which hold the same samples; and numbers
# of samples.
# timeout: 240

# families: 16 times a parent that keeps 1000 blocks of 1000 bytes, and ten children of it that hold these too, and keep
# 100 to 1000 of their own. Each in a folder of its own: out/1 to out/16.
families() {
  for i in $(seq 16); do
    cp "$targets/family" "$i"
  done
  record -q --min-samples 1 -p 16K -b copy -o 'out/%e/' sh -c 'for i in $(seq 16); do ./$i 10 0 0 late; done'
}

test_errors_over_forked_children() {
  families
  for i in $(seq 16); do
    equal 11 "$(ls out/"$i"/*.exit.pb.gz | wc -l)" 'processes'
    "$heaptap" report --json out/"$i" >"report.$i"
    "$heaptap" merge -o "merged.$i" out/"$i"/*.exit.pb.gz 2>/dev/null
    "$heaptap" report --json "merged.$i" >"merged.$i.json"
    [ $((i % 2)) = 0 ] || "$heaptap" diff --json out/"$i" out/$((i + 1)) >"diff.$i"
  done
  profile_check "$(ls out/1/*.exit.pb.gz | tail -1)" merged.1
  python3 - <<'PYTHON'
import json

# The chance that so many squares of a normal distribution have a sum beyond: one in a million. (scipy.stats.chi2)
LEAST, MOST = {8: 0.0, 16: 1.9}, {8: 42.8, 16: 58.1}
TRUTH = 1000 * (11 * 1000 + sum(range(100, 1001, 100)))


def check(what, squares):
    print("%s: %.1f of %d" % (what, sum(squares), len(squares)))
    assert LEAST[len(squares)] <= sum(squares) <= MOST[len(squares)], what


reports = [json.load(open("report.%d" % i)) for i in range(1, 17)]
sums = [report["totals"]["inuse_space"] for report in reports]
check("in use", [((s["all"] - TRUTH) / s["all_error"]) ** 2 for s in sums])
for report, s in zip(reports, sums):
    assert not report["errors_are_upper_limits"]
    assert 900e3 < s["all_error"] < 2200e3, s
for i, s in enumerate(sums):
    merged = json.load(open("merged.%d.json" % (i + 1)))
    assert abs(merged["totals"]["inuse_space"]["all_error"] / s["all_error"] - 1) < 1e-3, merged["totals"]
    assert merged["samples"] == reports[i]["samples"], (merged["samples"], reports[i]["samples"])

diffs = [json.load(open("diff.%d" % i)) for i in range(1, 17, 2)]
check("differences", [(diff["total"]["change"] / diff["total"]["error"]) ** 2 for diff in diffs])
# 6 of 8 at 5% each: one chance in a million.
assert sum(diff["total"]["beyond_chance"] for diff in diffs) < 6
assert sum(any(row["flat"]["beyond_chance"] for row in diff["functions"]) for diff in diffs) < 6
PYTHON
  # What it looks like.
  "$heaptap" report out/1 >report
  matches '^  in use     [0-9.]+ MiB \+- [0-9.]+ [KM]iB in [0-9]+ \+- [0-9]+ objects$' report
  ! grep -q 'upper limits' report || fail 'said without a reason'

  # Sample counts of several: the sum of what each says.
  for file in out/1/*.exit.pb.gz; do
    comment_of "$file"
  done | sed -n 's/^samples: \([0-9]*\) taken.*/\1/p' | awk '{ sum += $1 } END { print sum }' >taken
  equal "$(cat taken)" "$(python3 -c 'import json; print(json.load(open("report.1"))["samples"].split()[0])')" 'samples'
  "$heaptap" report -v merged.1 >report
  matches "^  samples: $(cat taken) taken, [0-9]+ lost stacks" report
  matches '^  of that    [0-9.]+ MiB counted more than once \(shared after fork\)$' report

  # A profile that another tool has added up does not tell its processes apart.
  go tool pprof -proto -output other.pb.gz out/1/*.exit.pb.gz >/dev/null 2>&1
  "$heaptap" report -v other.pb.gz >report
  matches '^  errors are upper limits: the profiles do not say which inherited blocks are the same$' report
  ! grep -q '^  samples:' report || fail 'the number of one profile'
}

# The error behind the total is the total's, that behind the selection its own.
test_errors_of_a_selection() {
  record -q -p 4K -b copy -o x.pb.gz "$targets/family" 0
  "$heaptap" report x.pb.gz >report
  "$heaptap" report --focus spare x.pb.gz >selected
  for what in 'in use' allocated; do
    grep "^  $what " report >whole || fail "no $what"
    matches "^$(sed 's/[+.]/\\&/g' whole)(; selected: .*)?$" selected
  done
  matches '^  allocated .*; selected: [0-9.]+ KiB \+- [0-9.]+ KiB$' selected
  "$heaptap" report --json x.pb.gz >report.json
  "$heaptap" report --json --focus spare x.pb.gz >selected.json
  python3 - <<'PYTHON'
import json
whole, part = (json.load(open(name))["totals"]["alloc_space"] for name in ("report.json", "selected.json"))
assert whole["all_error"] == whole["selected_error"] == part["all_error"] > 1.5 * part["selected_error"], (whole, part)
PYTHON
}

# synthetic FILE TID FUNCTION ALLOC_BYTES: a profile of one sample, with 1000 bytes in use
synthetic() {
  protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >"$1" <<PROTO
sample_type { type: 1 unit: 2 }
sample_type { type: 3 unit: 2 }
period_type { type: 4 unit: 2 }
period: 1
sample { location_id: $3 location_id: 3 value: $4 value: 1000 label { key: 8 num: $2 } }
location { id: 1 line { function_id: 1 } }
location { id: 2 line { function_id: 2 } }
location { id: 3 line { function_id: 3 } }
function { id: 1 name: 5 }
function { id: 2 name: 6 }
function { id: 3 name: 7 }
string_table: ""
string_table: "alloc_space"
string_table: "bytes"
string_table: "inuse_space"
string_table: "space"
string_table: "one"
string_table: "two"
string_table: "main"
string_table: "thread_id"
PROTO
}

test_nothing_changed_only_if_nothing_did() {
  synthetic base.pb 7 1 5000
  synthetic function.pb 7 2 5000
  synthetic alloc.pb 7 1 6000
  "$heaptap" diff base.pb base.pb >diff
  matches '^Nothing changed: every function has the same values in BASE and NEW\.$' diff
  "$heaptap" diff --by thread base.pb base.pb >diff
  matches '^Nothing changed: every thread has the same values in BASE and NEW\.$' diff
  "$heaptap" diff --by thread base.pb function.pb >diff
  matches '^No thread has changed as a whole: without --by, functions have changed\.$' diff
  "$heaptap" diff --cum base.pb function.pb >diff
  matches '^ *\+1000 B .* new  two$' diff
  for options in '' '--by thread'; do
    # shellcheck disable=SC2086
    "$heaptap" diff $options base.pb alloc.pb >diff
    matches '^These values have not changed in any (function|thread), but others have: --sort alloc shows them\.$' diff
    # shellcheck disable=SC2086
    "$heaptap" diff $options --sort alloc base.pb alloc.pb >diff
    matches '^ *\+1000 B ' diff
  done
}

# What a child inherits from its parent's thread stands in that thread's row, with its name. (A child that ends at once
# may have no name for its own.)
test_a_thread_is_one_row() {
  record -q -p 1 -b copy --labels thread -o dir/ "$targets/family" 2 0 0 late
  "$heaptap" report --by thread --sort inuse dir >report
  sed -nE 's/.*  (family \(|thread )([0-9]+)\)?$/\2/p' report >threads
  equal 3 "$(wc -l <threads)" 'rows'
  equal 3 "$(sort -u threads | wc -l)" 'threads'
  matches '^ +2\.9 MiB .*  family \([0-9]+\)$' report
  parent=$(head -1 threads)
  for file in dir/*.exit.pb.gz; do
    "$heaptap" report --by thread --sort inuse "$file" >report
    matches "^ .*  family \\($parent\\)$" report
  done
}
