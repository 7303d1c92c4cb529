# SPDX-License-Identifier: Apache-2.0
# perf events beside the heap: programs that know where their time went and what they touched.
# timeout: 180

. "$HEAPTAP_TOP/tests/events.sh"

share_of_two() {
  profile=$(only heaptap.events_split.*.cpu-clock-exit.pb.gz)
  events_check "$profile"
  read -r _ first first_ns second second_ns <truth
  n=$(total_of "$profile" samples)
  lost=$(lost "$profile")
  within "$(awk -v a="$first_ns" -v b="$second_ns" 'BEGIN { print a / (a + b) }')" "$(reached "$profile" samples "^$first\$")" \
    "$lost" "$n" "$first"
  at_least "$((n * 98 / 100))" \
    "$(($(reached "$profile" samples "^$first\$") + $(reached "$profile" samples "^$second\$") + lost))" both
  complete "$profile"
}

test_two_functions() {
  record -q --no-heap -e cpu-clock@1999 "$split" functions 2 >truth
  share_of_two
  [ "$(reached "$profile" samples '^work_70$')" -gt "$(reached "$profile" samples '^work_30$')" ] || fail 'work_30 leads'
  # Time is time: samples stand for what the program spent by its own clock. While its processor stands still no timer runs,
  # and of the samples that were due meanwhile the kernel takes one: of 2 s that was once 2.2 %, on a host with others.
  read -r _ stalled <<<"$(sed -n 2p truth)"
  at_least "$(((first_ns + second_ns - stalled) * 98 / 100))" "$(total_of "$profile" cpu)" 'ns in samples'
  at_least "$(total_of "$profile" cpu)" "$(($(counted "$profile") + 500250))" 'ns that the kernel counted'
  go tool pprof -raw "$profile" 2>/dev/null >raw
  matches '^PeriodType: cpu nanoseconds' raw
  matches '^Period: 500250' raw
  matches '^Duration: [1-9]' raw
  # A terminal gets it as time, and with the period that the profile has.
  "$heaptap" report "$profile" >report
  matches 'a sample every 500\.2 us of cpu;' report
  matches '^ +[0-9.]+ m?s .* work_70' report
  "$heaptap" diff "$profile" "$profile" >diff
  matches '^ +0 ns .*\(total\)' diff
}

# A machine with two kinds of processors, as far as heaptap can tell: the first one does not know the event.
test_two_kinds_of_processors() {
  allowed=$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)
  first=${allowed%%[-,]*} last=${allowed##*[-,]} online=$(getconf _NPROCESSORS_ONLN)
  [ "$first" != "$last" ] || skip 'one processor'
  cat >two_kinds.c <<'EOF'
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
long syscall(long number, struct perf_event_attr *attr, long pid, long cpu, long group, long flags)
{
	static long (*real)();
	if (number == SYS_perf_event_open && attr->config == PERF_COUNT_SW_CPU_CLOCK && cpu == FIRST)
		return errno = ENOENT, -1;
	if (!real)
		real = dlsym(RTLD_NEXT, "syscall");
	return real(number, attr, pid, cpu, group, flags);
}
EOF
  gcc -w -D_GNU_SOURCE -DFIRST="$first" -shared -fPIC -o two_kinds.so two_kinds.c
  preload_heaptap "$PWD/two_kinds.so"
  record -q --no-heap -e cpu-clock@499 taskset -c "$last" "$split" functions 1 >truth
  profile=$(only heaptap.events_split.*.cpu-clock-exit.pb.gz)
  events_check "$profile"
  at_least 100 "$(total_of "$profile" samples)" samples
  comment_of "$profile" >comments
  matches "^counted on $((online - 1)) of $online processors: the others do not have this event" comments
}

test_threads() {
  record -q --no-heap --labels thread -e cpu-clock@499 "$split" threads 2 >truth
  share_of_two
  go tool pprof -tags "$profile" >tags 2>/dev/null
  matches '%\): long$' tags
  # The two, and the one that starts them, if that took as long as an interval.
  apart=$(grep -cE '^ .*%\): *[0-9]+$' tags)
  [ "$apart" = 2 ] || [ "$apart" = 3 ] || fail "threads that are told apart: $apart"
}

