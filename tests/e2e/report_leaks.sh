# SPDX-License-Identifier: Apache-2.0
# report --leaks, and suppressions: a file, the program's own.
# timeout: 240

leaky_profile() {
  profile=leaky.pb.gz
  record_whole $profile "$@" "$targets/leaky" 30000 64
}

test_leaks_and_suppressions() {
  leaky_profile -p 1
  "$heaptap" report --leaks "$profile" >out
  matches '^1\.8 MiB \(exact\) in 30000 objects of 64 B on average, allocated by$' out
  matches '^    remember_request$' out
  matches '^suppressed: 293\.0 KiB in 1 stack$' out
  matches '^Still in use at exit \(reachable or lost\): [0-9.]+ MiB in [0-9]+ objects, [0-9]+ stacks$' out
  printf '# comment\nleak:load_*\nleak:^remember_request$\n' >suppressions
  "$heaptap" report --leaks --suppressions suppressions "$profile" >out
  ! grep -qE 'remember_request|load_table|forget_me' out || fail 'suppressed leaks are shown'
  equal 3 "$(status_of "$heaptap" report --leaks --fail-over 1M "$profile")"
  matches 'still in use, more than the 1\.0 MiB of --fail-over' err
  equal 3 "$(status_of "$heaptap" report --leaks --json --fail-over 1M "$profile")"
  python3 - <<'PYTHON'
import json
report = json.load(open("out"))
leak = next(leak for leak in report["leaks"] if leak["objects"] == 30000)
assert leak["bytes"] == 1920000 and leak["bytes_error"] == 0 and not report["running"]
assert all(frame.get("line", 1) > 0 for frame in leak["stack"]), "a line that is not known is a number"
assert [frame["name"] for frame in leak["stack"]][:3] == ["remember_request", "handle_request", "main"]
assert report["leaked"]["bytes"] == sum(leak["bytes"] for leak in report["leaks"])
PYTHON
  equal 0 "$(status_of "$heaptap" report --leaks --fail-over 10M "$profile")"
  equal 3 "$(status_of "$heaptap" report --fail-over 10K "$profile")"
  echo 'race:x' >suppressions
  equal 1 "$(status_of "$heaptap" report --leaks --suppressions suppressions "$profile")"
  matches 'line 1: not a suppression; allowed: leak:PATTERN' err
}

# The hook's string is found whatever the compiler makes of the function.
test_suppressions_of_the_program() {
  cat >hook.c <<'C'
#include <stdlib.h>
const char *__lsan_default_suppressions(void) { return "leak:known_*\n"; }
__attribute__((noinline)) void *known_leak(void) { char *p = malloc(300000); p[0] = 1; return p; }
void *volatile kept;
int main(void) { kept = known_leak(); return 0; }
C
  for compiler in 'gcc -O2' 'gcc -O0' 'gcc -O2 -no-pie' 'gcc -O0 -no-pie' 'clang -O2' 'clang -O0' 'clang -O0 -no-pie' 'gcc -O2 -fcf-protection'; do
    $compiler -g -rdynamic -o hook hook.c
    record -q -p 1 -i 0 -o hook.pb.gz ./hook
    go tool pprof -raw hook.pb.gz 2>/dev/null | grep -qE "^1: .* $PWD/hook [0-9a-f]{40}" ||
      fail 'the first mapping is not the program with its build id'
    "$heaptap" report --leaks hook.pb.gz >out
    matches '^suppressed: 293\.0 KiB in 1 stack$' out
    ! grep -q known_leak out || fail "$compiler: a suppressed leak is shown"
  done
  # Another file under the name says nothing.
  gcc -O1 -g -rdynamic -o hook hook.c
  "$heaptap" report --leaks hook.pb.gz >out
  matches 'known_leak' out
}

# The program's file is whatever the profile names: only its symbol tables are read, each within bounds.
test_suppressions_in_a_large_file() {
  cat >hook.c <<'C'
#include <stdlib.h>
__attribute__((noinline)) void *known_leak(void) { char *p = malloc(300000); p[0] = 1; return p; }
void *volatile kept;
int main(void) { kept = known_leak(); return 0; }
C
  gcc -O2 -g -o hook hook.c
  record -q -p 1 -i 0 -o hook.pb.gz ./hook
  cp hook whole
  cat >large.py <<'PYTHON'
# Sections of that type and size are added to `hook`, all over the same hole; then the report's memory.
import resource, shutil, struct, subprocess, sys
kind, count, size = (int(word) for word in sys.argv[2:])
shutil.copy("whole", "hook")
with open("hook", "r+b") as file:
    data = file.read()
    table, = struct.unpack_from("<Q", data, 40)
    entry_bytes, sections = struct.unpack_from("<HH", data, 58)
    headers = data[table:table + entry_bytes * sections]
    hole = len(data) + -len(data) % 4096
    for number in range(count):
        # name, type, flags, address, offset, size, link (to itself), info, alignment, bytes of an entry
        headers += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, hole, size, sections + number, 0, 8, 24)
    file.truncate(hole + size)
    file.seek(hole + size)
    file.write(headers)
    file.seek(40)
    file.write(struct.pack("<Q", hole + size))
    file.seek(60)
    file.write(struct.pack("<H", sections + count))
with open("out", "wb") as out:
    subprocess.run([sys.argv[1], "report", "--leaks", "hook.pb.gz"], check=True, stdout=out)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
PYTHON
  local mib
  for kind in '1 1' '2 8' '11 8' '7 8'; do # PROGBITS, SYMTAB, DYNSYM, NOTE
    mib=$(python3 large.py "$heaptap" $kind $((400 << 20)))
    [ "$mib" -lt 300 ] || fail "sections of type $kind: $mib MiB"
    matches 'known_leak' out
  done
  mib=$(python3 large.py "$heaptap" 2 8 $((100 << 20)))
  [ "$mib" -lt 300 ] || fail "symbol tables: $mib MiB"
}

test_suppressions_that_are_missing() {
  go_profile=$top/tests/readers/go_heap.pb.gz
  equal 1 "$(status_of "$heaptap" report --leaks --suppressions missing "$go_profile")"
  matches '^heaptap: cannot read missing: No such file' err
  for options in '' --tree --json; do
    # shellcheck disable=SC2086
    equal 2 "$(status_of "$heaptap" report $options --suppressions missing "$go_profile")" "report $options"
    matches '^heaptap: --suppressions needs --leaks' err
  done
}
