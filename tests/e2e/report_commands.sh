# SPDX-License-Identifier: Apache-2.0
# What a user sees of report, diff and doctor.
# timeout: 240

leaky_profile() {
  profile=leaky.pb.gz
  record_whole $profile "$@" "$targets/leaky" 30000 64
}

test_header_and_tables() {
  leaky_profile -p 4K
  COLUMNS=80 "$heaptap" report "$profile" >out
  matches "^leaky  pid [0-9]+  20" out
  matches '^  exit' out
  matches '^  a sample every 4\.0 KiB on average; [0-9]+ samples(, [0-9]+ of them without a stack)?$' out
  ! grep 'samples:' out || fail 'how samples were taken is said without -v'
  matches '^  in use +[0-9.]+ MiB \+- [0-9.]+ KiB in [0-9]+ \+- [0-9]+ objects' out
  for title in 'Most in use' 'Most allocated' 'Most allocations' 'Most freed'; do
    matches "^$title" out
  done
  matches '^ +[0-9.]+ MiB +\+-[0-9.]+% +[0-9.]+%  remember_request < handle_request < main$' out
  equal 0 "$(awk 'length > 80' out | wc -l)" 'lines wider than 80 columns'
  equal 0 "$(grep -c "$(printf '\033')" out)" 'lines with colours in a pipe'
}

test_few_samples_say_so() {
  protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >few.pb <<'PROTO'
sample_type { type: 1 unit: 2 }
sample_type { type: 3 unit: 4 }
period_type { type: 5 unit: 4 }
period: 524288
sample { location_id: 1 value: 8192 value: 524288 }
sample { location_id: 2 value: 24576 value: 1572864 }
sample { location_id: 3 value: 819200 value: 52428800 }
location { id: 1 line { function_id: 1 } }
location { id: 2 line { function_id: 2 } }
location { id: 3 line { function_id: 3 } }
function { id: 1 name: 6 }
function { id: 2 name: 7 }
function { id: 3 name: 8 }
string_table: ""
string_table: "inuse_objects"
string_table: "count"
string_table: "inuse_space"
string_table: "bytes"
string_table: "space"
string_table: "one"
string_table: "three"
string_table: "hundred"
PROTO
  "$heaptap" report --sort inuse few.pb >out
  matches '^ 512\.0 KiB   \+-100%\?   1\.0%  512\.0 KiB  one$' out
  matches '^   1\.5 MiB    \+-58%\?   2\.9%    1\.5 MiB  three$' out
  matches '^  50\.0 MiB     \+-10%  96\.2%   50\.0 MiB  hundred$' out
  "$heaptap" report --tree few.pb >out
  matches ' three \(\+-58%\?\)$' out
}

test_tree() {
  leaky_profile -p 4K
  COLUMNS=60 "$heaptap" report --tree --sort alloc "$profile" >out
  matches '100.0%  all$' out
  matches "handle_request$" out
  matches "remember_request$" out
  equal 0 "$(awk 'length > 60' out | wc -l)" 'lines wider than 60 columns'
  "$heaptap" report --inverted "$profile" >out
  awk '/[+]- remember_request/ { at = NR } at && NR == at + 1 && /handle_request/ { found = 1 } END { exit !found }' out ||
    { cat out >&2; fail 'handle_request does not follow remember_request in the inverted tree'; }
  "$heaptap" report --tree --threshold 50 "$profile" >out
  matches '\([0-9]+ more\)$' out
  for options in --tree --inverted '--tree --sort alloc'; do
    # shellcheck disable=SC2086
    "$heaptap" report --json $options "$profile" >tree.json
    python3 - <<'PYTHON'
import json
report = json.load(open("tree.json"))
nodes, below = report["tree"], [0] * len(report["tree"])
for number, node in enumerate(nodes):
    assert node["parent"] < number
    if node["parent"] >= 0:
        below[node["parent"]] += node["value"]
assert all(node["value"] == node["self"] + below[i] for i, node in enumerate(nodes))
assert report["total"] == sum(node["value"] for node in nodes if node["parent"] < 0) > 0
PYTHON
  done
}

