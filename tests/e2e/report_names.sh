# SPDX-License-Identifier: Apache-2.0
# Names that people can read: report, diff and the flame graph's boxes; what other programs read stays in full.
# timeout: 240

cpp_profile() {
  record_whole cpp.pb.gz -p 4K "$targets/own_code"
}

# matches_text REGEX TEXT
matches_text() {
  [[ $2 =~ $1 ]] || fail "'$2' does not match '$1'"
}

# sums_of OPTIONS...: the header's sums
sums_of() {
  "$heaptap" report "$@" | grep -E '^  (in use|allocated)'
}

test_template_arguments_are_folded() {
  cpp_profile
  for view in '' --tree --inverted --leaks --cum '--sort objects' --lines; do
    # shellcheck disable=SC2086
    "$heaptap" report -n all $view cpp.pb.gz >out
    matches 'std::[a-z_:0-9]+::' out
    ! grep -q '[<(]std::\|allocator<' out || { cat out >&2; fail "template arguments with '$view'"; }
    # shellcheck disable=SC2086
    "$heaptap" report -n all --full-names $view cpp.pb.gz >full
    matches 'std::[a-z_:0-9]+<.*allocator<' full
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
names, labels = data["frames"]["name"], data["frames"]["label"]
assert len(labels) == len(names)
shown = [label or name for label, name in zip(labels, names)]
assert any("std::allocator<" in name for name in names)
if sys.argv[1]:
    assert shown == names
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

# first_row FILE OPTIONS...: what stands after the numbers in the first row of the first table
first_row() {
  "$heaptap" report --sort alloc "$@" >out
  awk '/^ +flat/ { getline; print; exit }' out | sed -E 's/^ +[0-9.]+ [KMGT]?i?B +\S+( samples?)? +[0-9.]+% +[0-9.]+ [KMGT]?i?B  //'
}

# shares_of FILE OPTIONS...: 1 if a whole table's shares add up to 100 %, each of them rounded to a tenth
shares_of() {
  "$heaptap" report --sort alloc -n all "$@" | sed -nE 's/^ +[0-9.]+ [KMGT]?i?B.* ([0-9.]+)% +[0-9.]+ [KMGT]?i?B  .*/\1/p' |
    awk '{ sum += $1 } END { off = 0.05 * NR + 0.001; print (NR > 0 && sum >= 100 - off && sum <= 100 + off) }'
}

test_rows_begin_at_own_code_in_cpp() {
  cpp_profile
  matches_text '^load_users > std::vector::resize [0-9]+%  < main' "$(first_row cpp.pb.gz)"
  matches '  copy_rows > xmalloc  < main' out
  matches '  read_lines > std::vector::(push_back|emplace_back)' out
  ! grep -E '^ +[0-9.]+ .*%  +[0-9.]+ .iB  (std::|xmalloc)' out || fail 'a row of the library'
  COLUMNS=80 "$heaptap" report cpp.pb.gz >out
  equal 0 "$(awk 'length > 80' out | wc -l)" 'lines wider than 80 columns'
  equal 1 "$(shares_of cpp.pb.gz)"
  # As it is, on request.
  matches_text '^std::(__cxx11::basic_string|vector)' "$(first_row cpp.pb.gz --all-frames)"
  equal 1 "$(shares_of cpp.pb.gz --all-frames)"
  equal "$(sums_of cpp.pb.gz)" "$(sums_of cpp.pb.gz --all-frames)" 'sums'
  "$heaptap" diff --sort alloc cpp.pb.gz cpp.pb.gz >out
  matches '^    change .* function > callee < callers$' out
}

test_rows_begin_at_own_code_in_rust() {
  command -v /usr/bin/rustc >/dev/null || skip 'no rustc'
  cat >own.rs <<'RUST'
use std::collections::HashMap;
#[inline(never)]
fn load_users(count: usize) -> HashMap<usize, String> {
    let mut users = HashMap::new();
    for i in 0..count {
        users.insert(i, format!("user number {} of many, with a long name", i).repeat(4));
    }
    users
}
fn main() {
    println!("{}", load_users(20000).len());
}
RUST
  /usr/bin/rustc -g -C opt-level=1 own.rs -o own 2>log || fail "rustc: $(cat log)"
  record_whole rust.pb.gz -p 4K ./own >log
  matches_text '^own::load_users > (alloc|std|hashbrown)::' "$(first_row rust.pb.gz)"
  equal 1 "$(shares_of rust.pb.gz)"
}

# What the programs in the file `pids` have left.
forget_perf_maps() {
  while read -r pid _; do
    rm -f "/tmp/perf-$pid.map"
  done <pids
}

# Python's own names need 3.12; without them no row is a wrapper, nor a frame twice.
test_rows_begin_at_own_code_in_python() {
  cat >own.py <<'PYTHON'
def load_users(count):
    return [{"name": "user%d" % i * 20, "marks": list(range(60))} for i in range(count)]
users = load_users(8000)
import os
print(os.getpid())
PYTHON
  python=$(ls /usr/bin/python3.1[2-9] ~/.pyenv/versions/3.1[2-9].*/bin/python3.1[2-9] 2>/dev/null | head -n 1)
  if [ -n "$python" ]; then
    PYTHONMALLOC=malloc record -q -p 16K -o py.pb.gz "$python" -X perf own.py >pids
    forget_perf_maps
    matches_text '^py::load_users:.*own\.py' "$(first_row py.pb.gz)"
    equal 1 "$(shares_of py.pb.gz)"
  fi
  record_whole python3.pb.gz -p 16K /usr/bin/python3 own.py
  "$heaptap" report -n 5 python3.pb.gz >out
  ! grep -E '%  +[0-9.]+ .iB  (_?Py[A-Za-z]*_(Raw)?(Malloc|Calloc|Realloc)|\[|[^ ]*\+0x)' out || fail 'a row of the allocator'
  ! grep -E '([A-Za-z_]+) < \1( |$)' out || fail 'a frame twice'
}

test_rows_begin_at_own_code_in_node() {
  cat >own.js <<'JS'
function loadUsers(count) {
  const users = [];
  for (let i = 0; i < count; i++)
    users.push(Buffer.allocUnsafeSlow(8000).fill(i));
  return users;
}
console.log(process.pid, loadUsers(8000).length);
JS
  record_whole js.pb.gz -p 64K node --perf-basic-prof own.js >pids
  forget_perf_maps
  matches_text '^loadUsers .*own\.js:1:19' "$(first_row js.pb.gz)"
  matches_text '^JS:.loadUsers .*own\.js:1:19' "$(first_row js.pb.gz --full-names)"
  equal 1 "$(shares_of js.pb.gz)"
}

# What an installed package allocates is its caller's, and callers are functions of the script.
test_rows_begin_at_own_code_above_a_package() {
  mkdir -p site-packages/frames node_modules/frames
  echo 'def take(n): return bytearray(n)' >site-packages/frames/__init__.py
  cat >own.py <<'PYTHON'
import os, frames
kept = []
def build_report(n): kept.append(frames.take(9000 + n))
def serve():
    for i in range(2000): build_report(i % 7)
serve()
print(os.getpid())
PYTHON
  python=$(ls /usr/bin/python3.1[2-9] ~/.pyenv/versions/3.1[2-9].*/bin/python3.1[2-9] 2>/dev/null | head -n 1)
  if [ -n "$python" ]; then
    PYTHONPATH=$PWD/site-packages record -q -p 64K -o py.pb.gz "$python" -X perf own.py >pids
    forget_perf_maps
    COLUMNS=400 matches_text '^py::build_report:.*own\.py > py::take:.*site-packages/frames/__init__\.py( [0-9]+%)? > \S+( [0-9]+%)?  < py::serve:\S* < py::<module>:\S*own\.py' \
      "$(first_row py.pb.gz)"
  fi
  echo 'exports.take = function take(n) { return Buffer.allocUnsafeSlow(n).fill(1); };' >node_modules/frames/index.js
  cat >own.js <<'JS'
const frames = require('frames'), kept = [];
function buildReport(n) { kept.push(frames.take(9000 + n)); }
function serve() { for (let i = 0; i < 4000; i++) buildReport(i % 7); }
serve();
console.log(process.pid);
JS
  record_whole js.pb.gz -p 64K node --perf-basic-prof-only-functions --interpreted-frames-native-stack own.js >pids
  forget_perf_maps
  matches_text '^buildReport .*own\.js:2:21 > (take|alloc)' "$(first_row js.pb.gz)"
  matches_text ' < serve .*own\.js:3:15 < \S*own\.js:1:1' "$(first_row js.pb.gz)"
}

# As HotSpot names them: the row is the program's, above the library's constructor.
test_rows_begin_at_own_code_in_java() {
  command -v javac >/dev/null && command -v jcmd >/dev/null || skip 'no JDK'
  cat >Svc.java <<'JAVA'
import java.util.*;
import java.util.zip.*;
public class Svc {
  static List<Object> kept = new ArrayList<>();
  static void unzip() { kept.add(new Inflater(true)); }
  static void serve() { for (int i = 0; i < 6000; i++) unzip(); }
  public static void main(String[] arguments) throws Exception {
    serve();
    System.out.println(ProcessHandle.current().pid());
    System.out.flush();
    System.in.read();
  }
}
JAVA
  javac Svc.java
  mkfifo hold
  record_whole java.pb.gz -p 64K java -XX:+PreserveFramePointer -XX:-Inline -Xmx300m -cp . Svc <hold >out 2>err &
  front=$!
  exec 9>hold
  wait_for 60 grep -q . out
  pid=$(cat out)
  jcmd "$pid" Compiler.perfmap >log 2>&1 || fail "jcmd: $(cat log)"
  exec 9>&-
  wait $front || fail "status $?: $(cat err)"
  rm -f "/tmp/perf-$pid.map"
  matches_text '^Svc\.unzip > java\.util\.zip\.Inflater\.<init>' "$(first_row java.pb.gz)"
}

test_hidden_functions_leave_their_bytes() {
  cpp_profile
  "$heaptap" report --hide '^load_users$|^std::' cpp.pb.gz --sort alloc >out
  ! grep -q 'load_users\|std::' out || fail 'hidden functions are shown'
  matches '^ +[0-9.]+ MiB +\S+ +[0-9.]+% +[0-9.]+ MiB  main' out
  equal "$(sums_of cpp.pb.gz)" "$(sums_of cpp.pb.gz --hide '^load_users$|^std::')" 'sums'
  equal 1 "$(shares_of cpp.pb.gz --hide '^load_users$')"
  "$heaptap" report --hide . --sort alloc cpp.pb.gz >out
  matches '100\.0% .* \[hidden\]$' out
  "$heaptap" export -f folded --sort alloc --hide '^main$' cpp.pb.gz >out
  ! grep -q ';main;' out || fail 'a hidden function is exported'
  equal 2 "$(status_of "$heaptap" report --hide '(' cpp.pb.gz)"
  matches '^heaptap: --hide: ' err
}
