# SPDX-License-Identifier: Apache-2.0
# Calls of every kind that an unwinder has to cross (unwind_shapes.cc), files that are gone, mapped twice or elsewhere:
# all functions in their order, by every backend.
# timeout: 300

shapes=$targets/unwind_shapes
start='main;__libc_start_call_main;__libc_start_main;_start'

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

# chains PROFILE: a line per stack, "BYTES innermost;...;outermost", calls of recurse counted
chains() {
  go tool pprof -traces -unit=B -sample_index=alloc_space "$1" 2>/dev/null | python3 -c '
import re, sys
stacks, inside = [], False
for line in sys.stdin:
    line = line.rstrip("\n")
    start = re.match(r"^ *([0-9.]+)B? {2,}(\S.*)$", line)
    if line.startswith("-----------+"):
        inside = True
    elif inside and start:
        stacks.append([start[1], [start[2]]])
    elif inside and stacks and line.startswith("      "):
        stacks[-1][1].append(line.strip())
total = {}
for size, frames in stacks:
    chain = re.sub(r"(recurse;)+", lambda m: "recurse*%d;" % m[0].count(";"), ";".join(frames))
    total[chain] = total.get(chain, 0) + float(size)
for chain, size in total.items():
    print("%d %s" % (size, chain))'
}

# bytes_of REGEX: of those in ./chains that match as a whole
bytes_of() {
  python3 -c '
import re, sys
print(sum(int(line.split(" ", 1)[0]) for line in open("chains")
          if re.fullmatch(sys.argv[1], line.rstrip("\n").split(" ", 1)[1])))' "$1"
}

# crosses BYTES REGEX PROFILE: so many bytes have a chain that matches
crosses() {
  chains "$3" >chains
  equal "$1" "$(bytes_of "$2")" \
    "$backend: bytes of '$2' in $(cat chains)"
}

