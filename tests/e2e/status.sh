# SPDX-License-Identifier: Apache-2.0
# COMMAND's exit status is heaptap's.

test_exit_codes() {
  for code in 0 1 2 77 126 127 255; do
    equal $code "$(status_of record -q sh -c "exit $code")" "exit $code"
  done
}

test_ended_by_signal() {
  for signal in 1 2 6 9 11 15; do
    equal $((128 + signal)) "$(status_of record -q sh -c "kill -$signal \$\$")" "signal $signal"
  done
}

test_missing_command() {
  equal 127 "$(status_of record no-such-command-anywhere)"
  equal 'heaptap: no-such-command-anywhere: command not found' "$(cat err)"
  equal 127 "$(status_of record ./no-such-file)"
  equal 1 "$(wc -l <err)"
}

test_command_that_cannot_run() {
  printf 'data' >plain
  equal 126 "$(status_of record ./plain)"
  equal 1 "$(wc -l <err)"
  matches '^heaptap: cannot run ./plain: Permission denied$' err
  equal 126 "$(status_of record .)" 'a directory'
  equal 126 "$(status_of record ./plain/child)" 'a file as a folder'
}

test_script_without_interpreter_line() {
  printf 'exit 5\n' >script
  chmod +x script
  equal 5 "$(status_of record -q ./script)"
}

test_no_profile_is_left_by_a_command_that_never_ran() {
  equal 127 "$(status_of record -o out-%p-%n.pb.gz ./no-such-file)"
  equal '' "$(ls out-* 2>/dev/null)"
}

test_double_dash_ends_the_options() {
  equal 3 "$(status_of record -q -- sh -c 'exit 3' -p)"
  equal 4 "$(status_of record -q sh -c 'exit 4' -- --help)"
}

test_killed_sampler_leaves_command_alone() {
  mkfifo gate
  "$heaptap" record sh -c 'echo started >started; read word <gate; exit 9' 2>err &
  front=$!
  wait_for 20 test -s started
  sampler=$(sampler_of $front)
  [ -n "$sampler" ] || fail 'no sampler process'
  kill -KILL "$sampler"
  wait_for 20 grep -q 'the sampler died' err
  echo >gate
  status=0
  wait $front || status=$?
  equal 9 $status
  equal 1 "$(grep '^heaptap:' err | grep -Evc '^heaptap: (recording pid|a snapshot of it now:) ')" 'lines on stderr'
}

# What is told of a sampler that does not start: what to look at, and that COMMAND runs all the same.
test_a_sampler_that_does_not_start() {
  cat >shim.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static int forks;
static void in_parent(void) { forks++; }
static void in_child(void) {
	if (forks == atoi(getenv("SHIM_FORK")))
		raise(atoi(getenv("SHIM_SIGNAL")));
}
__attribute__((constructor)) static void on_load(void) { pthread_atfork(NULL, in_parent, in_child); }
C
  gcc -shared -fPIC -o shim.so shim.c
  preload_heaptap "$PWD/shim.so"
  shimmed() {
    SHIM_FORK=0 SHIM_SIGNAL=$1 "$heaptap" record sh -c 'echo ran; exit 5'
  }
  equal 5 "$(status_of shimmed 9)"
  equal ran "$(cat out)"
  equal 'heaptap: the sampler died while it was starting: dmesg says if the kernel killed it for memory
heaptap: sh runs without being profiled' "$(cat err)"
  equal 5 "$(status_of shimmed 19)" # SIGSTOP
  equal 'heaptap: the sampler was not ready after 10 s: is the machine overloaded?
heaptap: sh runs without being profiled' "$(cat err)"
}
