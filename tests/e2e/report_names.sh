# SPDX-License-Identifier: Apache-2.0
# Names that people can read: report, diff and the flame graph's boxes; what other programs read stays in full.
# timeout: 240

cpp_profile() {
  record_whole cpp.pb.gz -p 4K "$targets/own_code"
}

# total_of OPTIONS...: the header's sums
sums_of() {
  "$heaptap" report "$@" | grep -E '^  (in use|allocated)'
}

test_template_arguments_are_folded() {
  cpp_profile
  for view in '' --tree --inverted --leaks --cum '--sort objects' --lines; do
    # shellcheck disable=SC2086
    "$heaptap" report -n all $view cpp.pb.gz >out
    matches 'std::vector::' out
    ! grep -q '[<(]std::\|allocator<' out || { cat out >&2; fail "template arguments with '$view'"; }
    # shellcheck disable=SC2086
    "$heaptap" report -n all --full-names $view cpp.pb.gz >full
    matches 'std::vector<.*std::allocator<' full
  done
  equal "$(sums_of cpp.pb.gz)" "$(sums_of --full-names cpp.pb.gz)" 'sums'
  "$heaptap" diff -n all cpp.pb.gz cpp-peak.pb.gz --sort alloc >out
  ! grep -q 'allocator<' out || fail 'template arguments in diff'
}

# What is read by programs has every name as the profile has it.
test_programs_get_full_names() {
  cpp_profile
  "$heaptap" report --json cpp.pb.gz | grep -q 'std::allocator\\u003c' || fail 'short names in JSON'
  for format in folded speedscope csv json; do
    "$heaptap" export -f $format cpp.pb.gz | grep -qE 'std::allocator(<|\\u003c)' || fail "short names in $format"
  done
}

test_the_flame_graph_has_both() {
  cpp_profile
  for option in '' --full-names; do
    # shellcheck disable=SC2086
    "$heaptap" export $option -f flamegraph cpp.pb.gz >page.html
    python3 - "$option" <<'PYTHON'
import json, re, sys
data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', open("page.html").read(), re.S)[1])
assert len(data["labels"]) == len(data["names"])
shown = [label or name for label, name in zip(data["labels"], data["names"])]
assert any("std::allocator<" in name for name in data["names"])
if sys.argv[1]:
    assert shown == data["names"]
else:
    assert not [name for name in shown if "<" in name], shown
    assert "std::vector::resize" in shown and "load_users" in shown
PYTHON
  done
}

# Filters match a name as it is shown, and as it is.
test_filters_match_both_forms() {
  cpp_profile
  for re in 'std::vector::resize' 'std::vector<int, std::allocator<int> >::resize'; do
    "$heaptap" report --focus "$re" cpp.pb.gz >out
    matches 'in use .*selected: [0-9.]+ MiB' out
  done
}
