# SPDX-License-Identifier: Apache-2.0
# `heaptap record -P`: what a running process allocates from then on, and that it does not notice.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# All of the target that others can see, but its memory and its times.
seen_of() {
  ls -l "/proc/$1/fd" | awk '{ print $9, $10, $11 }'
  grep -E '^(Sig(Blk|Ign|Cgt)|NoNewPrivs|Seccomp|TracerPid|Threads|Cap)' "/proc/$1/status"
  tr '\0' '\n' <"/proc/$1/environ"
}

# Its mappings that are of files, less ours: addresses, protections, files.
maps_of() {
  awk '$6 ~ /^\// && !/libheaptap-attach|dev\/zero/' "/proc/$1/maps"
}

test_truth() {
  need_root
  running "$targets/attach_truth" 4 "$targets/attach_module"
  seen_of "$target" >seen
  maps_of "$target" >maps
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  detach
  maps_of "$target" >maps.after
  seen_of "$target" >seen.after
  echo >&7
  wait_for 30 said_times done 2
  finish
  profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
  profile_check "$profile" p/*.pb.gz
  reached_exactly "$profile" thread_work 'alloc_objects 2000' 'alloc_space 600000' 'inuse_objects 1000' 'inuse_space 300000'
  reached_exactly "$profile" new_thread 'alloc_objects 400' 'alloc_space 28000' 'inuse_objects 400'
  reached_exactly "$profile" main_grow 'alloc_objects 2' 'alloc_space 60000' 'inuse_objects 1' 'inuse_space 50000'
  reached_exactly "$profile" module_alloc 'alloc_objects 200' 'alloc_space 200000' 'inuse_objects 200'
  reached_exactly "$profile" old_frees 'alloc_objects 0' 'inuse_objects 0'
  comment_of "$profile" >comments
  matches '^attached: [0-9.]+ s after the start; about [0-9.]+ [KM]iB of resident memory are older$' comments
  matches '^snapshot: detach' comments
  "$heaptap" report "$profile" >report
  matches '^  attached [0-9.]+ s after the start; about .* are older, and not in these numbers$' report
  matches '^[0-9.]+ [KM]iB in use, of what was allocated since heaptap attached, [0-9]+ % of it by ' report
  "$heaptap" ls p/ >list
  matches 'sampling was stopped, the process is still running' list
  child=$(only p/heaptap.attach_truth.*.exit.pb.gz)
  reached_exactly "$child" child_work 'alloc_objects 50' 'alloc_space 100000' 'inuse_objects 50'
  # Nothing of ours is left but the mapping.
  cmp seen seen.after || fail "$(diff seen seen.after)"
  diff maps maps.after >maps.diff || true
  ! grep '^<' maps.diff || fail "mappings have changed: $(cat maps.diff)"
  ! grep '^>' maps.diff | grep -v attach_module || fail "mappings are new: $(cat maps.diff)"
}

test_again_and_again() {
  need_root
  running "$targets/attach_truth" 4 "$targets/attach_module"
  for round in 1 2 3; do
    attach -p 1
    echo >&7
    wait_for 30 said_times done $round
    detach
    profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
    reached_exactly "$profile" thread_work 'alloc_objects 2000' 'inuse_objects 1000'
    reached_exactly "$profile" module_alloc 'alloc_objects 200'
    rm -r p
    equal 1 "$(grep -c 'libheaptap-attach.*r-xp\|r-xp.*libheaptap-attach' "/proc/$target/maps")" 'libraries of ours'
  done
  finish
}

test_until_its_end() {
  need_root
  running "$targets/attach_truth" 2 "$targets/attach_module"
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  finish
  wait "$sampler" || fail "record ended with $?: $(cat log)"
  profile=$(only p/heaptap.attach_truth."$target".exit.pb.gz)
  reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
}

# What it has when it is attached to is not growth.
test_thresholds() {
  need_root
  running /usr/bin/python3 -uc 'import sys
held = b"x" * (48 << 20)
print("ready")
for line in sys.stdin:
    more = b"x" * (2 << 20)'
  attach -p 4K --on rss=+32M --on alloc=1M
  echo >&7
  crossed() { grep -q "snapshot .*alloc" log; }
  wait_for 30 crossed
  detach
  finish
  ! grep 'snapshot .*rss' log || fail 'the memory from before counts as growth'
  comment_of "$(only p/heaptap.*."$target".0001-alloc.pb.gz)" >comments
  matches '^snapshot: 0001-alloc' comments
  matches '^heaptap: .*python3.* \(pid [0-9]+\) runs on, detached$' log
  ! grep 'shared memory' log || fail 'our library is in memory, and ours all the same'
}

# Those that run are chosen by their numbers.
test_options_about_commands() {
  equal 2 "$(status_of "$heaptap" record -P $$ --only sh)"
  matches '^heaptap: --only and --exclude choose among what COMMAND executes' err
  equal 2 "$(status_of "$heaptap" record -P $$ --no-heap -e cpu-clock --on rss=1G)"
  matches '^heaptap: --on is about heaps' err
}

# Threads that never rest, dlopen and fork, under each allocator: they check every byte, and errno.
busy() {
  local allocator=$1
  LD_PRELOAD=$allocator "$targets/attach_busy" 4 >said 2>said.err &
  target=$!
  wait_for 20 says ready
  for round in 1 2 3; do
    "$heaptap" record -q -P "$target" --duration 20ms -o p/ 2>log || fail "$allocator: $(cat log)"
    kill -0 "$target" || fail "$allocator: the target has ended"
  done
  kill -TERM "$target"
  wait "$target" || fail "$allocator: the target ended with $?: $(cat said said.err)"
}

test_busy_glibc() { need_root; busy ''; }
test_busy_jemalloc() { need_root; busy libjemalloc.so.2; }
test_busy_tcmalloc() { need_root; busy libtcmalloc_minimal.so.4; }
test_busy_mimalloc() { need_root; busy libmimalloc.so.2; }

# moves PID: it is not stopped
moves() { ! grep -q '^State:.*[tT] (' "/proc/$1/status"; }

# The attaching processes are killed at any moment: the target does not notice, and can be attached to again.
test_killed() {
  need_root
  set -m # a process group for each
  "$targets/attach_busy" 3 >said 2>said.err &
  target=$!
  wait_for 20 says ready
  for round in 1 2 3 4 5 6 7 8; do
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log &
    sampler=$!
    sleep 0.$((RANDOM % 10))$((RANDOM % 10))
    kill -KILL -- -$sampler 2>/dev/null || true
    wait $sampler 2>/dev/null || true
    kill -0 "$target" || fail "the target has ended"
    # the kernel lets it go when the last of the killed has ended, which is none that we can wait for
    wait_for 20 moves "$target"
    if grep -q '/memfd:heaptap ' "/proc/$target/maps"; then
      "$heaptap" detach "$target" 2>log || fail "not detached: $(cat log)"
    fi
  done
  "$heaptap" record -q -P "$target" --duration 20ms -o p/ 2>log || fail "not attached again: $(cat log)"
  kill -TERM "$target"
  wait "$target" || fail "the target ended with $?: $(cat said said.err)"
}

test_without_privileges() {
  [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || skip 'kernel.yama.ptrace_scope is not 0'
  stage attach_truth attach_module
  mkfifo in
  chmod 777 . in
  unprivileged "$targets/attach_truth" 2 "$targets/attach_module" <in >said 2>said.err &
  job=$!
  exec 7>in
  wait_for 20 says ready
  target=$(pgrep -P $job attach_truth || echo $job)
  for round in 1 2; do
    rm -f log # of the round before
    unprivileged "$heaptap" record -p 1 -o p/ -P "$target" --duration 4s 2>log 7>&- &
    sampler=$!
    attached() { grep -q 'attached; paused one thread' log || ! kill -0 $sampler 2>/dev/null; }
    wait_for 30 attached
    grep -q "attached; paused one thread" log || fail "not attached, status $(wait $sampler || echo $?): $(cat log)"
    echo >&7
    wait_for 30 said_times done $round
    wait $sampler || fail "record ended with $?: $(cat log)"
    profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
    reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
    rm -r p
  done
  exec 7>&-
  wait $job || fail "the target ended with $?: $(cat said said.err)"
}

# refused TARGET_PID REGEX: nothing is touched, status 1, one line
refused() {
  equal 1 "$(status_of "$heaptap" record -q -o p/ -P "$1" --duration 1ms)" "status for '$2'"
  equal 1 "$(wc -l <err)" 'lines'
  matches "^heaptap: pid $1 $2" err
  [ -z "$(ls p)" ] || fail "a profile of what was refused: $2"
}

test_refusals() {
  need_root
  refused 4194300 'does not exist$'
  [ ! -d /proc/2 ] || [ -e /proc/2/exe ] || refused 2 'is a kernel thread$'
  sleep 100 &
  other=$!
  wait_for 20 test -e "/proc/$other/exe"
  kill -STOP $other
  stopped() { grep -q '^State:.*T (' "/proc/$other/status"; }
  wait_for 20 stopped
  refused $other "is stopped by a signal: kill -CONT $other\$"
  grep -q '^State:.*T (' "/proc/$other/status" || fail 'it runs'
  kill -KILL $other
  /usr/bin/python3 -c 'import os, time
child = os.fork()
if not child: os._exit(0)
print(child, flush=True)
time.sleep(100)' >child &
  parent=$!
  zombie() { other=$(cat child) && grep -q '^State:.*Z (' "/proc/$other/status"; }
  wait_for 20 zombie
  refused "$other" 'has ended \(a zombie'
  kill -KILL $parent
  cat >rest.c <<'C'
#include <unistd.h>
int main(void) { return write(1, "rests\n", 6) != 6 || pause(); }
C
  for compiler in 'gcc -static' musl-gcc 'gcc -fsanitize=address'; do
    $compiler -o rest rest.c
    ./rest >rest.out &
    other=$!
    rests() { grep -q rests rest.out; }
    wait_for 20 rests
    case $compiler in
      *static) refused $other 'is statically linked: it calls malloc directly, and not through a table$' ;;
      musl*) refused $other "uses musl as its C library: attaching needs glibc: start it with" ;;
      *) refused $other 'has a sanitizer \(libasan.so\), which has hooks of its own: start it with' ;;
    esac
    kill -KILL $other
    wait $other 2>/dev/null || true
    rm -f rest.out
  done
  "$heaptap" record -q -o recorded/ sleep 100 &
  front=$!
  profiled() { other=$(child_of $front sleep) && grep -q /memfd:heaptap "/proc/$other/maps" 2>/dev/null; }
  wait_for 20 profiled
  refused "$other" "is profiled already, by heaptap's pid [0-9]+: heaptap snapshot $other\$"
  kill "$other"
  wait $front || true
}

test_a_seccomp_filter_needs_force() {
  need_root
  cat >filter.py <<'PY'
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None)
program = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)  # BPF_RET: allow
memory = ctypes.create_string_buffer(program)
filter = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 1, ctypes.addressof(memory)))
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, filter, 0, 0) != 0: sys.exit(3)
print('ready', flush=True)
time.sleep(100)
PY
  /usr/bin/python3 filter.py >said &
  target=$!
  wait_for 20 says ready
  refused "$target" 'has a seccomp filter, which may end it for the calls that loading a library takes: --force'
  equal 0 "$(status_of "$heaptap" record -q -o p/ -P "$target" --duration 1ms --force)" 'status with --force'
  kill -KILL "$target"
}

test_of_two_one_is_refused() {
  need_root
  running "$targets/attach_truth" 1 "$targets/attach_module"
  equal 1 "$(status_of "$heaptap" record -o p/ -P "4194300,$target" --duration 1ms 7>&-)"
  matches '^heaptap: pid 4194300 does not exist$' err
  only p/heaptap.attach_truth."$target".detach.pb.gz
  finish
}

# Its sampler is killed: `detach` takes the hooks out, `adopt` goes on.
test_without_its_sampler() {
  need_root
  running "$targets/attach_truth" 2 "$targets/attach_module"
  equal 1 "$(status_of "$heaptap" detach "$target")"
  equal "heaptap: pid $target is not attached" "$(cat err)"
  attach -p 1
  equal 1 "$(status_of "$heaptap" detach "$target")"
  grep -A 3 'attached; paused one thread' log | tail -n 3 >lines
  equal "heaptap: recording pid $target (every allocation) to p/heaptap.*.pb.gz heaptap: a snapshot of it now: heaptap snapshot $target heaptap: to detach: Ctrl-C here, or kill $sampler" "$(xargs <lines)" 'what attach says'
  equal "heaptap: another heaptap (pid $sampler) is attached to pid $target: Ctrl-C there, or kill $sampler, detaches" "$(cat err)"
  kill -KILL "$sampler"
  wait "$sampler" 2>/dev/null || true
  equal 1 "$(status_of "$heaptap" record -P "$target")"
  matches "was profiled, and its sampler is gone: heaptap adopt $target, or heaptap detach $target\$" err
  equal 0 "$(status_of "$heaptap" detach "$target")"
  ! grep /memfd:heaptap "/proc/$target/maps" || fail 'the shared memory is still there'
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  kill -KILL "$sampler"
  wait "$sampler" 2>/dev/null || true
  "$heaptap" adopt -v -o adopted/ "$target" 2>log 7>&- &
  sampler=$!
  wait_for 20 grep -q adopted log
  equal 1 "$(status_of "$heaptap" detach "$target")"
  equal "heaptap: pid $target is profiled by heaptap adopt (pid $sampler): kill $sampler, then heaptap detach $target" "$(cat err)"
  echo >&7
  wait_for 30 said_times done 2
  finish
  wait "$sampler" || fail "adopt ended with $?: $(cat log)"
  profile=$(only adopted/heaptap.attach_truth."$target".exit.pb.gz)
  reached_exactly "$profile" main_grow 'inuse_objects 2' 'inuse_space 100000'
}

# What `detach` advises of a process that `record` has started does what it says.
test_detach_of_a_recorded_process() {
  need_root
  "$heaptap" record -o p/ sleep 100 2>log &
  front=$!
  profiled() { target=$(child_of $front sleep) && grep -q /memfd:heaptap "/proc/$target/maps" 2>/dev/null; }
  wait_for 20 profiled
  sampler=$(sampler_of $front)
  equal 1 "$(status_of "$heaptap" detach "$target")"
  equal "heaptap: pid $target was started by heaptap record, and is sampled until it ends; kill $sampler, twice, ends the sampling alone, with a last snapshot" "$(cat err)"
  kill "$sampler"
  sampler_ended() { kill "$sampler" 2>/dev/null; ! kill -0 "$sampler" 2>/dev/null; }
  wait_for 20 sampler_ended
  only p/heaptap.sleep."$target".0001.pb.gz >only
  kill -0 "$target" || fail 'the process has ended, too'
  kill "$target"
  wait $front || true
}

# What the program allows itself later is not ours to know: a detach asks for nothing that its loader would not.
test_a_filter_that_comes_later() {
  cat >filter.py <<'PY'
import ctypes, struct, sys
print("ready", flush=True)
kept = []
for line in sys.stdin:
    # Who calls mremap, a call that the loader never makes, is killed.
    code = b"".join(struct.pack("=HBBI", *step) for step in ((0x20, 0, 0, 0), (0x15, 0, 1, 25), (6, 0, 0, 0), (6, 0, 0, 0x7fff0000)))
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 4, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
    kept += [bytearray(1000) for i in range(1000)]
    print("done", flush=True)
PY
  running python3 filter.py
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  detach
  kill -0 "$target" || fail 'the program was killed'
  finish
}

# What the kernel says of a process in hundreds of groups is longer than a page: by that we learn when a call has returned.
test_a_process_in_many_groups() {
  need_root
  for most in 1000000500 1000004000; do
    rm -f in
    running setpriv --groups "$(seq -s, 1000000000 $most)" "$targets/attach_truth" 2 "$targets/attach_module"
    [ "$(wc -c <"/proc/$target/status")" -gt 6000 ] || fail 'it is in no groups'
    if [ $most = 1000000500 ]; then
      attach -p 1
      ! grep -q 'its thread' log || fail "the attach: $(cat log)"
      echo >&7
      wait_for 30 said_times done 1
      detach
      matches "^heaptap: pid $target \(attach_truth\): detached; paused one thread for" log
      profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
      reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
      comment_of "$profile" >comments
      matches '^attached: .*about [0-9.]+ [KM]iB of resident memory are older$' comments
      rm -r p
    else
      refused "$target" 'is in too many groups: the rest of its status cannot be read$'
    fi
    finish
  done
}

# Who had called mlockall before has none of our untouched memory resident either: attached to, detached from, and
# attached to once more.
test_after_mlockall() {
  need_root
  cat >lock.py <<'PY'
import ctypes, sys
assert ctypes.CDLL(None).mlockall(3) == 0
print("ready", flush=True)
kept = []
for line in sys.stdin:
    kept += [bytearray(1000) for i in range(1000)]
    print("done", flush=True)
PY
  running python3 lock.py
  resident() { awk '/^VmRSS/ { print $2 }' "/proc/$target/status"; }
  before=$(resident)
  for round in 1 2; do
    rm -rf p
    attach -p 1
    at_most $((before + 65536)) "$(resident)" "KiB resident, attached to ($round)"
    echo >&7
    wait_for 30 said_times done $round
    detach
    at_most $((before + 65536)) "$(resident)" "KiB resident, detached from ($round)"
    profile_check p/*.detach.pb.gz
    [ "$(total_of "$(only p/*.detach.pb.gz)" alloc_objects)" -ge 1000 ] || fail 'not sampled'
  done
  finish
}

# The page of a session that attaches is of this session, and ends with it.
test_listen() {
  need_root
  running "$targets/attach_truth" 1 "$targets/attach_module"
  # What cannot be is refused before the process is touched.
  equal 2 "$(status_of "$heaptap" record --listen 0.0.0.0:0 -P "$target" 7>&-)"
  matches 'other machines can reach it' err
  ! grep -qE 'libheaptap|memfd:heaptap' "/proc/$target/maps" || fail 'the process was attached to'
  attach -p 1 --listen 127.0.0.1:0
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' log)
  echo >&7
  wait_for 30 said_times done 1
  wait_for 30 curl -sf -o body "$url/debug/pprof/heap"
  reached_exactly body module_alloc 'alloc_objects 200' 'alloc_space 200000' 'inuse_objects 200'
  detach
  wait_for 20 eval '! curl -s -o /dev/null "$url/healthz"'
  finish
}

# Its data is limited: the tables are as small as that, those of --mmap wait until they are wanted, and if there is no room
# for these the process is not attached to, and can be again.
test_little_data() {
  need_root
  for kib in 8000 1000000; do
    rm -f in
    running sh -c "ulimit -s 256; ulimit -d $kib; exec $targets/attach_truth 1 $targets/attach_module"
    for round in 1 2 3; do
      case $round-$kib in
        2-8000)
          equal 1 "$(status_of "$heaptap" record -q -o p/ -p 1 --mmap -P "$target" --duration 1ms 7>&-)"
          matches 'room' err
          attach -p 1 ;;
        2-*) attach -p 1 --mmap ;;
        *) attach -p 1 ;;
      esac
      echo >&7
      wait_for 30 said_times done $round
      detach
      profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
      reached_exactly "$profile" module_alloc 'alloc_objects 200' 'alloc_space 200000' 'inuse_objects 200'
      rm -r p
    done
    finish
  done
}

# A process that limits its address space while it is attached to gets ours back, and what it has mapped there since is left
# alone, also when it is attached to again after the limit is gone.
test_limits_itself() {
  cat >limit.py <<'PY'
import resource, sys
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
blocks, kept = [], []
print("ready", flush=True)
for line in sys.stdin:
    if line == "limit\n":
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, hard))
        blocks = [bytearray(b"\1" * (40 << 20)) for i in range(17)]
    else:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        kept += [bytearray(1000) for i in range(1000)]
        assert all(block.count(1) == 40 << 20 for block in blocks)
    print("done", flush=True)
PY
  running python3 limit.py
  attach -p 1
  echo limit >&7
  wait_for 60 said_times done 1
  detach
  matches 'not profiled since they set themselves a limit of memory: 1 processes' log
  echo more >&7
  wait_for 60 said_times done 2
  rm -rf p
  attach -p 1
  echo more >&7
  wait_for 60 said_times done 3
  detach
  profile_check p/*.detach.pb.gz
  [ "$(total_of "$(only p/*.detach.pb.gz)" alloc_objects)" -ge 1000 ] || fail 'not sampled'
  finish
}

# Where the main thread's stack may grow far, its library has to know what is mapped below it.
test_a_coroutine_below_the_main_stack() {
  ulimit -S -s unlimited || skip 'the hard limit of the stack is lower'
  for when in before after; do
    rm -f in
    running "$targets/capture_edges" attached $when
    attach -p 1 -b copy
    for times in 1 2; do
      echo >&7
      wait_for 30 said_times done $times
    done
    finish # a thread cuts a stack out of its own
    wait "$sampler" || fail "record ended with $?: $(cat log)"
    profile=$(only p/*."$target".exit.pb.gz)
    profile_check "$profile"
  done
}