# Rows that are too small to matter are counted, not printed, unless they are asked for.
test_small_rows_are_folded() {
  protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >many.pb < <(
    printf 'sample_type { type: 1 unit: 2 }\nstring_table: ""\nstring_table: "inuse_space"\nstring_table: "bytes"\n'
    for i in $(seq 20); do
      printf 'string_table: "f%d"\nfunction { id: %d name: %d }\nlocation { id: %d line { function_id: %d } }\n' \
        "$i" "$i" $((i + 2)) "$i" "$i"
      printf 'sample { location_id: %d value: %d }\n' "$i" $((i <= 7 ? 100000 : 10))
    done)
  "$heaptap" report many.pb >out
  equal 7 "$(grep -cE '  f[0-9]+$' out)" 'rows'
  matches '^ +\.\.\. +0\.0% +13 more \(-n all\)$' out
  "$heaptap" report -n all many.pb >out
  equal 20 "$(grep -cE '  f[0-9]+$' out)" 'rows'
}

test_filters() {
  leaky_profile -p 4K
  "$heaptap" report --focus remember "$profile" --json >out
  python3 -c '
import json
report = json.load(open("out"))
assert [f["name"] for f in report["functions"] if f["inuse_space"]["flat"]] == ["remember_request"]
total = report["totals"]["inuse_space"]
assert 0 < total["selected"] < total["all"]'
  "$heaptap" report --ignore 'remember|forget' --json "$profile" >out
  python3 -c '
import json
assert [f["name"] for f in json.load(open("out"))["functions"] if f["inuse_space"]["flat"]] == ["load_table"]'
  "$heaptap" report --module nowhere "$profile" >out
  matches 'selected: 0 B' out
  "$heaptap" report --size 1M: --sort inuse "$profile" >out
  matches '  load_table < main' out
  ! grep -q remember_request out || fail '--size 1M: shows blocks of 64 bytes'
  "$heaptap" report --lines --sort inuse "$profile" >out
  matches 'remember_request  leaky\.c:[0-9]+ < handle_request' out
  equal 1 "$(status_of "$heaptap" report --thread x "$profile")"
  matches 'record with --labels thread' err
  record -q -p 4K --labels thread,age -o labelled "$targets/leaky" 30000 64
  labelled=labelled
  "$heaptap" report --thread leaky --sort inuse "$labelled" >out
  matches '  remember_request < handle_request' out
  "$heaptap" report --thread nobody --sort inuse "$labelled" >out
  matches "^Nothing matches --thread 'nobody'" out
  "$heaptap" report --age 1h: --sort inuse "$labelled" >out
  matches '^Nothing matches --age\.$' out
}

test_growth_over_snapshots() {
  cat >grow.py <<'PYTHON'
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
os.environ["PYTHONMALLOC"] = "malloc"
cache = [libc.malloc(1000) for _ in range(3000)]
for step in range(int(sys.argv[1])):
    kept = [libc.malloc(2000) for _ in range(300)]
    for _ in range(300):
        libc.free(ctypes.c_void_p(libc.malloc(1000)))
    os.kill(os.getppid(), 10) # heaptap record itself: one from the program to itself would end it
    deadline = time.time() + 20 * int(os.environ["TEST_TIME_FACTOR"])
    while not os.path.exists(f"heaptap.python3.{os.getpid()}.{step + 1:04}.pb.gz") and time.time() < deadline:
        time.sleep(0.01)
PYTHON
  record -q -p 4K -i 0 -o 'heaptap.python3.%p.%n.pb.gz' python3 grow.py 12
  "$heaptap" report heaptap.python3.*.pb.gz >out
  matches '^  the last of 13 snapshots of this process' out
  matches '^Growing, by more than chance' out
  awk '/^Growing/ { on = 1 } on && /ffi_call|ctypes|_call/ { found = 1 } END { exit !found }' out ||
    { cat out >&2; fail 'the leak is not among what grows'; }
  "$heaptap" report --json heaptap.python3.*.pb.gz >growth.json
  python3 - <<'PYTHON'
import json
growth = json.load(open("growth.json"))["growth"]
assert growth and growth[0]["change"] > 4 * growth[0]["change_error"] > 0 and growth[0]["stack"]
assert growth[0]["kind"] == "grows" and growth[0]["per_hour"] > 0 and growth[0]["since_ns"] < growth[0]["until_ns"]
PYTHON
  "$heaptap" report --leaks heaptap.python3.*.0012.pb.gz >out
  matches 'still running' out
  matches '^In use: ' out
  cp "$(only heaptap.python3.*.0001.pb.gz)" 1.pb.gz
  cp "$(only heaptap.python3.*.0012.pb.gz)" 6.pb.gz
  "$heaptap" diff 1.pb.gz 6.pb.gz >out
  matches '^ +\+[0-9.]+ MiB .* \*      \(total\)' out
  matches 'Both are of one process' out
  equal 3 "$(status_of "$heaptap" diff --fail-over 1M 1.pb.gz 6.pb.gz)"
}

