# SPDX-License-Identifier: Apache-2.0
# heaptap report against go tool pprof: the same totals and the same flat and cum for every function. (-symbolize=none:
# otherwise pprof shortens names that equal the system's name, and adds up functions that then look alike.)
# timeout: 240

# same_as_pprof PROFILE TYPE SORT
same_as_pprof() {
  "$heaptap" report --json --sort "$3" "$1" >report.json
  go tool pprof -symbolize=none -top -unit=B -nodecount=0 -nodefraction=0 -sample_index="$2" "$1" 2>/dev/null |
    python3 "$top/tests/readers/compare_top.py" report.json "$2" || fail "$1, $2: not what pprof says"
}

all_four() {
  same_as_pprof "$1" inuse_space inuse
  same_as_pprof "$1" inuse_objects inuse-objects
  same_as_pprof "$1" alloc_space alloc
  same_as_pprof "$1" alloc_objects objects
}

test_our_profiles() {
  record -q -p 4K "$targets/leaky" 300000 64 >log 2>&1
  all_four "$(only heaptap.leaky.*.exit.pb.gz)"
  record -q -p 4K "$targets/templates" >log 2>&1
  all_four "$(only heaptap.templates.*.exit.pb.gz)"
}

test_go_profile() {
  all_four "$top/tests/readers/go_heap.pb.gz"
}

tcmalloc_profile() {
  protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto \
    <"$top/tests/readers/tcmalloc_heap.txt" | gzip -n >tcmalloc.pb.gz
}

test_tcmalloc_profile() {
  tcmalloc_profile
  same_as_pprof tcmalloc.pb.gz space inuse
  same_as_pprof tcmalloc.pb.gz objects inuse-objects
  "$heaptap" report tcmalloc.pb.gz >out
  matches 'no standard errors can be given' out
}

test_difference_is_pprofs() {
  local requests
  for requests in 1000 3000; do
    record_whole base.$requests.pb.gz -p 1 "$targets/leaky" $requests 100
  done
  "$heaptap" diff --json base.1000.pb.gz base.3000.pb.gz >diff.json
  go tool pprof -symbolize=none -top -unit=B -nodecount=0 -nodefraction=0 -diff_base=base.1000.pb.gz base.3000.pb.gz 2>/dev/null |
    awk '/remember_request/ { print $1 }' >theirs
  python3 - <<'PYTHON' >ours
import json
for function in json.load(open("diff.json"))["functions"]:
    if function["name"] == "remember_request":
        print(f"{function['flat']['change']:.0f}B")
PYTHON
  cmp theirs ours
  equal 200000B "$(cat ours)" 'growth of 2000 requests of 100 bytes'
  "$heaptap" diff --normalize base.1000.pb.gz base.1000.pb.gz >out
  matches '^ +0 B .*\(total\)' out
}

# The errors we work out from sums against those that the sampler keeps from every sample.
test_errors_are_those_of_the_samples() {
  profile=leaky.pb.gz
  record_whole $profile -p 64K "$targets/leaky" 400000 64
  wanted=$(comment_of "$profile" | sed -n 's/^in use: [0-9]* +- \([0-9]*\) bytes.*/\1/p')
  "$heaptap" report --json "$profile" >report.json
  got=$(python3 -c 'import json; print(json.load(open("report.json"))["totals"]["inuse_space"]["selected_error"])')
  awk -v wanted="$wanted" -v got="$got" 'BEGIN { exit !(got > wanted * 0.95 && got < wanted * 1.05) }' ||
    fail "standard error: the samples say $wanted, report says $got"
}

test_merge_is_pprofs() {
  record -q -p 1 -o a.pb.gz "$targets/leaky" 1000 100 2>log
  record -q -p 1 -o b.pb.gz "$targets/leaky" 500 48 2>log
  "$heaptap" merge -o ours.pb.gz a.pb.gz b.pb.gz
  "$readers/check_profile" ours.pb.gz >check.log || { cat check.log >&2; fail 'what was merged is not valid'; }
  "$heaptap" merge -o merged.pb.gz a.pb.gz b.pb.gz "$top/tests/readers/go_heap.pb.gz"
  "$readers/oracle" -func merged.pb.gz >ours
  go tool pprof -proto -output=theirs.pb.gz a.pb.gz b.pb.gz "$top/tests/readers/go_heap.pb.gz" >/dev/null 2>&1
  "$readers/oracle" -func theirs.pb.gz >theirs
  sed -i '/^samples/d' ours theirs
  cmp ours theirs
}

# Everything in it is of the peak then: with the totals of the last profile "all" and "selected" would differ.
test_json_of_the_peak() {
  local options
  record -q -p 1 -i 0 -o "%n.pb.gz" "$targets/snapshot_peak" spike 1000 400 >truth
  for options in '' --tree; do
    # shellcheck disable=SC2086
    "$heaptap" report --json --sort peak $options exit.pb.gz peak.pb.gz >peak.json
    python3 - <<'PYTHON'
import json
report = json.load(open("peak.json"))
assert report["cause"].startswith("peak"), report["cause"]
if "totals" in report:
    for sums in report["totals"].values():
        assert sums["all"] == sums["selected"], report["totals"]
    total = report["totals"]["inuse_space"]["all"]
else:
    total = report["total"]
assert total == 1600000, total
PYTHON
  done
}