# The heap and the preloaded library are no hindrance.
test_signal_handler_beside_the_heap() {
  record -q -e cpu-clock@499 "$split" signal 2 >truth
  share_of_two
  profile_check "$(only heaptap.events_split.*[0-9].exit.pb.gz)"
  # Handler and interrupted function are one stack.
  on_timer=$(reached "$profile" samples '^on_timer$')
  both=$(go tool pprof -traces "$profile" 2>/dev/null | awk '/^-+\+/ { if (t && i) n++; t = i = 0 }
    /on_timer/ { t = 1 } /interrupted/ { i = 1 } END { print n + 0 }')
  [ "$both" -gt 0 ] || fail "no stack has both, of $on_timer samples"
}

test_child_process() {
  record -q --no-heap -e cpu-clock@499 "$split" child 2 >truth
  read -r _ _ parent_ns _ child_ns _ child <truth
  profile=$(only heaptap.events_split."$child".cpu-clock-exit.pb.gz)
  events_check "$profile"
  a=$(reached "$profile" samples '^child_busy$')
  equal 0 "$(reached "$profile" samples '^parent_busy$')" 'the parent in the child'
  complete "$profile"
  lost=$(lost "$profile")
  mv "$profile" child.pb.gz
  profile=$(only heaptap.events_split.*.cpu-clock-exit.pb.gz)
  events_check "$profile"
  lost=$((lost + $(lost "$profile")))
  within "$(awk -v a="$parent_ns" -v b="$child_ns" 'BEGIN { print a / (a + b) }')" \
    "$(reached "$profile" samples '^parent_busy$')" "$lost" "$((a + lost + $(reached "$profile" samples '^parent_busy$')))" parent
  complete "$profile"
}

# One in 127 of the faults on 512 MiB, three functions of known shares; what is touched again does not count.
test_first_touches() {
  record -q --no-heap -e page-faults "$targets/events_touch" 512 small >truth
  read -r _ _ half _ three _ one _ resident _ huge <truth
  profile=$(only heaptap.events_touch.*.page-faults-exit.pb.gz)
  events_check "$profile"
  equal 0 "$huge" 'huge pages'
  for pair in "touch_half $half" "touch_three $three" "touch_one $one"; do
    read -r name bytes <<<"$pair"
    # By period: each function's share of them is exact to one period, of each processor's counter.
    awk -v got="$(reached "$profile" resident "^$name\$")" -v bytes="$bytes" -v lost="$(lost "$profile")" -v cpus="$(nproc --all)" \
      'BEGIN { d = got - bytes; one = 127 * 4096; exit !(d <= cpus * one && d >= -(cpus + lost) * one) }' ||
      fail "$name: $(reached "$profile" resident "^$name\$"), truth $bytes"
  done
  equal 0 "$(reached "$profile" resident '^touch_again$')" 'touched again'
  comment_of "$profile" >comments
  matches '^resident: .*not what is resident now' comments
}

# A fault that brings a huge page stands for all of it.
test_huge_pages() {
  grep -qE '\[(always|madvise)\]' /sys/kernel/mm/transparent_hugepage/enabled || skip 'no transparent huge pages'
  record -q --no-heap -e page-faults/1 "$targets/events_touch" 512 huge >truth
  read -r _ _ half _ three _ one _ resident _ huge <truth
  [ "$huge" -gt $((resident / 2)) ] || skip "the kernel had no huge pages to give ($huge of $resident KiB)"
  profile=$(only heaptap.events_touch.*.page-faults-exit.pb.gz)
  events_check "$profile"
  for pair in "touch_half $half" "touch_three $three" "touch_one $one"; do
    read -r name bytes <<<"$pair"
    awk -v got="$(reached "$profile" resident "^$name\$")" -v bytes="$bytes" -v lost="$(lost "$profile")" \
      'BEGIN { exit !(got + lost * 2097152 >= bytes * 0.98 && got <= bytes * 1.02) }' ||
      fail "$name: $(reached "$profile" resident "^$name\$"), truth $bytes"
  done
  at_least 1 "$((5000 - $(reached "$profile" page_faults touch_)))" 'fewer faults than small pages'
}

# Numbered as the heap's are, and %n in the middle.
test_with_each_snapshot() {
  "$heaptap" record -q -p 1K -i 200ms -e cpu-clock@499 -e minor-faults/1 -o 'x.%p.%n.gz' /usr/bin/python3 -c "
import time
keep = []
end = time.time() + 10000
while time.time() < end:
    keep.append(bytearray(5000)); keep = keep[-100:]" &
  front=$!
  wait_for 30 eval 'ls x.*.0002.gz x.*.cpu-clock-0002.gz x.*.minor-faults-0002.gz 2>/dev/null | grep -c . | grep -q 3'
  target=$(child_of "$front" python3)
  before=$(spent)
  works_on() { [ $(($(spent) - before)) -ge 50000000 ]; }
  wait_for 60 works_on
  kill -TERM "$target"
  wait "$front" || :
  pid=$(basename "$(only x.*.cpu-clock-exit.gz)" | cut -d . -f 2)
  events_check x."$pid".cpu-clock-000[12].gz x."$pid".cpu-clock-exit.gz x."$pid".minor-faults-0002.gz
  profile_check x."$pid".0002.gz x."$pid".exit.gz
  "$heaptap" report x."$pid".minor-faults-0002.gz >report
  matches 'every occurrence of minor_faults recorded' report
  comment_of x."$pid".cpu-clock-exit.gz | grep -q 'the process was killed by SIGTERM' || fail 'its end'
  # Each covers everything so far.
  at_least "$(total_of x."$pid".cpu-clock-0001.gz cpu)" "$(total_of x."$pid".cpu-clock-0002.gz cpu)" 'CPU time in the second'
  [ "$(total_of x."$pid".cpu-clock-0002.gz cpu)" -lt "$(total_of x."$pid".cpu-clock-exit.gz cpu)" ] || fail 'no growth'
}

# A program that allocates next to nothing has its events written all the same.
test_interval_without_heap_samples() {
  "$heaptap" record -q -p 1G -i 200ms -e cpu-clock@499 -o 'x.%n.gz' "$split" functions 10000 >/dev/null &
  front=$!
  wait_for 30 test -e x.cpu-clock-0002.gz
  kill -TERM "$(child_of "$front" events_split)"
  wait "$front" || :
  events_check x.cpu-clock-0002.gz x.cpu-clock-exit.gz
  profile_check x.exit.gz
}

# Nor has the heap of a child its own profile while there are fewer samples than --min-samples.
test_interval_with_few_heap_samples() {
  "$heaptap" record -p 16K --min-samples 1000000 -i 200ms -e cpu-clock@499 -o 'out/%e.%n.gz' \
    sh -c 'python3 -c "
while True: pass"
:' 2>err &
  front=$!
  wait_for 30 eval 'ls out/python3*.cpu-clock-0002.gz 2>/dev/null'
  kill -TERM "$(child_of "$(child_of "$front" sh)" python3)"
  wait "$front" || :
  matches '^heaptap: 1 process of under 1000000 samples left no profile:' err # it had some
  compgen -G "out/python3*.cpu-clock-exit.gz" >/dev/null || fail "no last profile: $(ls out; cat err)"
  events_check out/python3*.cpu-clock-0002.gz out/python3*.cpu-clock-exit.gz
}

# A process' last record comes before the kernel says that it has ended; whoever looks in between looks again later, and
# COMMAND may be over by then. Here nobody is said to have ended before there is a file.
test_a_child_that_ends_just_before_the_command() {
  cat >late.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	const struct timespec limit = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};
	char path[64], name[64] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0].fd);
	if (count == 1 && timeout == 0 && strcmp(program_invocation_short_name, "heaptap") == 0 &&
	    readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "pidfd") && access(getenv("OVER"), F_OK) != 0)
		return 0;
	return (int)syscall(SYS_ppoll, fds, count, timeout < 0 ? NULL : &limit, NULL, 0);
}
C
  gcc -shared -fPIC -o late.so late.c
  preload_heaptap "$PWD/late.so"
  for _ in 1 2 3; do
    rm -rf over out
    OVER=$PWD/over "$heaptap" record -q --no-heap -e cpu-clock@499 -o 'out/%e.%n.gz' \
      sh -c "$split functions 0.2; sleep 0.7; : >over" >/dev/null
    events_check out/events_split*.cpu-clock-exit.gz
  done
}