# A limit of bytes, whatever the table shows: with --sort objects a thousand objects more are no 1000 bytes.
test_fail_over_of_diff_is_of_bytes_in_use() {
  local objects bytes
  for objects in 1000 2000; do
    for bytes in 100000 200000; do
      protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >$objects.$bytes.pb <<PROFILE
sample_type { type: 1 unit: 2 }
sample_type { type: 3 unit: 4 }
sample_type { type: 5 unit: 2 }
sample_type { type: 6 unit: 4 }
string_table: ["", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "f"]
function { id: 1 name: 7 }
location { id: 1 line { function_id: 1 } }
sample { location_id: 1 value: [$objects, 300000, $objects, $bytes] }
PROFILE
    done
  done
  equal 0 "$(status_of "$heaptap" diff --sort objects --fail-over 1 1000.100000.pb 2000.100000.pb)"
  equal 3 "$(status_of "$heaptap" diff --sort alloc --fail-over 1 1000.100000.pb 1000.200000.pb)"
  equal 3 "$(status_of "$heaptap" diff --fail-over 99999 1000.100000.pb 1000.200000.pb)"
  equal 0 "$(status_of "$heaptap" diff --fail-over 100000 1000.100000.pb 1000.200000.pb)"
}

# As the manual page says: record, then report. 64 bytes of each request leak, beside a cache that fills and stays.
test_a_new_users_leak() {
  cat >load.py <<'PYTHON'
import os, signal, socket, struct, subprocess, sys, time
heaptap, server = sys.argv[1:]
process = subprocess.Popen([heaptap, "record", "-q", "-p", "4K", "-i", "0", server, "./socket"])
deadline = time.time() + 30 * int(os.environ["TEST_TIME_FACTOR"])
while True:
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect("./socket")
        break
    except OSError:
        assert time.time() < deadline
        time.sleep(0.02)
lines = connection.makefile("rw")
pid = str(struct.unpack("iii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
for part in range(6):
    for batch in range(20):
        lines.write("".join(f"get key{(batch * 100 + i) % 500}\n" for i in range(100)))
        lines.flush()
        for i in range(100):
            assert lines.readline()
    subprocess.run([heaptap, "snapshot", pid], check=True, stdout=subprocess.DEVNULL)
lines.close()
connection.close()
process.send_signal(signal.SIGTERM)
sys.exit(process.wait())
PYTHON
  timeout "$(seconds 100)" python3 load.py "$heaptap" "$targets/leak_server"
  COLUMNS=80 "$heaptap" report heaptap.leak_server.*.pb.gz >out
  awk '/^Growing/ { on = 1 } /^$/ { on = 0 } on && /^ *[0-9.]+ [KM]iB/ { print }' out >growing
  equal 1 "$(wc -l <growing)" "rows that grow: $(cat growing)"
  matches 'note_visit' growing
  "$heaptap" report --leaks heaptap.leak_server.*.exit.pb.gz >out
  matches 'objects of 64 B on average' out
}

test_two_runs_of_the_same_differ_by_chance_only() {
  leaky_profile -p 8K
  mv "$profile" a.pb.gz
  leaky_profile -p 8K
  "$heaptap" diff --json a.pb.gz "$profile" >diff.json
  python3 -c '
import json
diff = json.load(open("diff.json"))
assert not diff["same_process"]
for function in diff["functions"]:
    assert abs(function["flat"]["change"]) <= 5 * function["flat"]["error"], function'
  record_whole twice.pb.gz -p 8K "$targets/leaky" 60000 64
  "$heaptap" diff --cum a.pb.gz twice.pb.gz >out
  matches '^ +\+[0-9.]+ MiB .* \* .*remember_request' out
}

# A terminal of our own: script(1) gives one.
on_terminal() {
  command -v script >/dev/null || skip 'no script (Debian: bsdutils)'
  script -qec "$*" /dev/null </dev/null
}

test_terminal_colours_width_and_pager() {
  leaky_profile -p 4K
  on_terminal "stty cols 100; TERM=xterm PAGER=cat '$heaptap' report '$profile'" >out
  grep -q "$(printf '\033\\[1m')" out || fail 'no colours on a terminal'
  on_terminal "TERM=xterm NO_COLOR=1 PAGER=cat '$heaptap' report '$profile'" >out
  ! grep -q "$(printf '\033')" out || fail 'colours in spite of NO_COLOR'
  on_terminal "TERM=xterm HEAPTAP_PAGER='sed s/^/paged:/' '$heaptap' report '$profile'" >out
  matches '^paged:' out
  on_terminal "TERM=xterm HEAPTAP_PAGER=/no/such/pager '$heaptap' report '$profile'" >out
  matches 'Most in use' out
  on_terminal "TERM=xterm HEAPTAP_PAGER='sed s/^/paged:/' '$heaptap' report --no-pager '$profile'" >out
  ! grep -q paged: out || fail 'paged in spite of --no-pager'
}

test_names_cannot_move_the_cursor() {
  protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >evil.pb <<'PROTO'
sample_type { type: 1 unit: 2 }
sample { location_id: 1 value: 4096 }
location { id: 1 line { function_id: 1 } }
function { id: 1 name: 3 }
string_table: ""
string_table: "inuse_space"
string_table: "bytes"
string_table: "a\033]0;evil\007b\302\233c\nd</script><b>"
PROTO
  "$heaptap" report evil.pb >out
  matches 'a\?\]0;evil\?b\?c\?d</script><b>$' out
  "$heaptap" export -f flamegraph evil.pb >page.html
  equal "$(grep -c '<script' page.html)" "$(grep -c '</script>' page.html)" 'ends of scripts in the page'
  ! grep -q 'd</script><b>' page.html || fail 'a name ends the script that it is in'
}

test_exports_have_no_controls_and_no_formulas() {
  protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >evil.pb <<'PROTO'
sample_type { type: 4 unit: 5 }
sample_type { type: 1 unit: 2 }
sample { location_id: 1 value: 1 value: 4096 }
mapping { id: 1 filename: 6 }
location { id: 1 mapping_id: 1 line { function_id: 1 line: 7 } }
function { id: 1 name: 3 filename: 7 }
string_table: ""
string_table: "inuse_space"
string_table: "bytes"
string_table: "=a\033]0;evil\007b\302\233c\nd\342\200\256e"
string_table: "inuse_objects"
string_table: "count"
string_table: "@/bin/\033x"
string_table: "-f\302\233ile,\"q\""
PROTO
  local controls=$(printf '[\001-\010\013-\037\177]\\|\302[\200-\237]\\|\342\200[\252-\256]\\|\342\201[\246-\251]')
  for format in folded flamegraph speedscope json csv massif heaptrack; do
    "$heaptap" export -f $format --lines evil.pb -o out.$format
    ! LC_ALL=C grep -v "^$(printf '\t')" out.$format | LC_ALL=C grep -q "$controls" || fail "$format: control characters"
  done
  matches "^'=a\?\]0;evil\?b\?c\?d\?e,\"'-f\?ile,\"\"q\"\"\",7,'@/bin/\?x,4096," out.csv
  matches '^s [0-9a-f]+ =a\?\]0;evil\?b\?\?c\?d\?\?\?e$' out.heaptrack
  # The length in front is that of the string, or heaptrack reads on in the wrong place.
  LC_ALL=C awk '$1 == "s" { text = $0; sub(/^s [0-9a-f]+ /, "", text); if (sprintf("%x", length(text)) != $2) { print; exit 1 } }' \
    out.heaptrack || fail 'heaptrack: a wrong length'
}

test_bad_files() {
  : >empty
  echo hello >text
  head -c 100 "$top/tests/readers/go_heap.pb.gz" >short.pb.gz
  mkdir none
  for file in empty text short.pb.gz missing none; do
    for command in report 'export -f folded' 'merge -o x' "diff $top/tests/readers/go_heap.pb.gz"; do
      # shellcheck disable=SC2086
      equal 1 "$(status_of "$heaptap" $command $file)" "$command $file"
      equal 1 "$(wc -l <err)" "lines for $command $file"
      matches "^heaptap: cannot read $file: " err
      [ ! -s out ] || fail "$command $file printed something"
    done
  done
  equal 1 "$(status_of "$heaptap" report -o /no/such/folder/x "$top/tests/readers/go_heap.pb.gz")"
  equal 1 "$(status_of sh -c "'$heaptap' report '$top/tests/readers/go_heap.pb.gz' >/dev/full")"
  matches 'cannot write standard output' err
}

test_wrong_options() {
  go=$top/tests/readers/go_heap.pb.gz
  for words in '--sort size' '--state old' '--session 0' '--session x' '-n 0' '-n x' '--size 5:4' '--size x' '--size :' '--age 5' '--fail-over' '--threshold 101' '--wrong'; do
    # shellcheck disable=SC2086
    equal 2 "$(status_of "$heaptap" report $words "$go")" "$words"
    equal 1 "$(wc -l <err)" "lines for $words"
  done
  equal 2 "$(status_of "$heaptap" report --focus '(' "$go")"
  matches "^heaptap: --focus: '\(' is not a regular expression" err
  equal 2 "$(status_of "$heaptap" report)"
  equal 2 "$(status_of "$heaptap" diff "$go")"
  equal 2 "$(status_of "$heaptap" diff "$go" "$go" "$go")"
  # Options may follow operands, until --.
  equal 0 "$(status_of "$heaptap" report "$go" -n 3 --sort alloc)"
  equal 1 "$(status_of "$heaptap" report "$go" -- --sort)"
  matches 'cannot read --sort' err
}

test_damaged_profiles() {
  leaky_profile -p 64K
  python3 "$top/tests/readers/mutate.py" "$heaptap" 300 1 "$top/tests/readers/go_heap.pb.gz" "$profile" >out || { cat out >&2; fail 'a damaged profile'; }
  cat out
}

# What is examined is the file that the process runs, also if it has no path any more.
test_doctor_of_a_removed_program() {
  cp "$targets/events_split" program
  ./program functions 10000 >/dev/null &
  running() { [ "$(readlink /proc/$!/exe)" = "$(realpath program)" ]; }
  wait_for 20 running
  rm program
  status_of "$heaptap" doctor $! >status
  matches 'program \(deleted\) is dynamically linked: its allocations are seen' out
  kill $!
}

test_doctor() {
  equal 0 "$(status_of "$heaptap" doctor)"
  matches '^ok +backend ' out
  equal 1 "$(status_of "$heaptap" doctor "$targets/static_hello")"
  matches '^bad .*static' out
  matches '^ +fix: link it dynamically' out
  if [ "$(id -u)" = 0 ]; then
    equal 0 "$(status_of "$heaptap" doctor $$)"
    matches '^note +process [0-9]+ was started without heaptap' out
    matches "^ +fix: heaptap attach $$\$" out
  fi
  equal 0 "$(status_of "$heaptap" doctor "$targets/leaky")"
  matches '^ok .*leaky has debug info' out
  equal 1 "$(status_of "$heaptap" doctor no-such-program)"
  equal 1 "$(status_of "$heaptap" doctor 999999999)"
  matches 'there is no process 999999999' err
  cat >own.c <<'C'
#include <stddef.h>
void *malloc(size_t n) { return (void *)n; }
int main(void) { return 0; }
C
  gcc -rdynamic -o own own.c
  equal 1 "$(status_of "$heaptap" doctor ./own)"
  matches '^bad .*a malloc of its own' out
}

# Whose malloc a plug-in calls is read from the running process.
test_doctor_finds_a_deep_bound_plugin() {
  cat >plugin.c <<'C'
#include <stdlib.h>
void *plugin_take(size_t size) { return malloc(size); }
C
  gcc -shared -fPIC -o plugin.so plugin.c
  for mode in 0 os.RTLD_DEEPBIND; do
    rm -f pid
    mkfifo go-$mode
    record -q -o x.pb.gz python3 -c "
import ctypes, os
plugin = ctypes.CDLL('./plugin.so', mode=os.RTLD_NOW | $mode)
plugin.plugin_take(1000)
open('pid.tmp', 'w').write(str(os.getpid()))
os.rename('pid.tmp', 'pid')
open('go-$mode').read()" &
    wait_for 30 test -s pid
    status_of "$heaptap" doctor "$(cat pid)" >status
    : >go-$mode
    wait $!
    matches '^ok +process [0-9]+ is being profiled' out
    if [ $mode = 0 ]; then
      ! grep -q 'another malloc' out || { cat out >&2; fail 'complains of a plug-in that is seen'; }
    else
      equal 1 "$(cat status)"
      matches '^bad +1 mapped files call another malloc, which is not seen; .*/plugin\.so calls that of libc\.so\.6$' out
      matches '^ +fix: open plug-ins without RTLD_DEEPBIND' out
    fi
  done
}

test_install() {
  make -s -C "$top" O="$HEAPTAP_BUILD" install DESTDIR="$PWD/root" PREFIX=/usr >log 2>&1 || { cat log >&2; fail 'make install'; }
  equal "etc/heaptap/heaptap.conf usr/bin/heaptap usr/include/heaptap.h usr/lib/heaptap/heaptap-push usr/lib/heaptap/heaptap-serve \
usr/lib/heaptap/libheaptap-attach.so usr/lib/heaptap/libheaptap.so usr/lib/systemd/system/heaptap-push.service \
usr/lib/systemd/system/heaptapd.service usr/lib/sysusers.d/heaptap.conf usr/lib/tmpfiles.d/heaptap.conf usr/share/bash-completion/completions/heaptap \
usr/share/fish/vendor_completions.d/heaptap.fish usr/share/zsh/site-functions/_heaptap" "$(cd root && find . -type f ! -path '*/man/*' | sed 's,^\./,,' | sort | xargs)"
  root/usr/bin/heaptap record -q -p 4K -o installed.pb.gz "$targets/leaky" 1000 64
  root/usr/bin/heaptap report installed.pb.gz >out
  matches 'remember_request' out
  cmp root/usr/share/bash-completion/completions/heaptap <("$heaptap" completion bash)
  echo '# of the operators' >>root/etc/heaptap/heaptap.conf
  make -s -C "$top" O="$HEAPTAP_BUILD" install DESTDIR="$PWD/root" PREFIX=/usr >log 2>&1
  matches '^# of the operators$' root/etc/heaptap/heaptap.conf
  make -s -C "$top" O="$HEAPTAP_BUILD" uninstall DESTDIR="$PWD/root" PREFIX=/usr >log 2>&1
  equal root/etc/heaptap/heaptap.conf "$(find root -type f)" 'what uninstall leaves'
  make -s -C "$top" O="$HEAPTAP_BUILD" install DESTDIR="$PWD/other" PREFIX=/opt/heaptap >log 2>&1
  matches '^ExecStart=/opt/heaptap/bin/heaptap daemon' other/opt/heaptap/lib/systemd/system/heaptapd.service
  make -s -C "$top" O="$HEAPTAP_BUILD" uninstall DESTDIR="$PWD/other" PREFIX=/opt/heaptap >log 2>&1
  equal '' "$(find other -type f)" 'what uninstall leaves of a heaptap.conf that nobody changed'
}