# shape 'ARGUMENTS' [BYTES REGEX]...: $shapes recorded by every backend
shape() {
  local arguments=$1
  shift
  for backend in $(backends); do
    rm -f heaptap.*
    # shellcheck disable=SC2086
    record -q -b "$backend" -p 1 "$shapes" $arguments </dev/null >out 2>err || fail "$backend: status $?: $(cat err)"
    profile=$(only "heaptap.${shapes##*/}."*.exit.pb.gz)
    profile_check "$profile"
    local i
    for ((i = 1; i < $#; i += 2)); do
      crosses "${!i}" "${@:i+1:1}" "$profile"
    done
  done
}

# The kernel's return trampoline has no name in a libc without its symbol table; on aarch64 it is the vdso's.
restorer='(__restore_rt|libc\.so\.6\+0x[0-9a-f]+|__kernel_rt_sigreturn|\[vdso\]\+0x[0-9a-f]+)'

test_signal_handler() {
  shape signal 50000 "leaf;on_signal;$restorer;interrupted;with_signal;$start"
}

# What was interrupted is on another stack, which nobody has copied: that is said, not guessed.
test_signal_stack() {
  local cut=
  # Of a stack that it does not know the hook copies what is left of a page, and aarch64's signal frames are larger.
  [ "$(uname -m)" = x86_64 ] || cut='|(leaf;(on_signal;)?)?\[truncated\]'
  shape altstack 50000 "leaf;on_signal;$restorer;\[stack switched\]$cut"
}

test_fiber() { shape fiber 50000 'leaf;fiber;__start_?context'; }

test_exceptions() {
  shape exception 50000 "leaf;Guard::~Guard;unwound;catcher;$start" 50000 "leaf;catcher;$start"
}

test_alloca_realigned_and_tail_calls() {
  shape frames 50000 "leaf;with_alloca;$start" 50000 "leaf;realigned;$start" 50000 "leaf;tail_target;no_tail;$start"
}

# Assembly without unwind rows is stepped by its frame pointer, and what follows is marked: once, not at every frame.
test_frames_found_by_frame_pointer_are_marked() {
  shapes=$targets/unwind_guess
  shape chain 50000 "leaf;chain_inner;\[guessed\];chain_outer;with_chain;$start"
  comment_of "$profile" | grep -qE '^samples: .*, frames guessed 50(,|$)' || fail "no word of it in $(comment_of "$profile")"
}

# The frame pointer leads to five words of code addresses that no call has left.
test_no_frames_are_invented_where_the_frame_pointer_is_none() {
  shapes=$targets/unwind_guess
  shape register 50000 'leaf;by_register;\[no unwind rows\]'
  shape both 50000 'leaf;chain_inner;\[guessed\];register_outer;\[no unwind rows\]'
  shape zero 50000 'leaf;by_register;\[guessed\]'
  comment_of "$profile" | grep -qE '^samples: .*, end guessed 50(,|$)' || fail "no word of it in $(comment_of "$profile")"
}

test_a_million_bytes_deep() {
  shape 'deep 1000' 50000 "leaf;recurse\*1000;$start"
  shape 'thread 1000' 50000 'leaf;recurse\*1000;deep_thread;start_thread;((__)?clone3?|thread_start)'
  comment_of "$profile" | grep -q truncated && fail 'said to be cut'
  :
}

test_too_deep_is_said() {
  shape 'deep 3000' 50000 'leaf;recurse\*[0-9]+;\[truncated\]'
  comment_of "$profile" | grep -qE '^samples: .*truncated 50' || fail "no word of it in $(comment_of "$profile")"
}

test_fixed_address_program() {
  g++ -O2 -g -no-pie -fno-pie -o unwind_shapes "$top/tests/targets/unwind_shapes.cc" -ldl -pthread
  shapes=$PWD/unwind_shapes
  shape signal 50000 "leaf;on_signal;$restorer;interrupted;with_signal;$start"
  shape exception 50000 "leaf;Guard::~Guard;unwound;catcher;$start"
}

test_clang_program_by_lld_without_frame_pointers() {
  command -v clang++ >/dev/null || skip 'no clang++'
  clang++ -O2 -g -fomit-frame-pointer -fuse-ld=lld -o unwind_shapes "$top/tests/targets/unwind_shapes.cc" -ldl -pthread 2>err ||
    skip "clang++: $(head -n 1 err)"
  shapes=$PWD/unwind_shapes
  shape signal 50000 "leaf;on_signal;$restorer;interrupted;with_signal;$start"
  shape exception 50000 "leaf;Guard::~Guard;unwound;catcher;$start"
  shape frames 50000 "leaf;with_alloca;$start" 50000 "leaf;realigned;$start"
}

# held COMMAND...: recorded; ends when two snapshots are there, so that the sampler has seen it alive
held() {
  rm -f heaptap.* hold
  mkfifo hold
  record -q -b "$backend" -p 1 -i 200ms "$@" <hold >out 2>err &
  front=$!
  exec 9>hold
  wait_for 30 compgen -G 'heaptap.unwind_shapes.*.0002.pb.gz' >snapshots
  exec 9>&-
  wait $front || fail "$backend: status $?: $(cat err)"
  profile=$(only heaptap.unwind_shapes.*.exit.pb.gz)
  profile_check "$profile"
}

test_file_mapped_twice() {
  for backend in $(backends); do
    held "$shapes" twice
    crosses 50000 "leaf;second;mapped_twice;$start" "$profile"
  done
}

# Loaded and unloaded 50 times, and gone when the profile is made. Without records of what is mapped when, backend copy
# has the last time only.
test_unloaded_library() {
  cat >plugin.c <<'C'
static volatile int after;
void plugin_call(void (*function)(void))
{
	function();
	after = 1;
}
C
  gcc -O2 -g -fPIC -shared -o plugin.so plugin.c
  for backend in $(backends); do
    held "$shapes" plugin "$PWD/plugin.so"
    chains "$profile" >chains
    least=49000
    [ $backend != uprobe ] && least=1000
    at_least $least "$(bytes_of "leaf;plugin_call;plugged;$start")" "$backend: bytes in $(cat chains)"
  done
}

# The program is deleted, or another takes its name, before the first sample: its functions have their names.
test_deleted_and_replaced_program() {
  for backend in $(backends); do
    for other in '' "$PWD/other"; do
      cp "$shapes" unwind_shapes
      cp /bin/true other
      held "$PWD/unwind_shapes" nofile "$PWD/unwind_shapes" $other
      crosses 50000 "leaf;without_file;$start" "$profile"
    done
  done
}

test_program_in_another_mount_namespace() {
  need_root
  unshare -m true 2>/dev/null || skip 'no mount namespaces here'
  mkdir place
  unshare -m mount -t tmpfs none "$PWD/place" 2>/dev/null || skip 'cannot mount in a namespace'
  for backend in $(backends); do
    held unshare -m sh -c "mount -t tmpfs none '$PWD/place' && cp '$shapes' place/ && place/unwind_shapes nofile place/unwind_shapes"
    [ ! -e place/unwind_shapes ] || fail 'it is here, too'
    crosses 50000 "leaf;without_file;$start" "$profile"
  done
}

# A root folder of its own, in which the program has another path than from here, and which nobody else sees.
test_program_in_another_root() {
  need_root
  unshare -m mount -t tmpfs none "$PWD" 2>/dev/null || skip 'cannot mount in a namespace'
  mkdir jail
  for backend in $(backends); do
    held unshare -m sh -ec "
      mount -t tmpfs none jail
      cd jail
      for folder in /usr /lib /lib64 /proc '$HEAPTAP_BUILD'; do
        mkdir -p .\$folder
        mount --rbind \$folder .\$folder
      done
      mkdir app
      cp '$shapes' app/unwind_shapes
      exec chroot . /app/unwind_shapes nofile /app/unwind_shapes"
    [ ! -e jail/app ] || fail 'it is here, too'
    crosses 50000 "leaf;without_file;$start" "$profile"
  done
}

# Code in two segments far apart, each with calls into the other.
test_several_executable_segments() {
  cat >far.c <<'C'
#include <stdlib.h>
#define NAMED __attribute__((noinline, noclone))
#define FAR NAMED __attribute__((section(".far_text,\"ax\",@progbits#")))
static void *volatile kept;
static volatile int after;
NAMED void leaf(void) { kept = malloc(1000); after++; }
FAR void far_inner(void) { leaf(); after++; }
NAMED void near_middle(void) { far_inner(); after++; }
FAR void far_outer(void) { near_middle(); after++; }
int main(void)
{
	for (int i = 0; i < 50; i++)
		far_outer();
	return 0;
}
C
  gcc -O2 -g -no-pie -fno-pie -Wl,--section-start=.far_text=0x10000000 -o unwind_shapes far.c
  at_least 2 "$(readelf -lW unwind_shapes | grep -cE 'LOAD .* R E ')" 'executable segments'
  shapes=$PWD/unwind_shapes
  shape '' 50000 "leaf;far_inner;near_middle;far_outer;$start"
}

# Over as soon as begun, and called by a name that says nothing outside its folder.
test_short_program_by_a_relative_name() {
  cp "$shapes" unwind_shapes
  for backend in $(backends); do
    rm -f heaptap.*
    for i in 1 2 3 4 5; do
      record -q -b "$backend" -p 1 ./unwind_shapes plain
    done
    equal 5 "$(ls heaptap.unwind_shapes.*.exit.pb.gz | wc -l)" profiles
    for profile in heaptap.unwind_shapes.*.exit.pb.gz; do
      crosses 50000 "leaf;$start" "$profile"
    done
  done
}

# The names that node gives the functions of its user, in the profiles that are written when it has ended.
test_generated_code_has_its_names() {
  command -v node >/dev/null || skip 'no node'
  record -q -b copy -p 8K node --perf-basic-prof -e "
function parsed(i) { return JSON.parse('{\"list\": [' + i + ', 2, 3], \"text\": \"' + 'x'.repeat(i % 50) + '\"}'); }
function busy() { let kept = []; for (let i = 0; i < 300000; i++) { kept[i % 1000] = parsed(i); } return kept.length; }
for (let i = 0; i < 200; i++) Buffer.allocUnsafeSlow(20000);
console.log(process.pid, busy());" >out
  read -r pid kept <out
  rm -f "/tmp/perf-$pid.map"
  equal 1000 "$kept"
  for profile in heaptap.node."$pid".{exit,peak}.pb.gz; do
    profile_check "$profile"
    go tool pprof -traces -sample_index=alloc_space "$profile" 2>/dev/null >traces
    matches '(JS|LazyCompile|Function):[^ ]?(parsed|busy) ' traces
  done
}

# As CPython calls its functions with -X perf: no rows, no frame pointer, and known by the bytes all the same.
test_trampolines_are_no_guess() {
  for backend in $(backends) walk; do
    rm -f heaptap.* hold out
    mkfifo hold
    record -q -b "$backend" -p 1 "$targets/trampolines" <hold >out 2>err &
    front=$!
    exec 9>hold
    wait_for 30 grep -q . out
    pid=$(cat out)
    wait_for 30 map_is_open # the stack is known
    echo >&9
    exec 9>&-
    wait $front || fail "$backend: status $?: $(cat err)"
    profile=$(only heaptap.trampolines.*.exit.pb.gz)
    profile_check "$profile"
    rm -f "/tmp/perf-$pid.map"
    crosses 1000000 "leaf;inner;named_inner;outer;named_outer;$start" "$profile"
    comment_of "$profile" >comments
    ! grep -E 'guessed|no unwind rows' comments || fail "$backend: guessed"
    [ "$backend" != walk ] || at_least 250 \
      "$(sed -n 's/^samples: .*walked by the hook \([0-9]*\).*/\1/p' comments)" 'walked by the hook'
  done
}

# The same by CPython itself: each stack ends where the program began.
test_python_has_whole_stacks() {
  python=$(ls /usr/bin/python3.1[2-9] ~/.pyenv/versions/3.1[2-9].*/bin/python3.1[2-9] 2>/dev/null | tail -n 1)
  [ -n "$python" ] || skip 'no python 3.12 or later'
  cat >app.py <<'PYTHON'
import os, sys
kept = []
def load(i): return bytearray(3000 + i % 7)
def handle(i): kept.append(load(i))
def serve():
    for i in range(3000): handle(i)
print(os.getpid(), flush=True)
serve()
sys.stdin.read()
PYTHON
  mkfifo hold
  record -q -p 16K "$python" -X perf app.py <hold >out 2>err &
  front=$!
  exec 9>hold
  wait_for 30 grep -q . out
  pid=$(cat out)
  wait_for 30 map_is_open
  exec 9>&-
  wait $front || fail "status $?: $(cat err)"
  rm -f "/tmp/perf-$pid.map"
  chains "$(only heaptap.python3*.exit.pb.gz)" >chains
  all=$(bytes_of '.*py::load:.*')
  at_least 6000000 "$all" 'bytes of load'
  # pprof takes "<module>" for template arguments.
  equal "$all" "$(bytes_of '.*;py::load:[^;]*;.*;py::handle:[^;]*;.*;py::serve:[^;]*;.*;py::[^;]*app.py;.*;__libc_start_main;_start')" \
    "bytes of load below its callers in $(grep load chains)"
}

# jitted PREFIX... : a program that makes code and names it, with no snapshot before its end. It ends when the sampler
# has met that code, and so has its map open: $pid, $exit and $peak.
jitted() {
  rm -f heaptap.* hold out
  mkfifo hold
  record -q -b copy -p 1 "$@" <hold >out 2>err &
  front=$!
  exec 9>hold
  wait_for 30 grep -q . out
  pid=$(cat out)
  wait_for 30 map_is_open
  exec 9>&-
  wait $front || fail "status $?: $(cat err)"
  exit=$(only heaptap.jit_names.*.exit.pb.gz) peak=$(only heaptap.jit_names.*.peak.pb.gz)
  profile_check "$exit" "$peak"
}

map_is_open() { find /proc/[0-9]*/fd -lname "*/perf-$pid.map" -o -lname "*/jit-$pid.dump" 2>/dev/null | grep -q .; }

test_generated_code_has_its_names_after_the_end() {
  named="leaf;jitted_function;\[guessed\];$start"
  for mode in '' remove; do
    # shellcheck disable=SC2086
    jitted "$targets/jit_names" $mode
    rm -f "/tmp/perf-$pid.map"
    backend="copy $mode"
    crosses 50000 "$named" "$exit"
    crosses 50000 "$named" "$peak"
  done
}

# By a file that only its mapping leads to, and that is gone with the process.
test_generated_code_has_its_names_and_lines_by_a_jitdump() {
  jitted "$targets/jit_names" jitdump
  backend=jitdump
  for profile in "$exit" "$peak"; do
    crosses 50000 "leaf;dumped_function;\[guessed\];$start" "$profile"
    go tool pprof -raw "$profile" >raw 2>/dev/null
    matches 'dumped_function /srv/jitted.c:42' raw
  done
}

# Code without a frame pointer has a whole stack by the rows in its dump, from the first sample on.
test_generated_code_has_its_unwind_rows_by_a_jitdump() {
  jitted "$targets/jit_names" rows
  backend=jitdump
  for profile in "$exit" "$peak"; do
    crosses 50000 "leaf;dumped_function;$start" "$profile"
  done
  go tool pprof -raw "$exit" >raw 2>/dev/null
  ! grep -E 'guessed|no unwind rows' raw || fail 'a stack is not whole'
}

# As CPython and node write it.
test_jitdumps_of_interpreters() {
  python=$(ls /usr/bin/python3.1[3-9] ~/.pyenv/versions/3.1[3-9].*/bin/python3.1[3-9] 2>/dev/null | head -n 1)
  if [ -n "$python" ]; then
    cat >app.py <<'PYTHON'
import os
kept = []
def load(i): return bytearray(3000 + i % 7)
def serve():
    for i in range(5000): kept.append(load(i))
serve()
print(os.getpid())
PYTHON
    record -q -p 16K -o py.pb.gz "$python" -X perf_jit app.py >pid
    rm -f "/tmp/jit-$(cat pid).dump"
    chains py.pb.gz >chains
    at_least 10000000 "$(bytes_of '.*;py::load:[^;]*;.*;py::serve:[^;]*;.*;__libc_start_main;_start')" 'bytes of load'
  fi
  cat >app.js <<'JS'
const kept = [];
function load(i) { return Buffer.allocUnsafeSlow(8000 + i % 7).fill(1); }
function serve() { for (let i = 0; i < 4000; i++) kept.push(load(i)); }
serve();
JS
  record -q -p 64K -o js.pb.gz node --perf-prof --interpreted-frames-native-stack app.js
  chains js.pb.gz >chains
  at_least 20000000 "$(bytes_of '.*(JS|Function|LazyCompile):[^ ]?(load|serve) .*')" 'bytes of load'
}

# It has another number there, and a /tmp that goes with its namespace.
test_generated_code_has_its_names_in_other_namespaces() {
  need_root
  unshare -pfm mount -t tmpfs none /tmp 2>/dev/null || skip 'cannot mount in a namespace'
  for mode in '' remove; do
    # shellcheck disable=SC2086
    jitted unshare -pf "$HEAPTAP_TOP/tests/empty_tmp" "$HEAPTAP_TOP" "$PWD" -- "$targets/jit_names" $mode
    [ ! -e "/tmp/perf-$pid.map" ] || fail 'it is here, too'
    backend="copy $mode"
    crosses 50000 "leaf;jitted_function;\[guessed\];$start" "$exit"
    crosses 50000 "leaf;jitted_function;\[guessed\];$start" "$peak"
  done
}