# Of an event that never occurs (so often) there are no files, and none of it is counted among those that are kept.
test_keep_with_an_event_that_never_occurs() {
  "$heaptap" record -q --keep 2 -p 1G -i 100ms -e cpu-clock@499 -e minor-faults/1000000000 -o 'x.%n.gz' "$split" functions 10000 >/dev/null &
  front=$!
  wait_for 60 test -e x.cpu-clock-0006.gz
  kill -TERM "$(child_of "$front" events_split)"
  wait "$front" || :
  equal 0 "$(find . -name 'x.minor-faults-0*' | wc -l)" 'files of what did not occur'
  equal 2 "$(find . -name 'x.cpu-clock-0*.gz' | wc -l)" 'snapshots that are kept'
}

test_exec_and_static_programs() {
  # A static program is over soon; 50 us of it are a sample.
  record -q --no-heap -e cpu-clock@20000 -o out/ sh -c "$targets/static_hello; exec $split functions 0.2" >/dev/null
  events_check out/*.gz
  only out/heaptap.static_hello.*.cpu-clock-exit.pb.gz
  only out/heaptap.events_split.*.cpu-clock-exit.pb.gz
  comment_of "$(ls out/heaptap.*sh.*.gz | head -n 1)" | grep -q 'executed another program' || fail 'the exec is not told'
}

# The sampler comes to the records when the process executes the next program already: what /proc says then is not of the
# program that the records are of, nor of a child that it had.
test_a_late_sampler_is_not_misled() {
  mkfifo gate
  "$heaptap" record -q --no-heap -e cpu-clock@20000 -o out/ sh -c "echo >ready; read -r word <gate
    sh -c 'echo \$\$ >pid; $targets/static_hello; exec $split functions 10000'; true" >/dev/null &
  front=$!
  wait_for 20 test -e ready
  sampler=$(pgrep -P "$front" -x heaptap-sampler)
  kill -STOP "$sampler"
  echo >gate
  executes() { [ -s pid ] && [ "$(cat "/proc/$(cat pid)/comm")" = events_split ]; }
  wait_for 20 executes
  target=$(cat pid)
  works() { [ "$(spent)" -ge 20000000 ]; }
  wait_for 20 works
  kill -CONT "$sampler"
  kill "$target"
  wait "$front"
  only out/heaptap.events_split.*.gz
  [ -e "out/heaptap.events_split.$target.cpu-clock-exit.pb.gz" ] || fail "not of $target: $(ls out)"
  events_check out/*.gz
  for profile in out/heaptap.sh.*.gz; do
    ! go tool pprof -raw "$profile" 2>/dev/null | grep events_split || fail "$profile: another program's mapping"
  done
}

test_kernel_side() {
  need_root
  record -q --no-heap -e cpu-clock@2000 -o with.gz sh -c 'head -c 400000000 /dev/zero | tail -c 1 >/dev/null'
  record -q --no-heap -e cpu-clock:u@2000 -o without.gz sh -c 'head -c 400000000 /dev/zero | tail -c 1 >/dev/null'
  events_check with*.gz without*.gz
  sum=0
  for profile in with-*.gz; do
    sum=$((sum + $(reached "$profile" samples '^(do_syscall_64|entry_SYSCALL_64_after_hwframe|el0_svc|invoke_syscall)$')))
  done
  [ "$(head -c 16 /proc/kallsyms)" = 0000000000000000 ] || at_least 20 "$sum" 'samples below the entry of system calls'
  for profile in without-*.gz; do
    equal 0 "$(reached "$profile" samples '^(do_syscall_64|entry_SYSCALL_64_after_hwframe|invoke_syscall)$')" "$profile"
    comment_of "$profile" | grep -q "the program's side only" || fail 'which side is not told'
  done
}

test_tracepoint() {
  need_root
  [ -e /sys/kernel/tracing/events/sched/sched_switch/id ] || skip 'no tracefs'
  record -q --no-heap -e sched:sched_switch /usr/bin/python3 -c "
import time
def nap():
    for _ in range(50):
        time.sleep(0.001)
nap()"
  profile=$(only heaptap.python3*.sched-sched_switch-exit.pb.gz)
  events_check "$profile"
  at_least 50 "$(total_of "$profile" sched_sched_switch)" switches
  equal "$(counted "$profile")" "$(total_of "$profile" sched_sched_switch)" 'counted and sampled'
}

# What the rings have no room for is counted, in the profile too.
test_losses_are_counted() {
  ulimit -l 64
  stage events_touch
  chmod 777 .
  unprivileged "$heaptap" record --no-heap -i 0 -e minor-faults/1 -o lost.gz "$targets/events_touch" 256 small >truth 2>err
  profile=$(only lost-*.gz) || fail "no profile: $(cat err)"
  events_check "$profile"
  lost=$(comment_of "$profile" | sed -n 's/.*samples lost for want of room: \([0-9]*\).*/\1/p' | tail -n 1)
  [ "$lost" -gt 0 ] || skip 'nothing was lost'
  equal "$lost" "$(reached "$profile" minor_faults '^\[lost samples\]$')" '[lost samples]'
  equal "$(counted "$profile")" "$(total_of "$profile" minor_faults)" 'counted by the kernel, and in all'
}

test_without_privileges() {
  stage events_split
  chmod 777 .
  unprivileged "$heaptap" record -q -e cpu-clock@499 -o out/ "$targets/events_split" functions 1 >truth
  cd out
  mv ../truth .
  share_of_two
  [ "$(id -u)" != 0 ] || comment_of "$profile" | grep -q "program's side only: kernel.perf_event_paranoid" ||
    [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -lt 2 ] || fail 'why the kernel is missing'
}

# Little room for rings: both get some of it.
test_little_locked_memory() {
  ulimit -l 64
  stage events_split
  chmod 777 .
  unprivileged "$heaptap" record -e cpu-clock@499 -o out/ "$targets/events_split" functions 1 >truth 2>err
  profile_check "$(only out/heaptap.events_split.*[0-9].exit.pb.gz)"
  cd out
  mv ../truth .
  share_of_two
}

test_snapshot_on_request() {
  "$heaptap" record -q --no-heap -e cpu-clock@499 -o a.gz "$split" functions 10000 >/dev/null &
  front=$!
  child() { child_of "$front" events_split >pid; [ -s pid ]; }
  wait_for 20 child
  answered() { "$heaptap" snapshot "$(cat pid)" >path 2>err; }
  wait_for 20 answered
  events_check "$(cat path)"
  kill "$(cat pid)"
  wait "$front" || :
  events_check a-cpu-clock-exit.gz
}

# refused EVENT REGEX: before COMMAND starts
refused() {
  equal 2 "$(status_of "$heaptap" record -e "$1" touch started)" "status for $1"
  matches "$2" err
  equal 1 "$(wc -l <err)" 'lines'
  [ ! -e started ] || fail "$1: COMMAND was started"
}

test_impossible_events() {
  refused cpu-clok "there is no such event; nearest: cpu-clock;"
  refused cpu-clock@0 'not possible'
  refused page-faults@99 'takes no @HZ, only /PERIOD'
  refused cpu-clock:zz 'invalid event attribute'
  equal 2 "$(status_of "$heaptap" record -e page-faults -e minor-faults touch started)"
  matches "cannot be sampled beside 'page-faults'" err
  equal 2 "$(status_of "$heaptap" record --no-heap touch started)"
  equal 2 "$(status_of "$heaptap" record --no-heap --pid 1)"
  equal 2 "$(status_of "$heaptap" record --no-heap -e cpu-clock --pid 1 touch started)"
  equal 1 "$(status_of "$heaptap" record --no-heap -e cpu-clock --pid 4194303)"
  matches 'there is no such process' err
  equal 127 "$(status_of "$heaptap" record --no-heap -e cpu-clock nonexistent)"
  equal 3 "$(status_of "$heaptap" record -q --no-heap -e cpu-clock sh -c 'exit 3')"
  [ ! -e started ] || fail 'COMMAND was started'
}

# Its library is loaded when an event is named, and only then: it costs more than the start of everything else.
test_the_library_of_names_is_missing() {
  mkdir broken
  : >broken/libpfm.so.4
  export LD_LIBRARY_PATH=$PWD/broken
  equal 0 "$(status_of "$heaptap" record -q true)"
  equal 2 "$(status_of "$heaptap" record -e cpu-clock touch started)"
  matches "event 'cpu-clock': libpfm.so.4, which is needed for event names, cannot be loaded" err
  [ ! -e started ] || fail 'COMMAND was started'
  "$heaptap" events >list
  matches '^libpfm4 cannot be loaded' list
}

test_list() {
  "$heaptap" events 'clock$|^page' >list
  matches '^cpu-clock +software +ok' list
  equal 1 "$(status_of "$heaptap" events nosuchevent)"
  equal 2 "$(status_of "$heaptap" events '(')"
  matches "'\\(' is not a regular expression \\([^:]*\\)\$" err
  /usr/bin/python3 "$top/tests/without_perf.py" "$heaptap" events '^cpu-clock$' >list
  matches '^cpu-clock .* no +not permitted .*seccomp.* \[1\]' list
  matches '^\[1\] fix: ' list
  equal 2 "$(status_of /usr/bin/python3 "$top/tests/without_perf.py" "$heaptap" record -e cpu-clock touch started)"
  matches 'not permitted' err
  [ ! -e started ] || fail 'COMMAND was started'
}
