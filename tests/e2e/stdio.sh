# SPDX-License-Identifier: Apache-2.0
# COMMAND's stdin, stdout, stderr, terminal and descriptors are its own.

test_binary_pipe() {
  head -c 3000000 /dev/urandom >data
  record -q cat <data >copy
  cmp data copy
  cat data | record -q cat | cmp data -
}

test_stderr_passes_through() {
  record -q sh -c 'echo to-out; echo to-err >&2' >out 2>err
  equal to-out "$(cat out)"
  equal to-err "$(cat err)"
}

test_closed_descriptors_stay_closed() {
  # Bash puts descriptor 255 or so into its own children only; what ls sees is what COMMAND sees.
  ls /proc/self/fd >plain
  record -q ls /proc/self/fd >profiled
  cmp plain profiled
  ls /proc/self/fd <&- >plain
  record -q ls /proc/self/fd <&- >profiled
  cmp plain profiled
  ls /proc/self/fd 2>&- >plain
  record -q ls /proc/self/fd 2>&- >profiled
  cmp plain profiled
  record -q sh -c 'ls /proc/self/fd >profiled 2>&1' <&- >&- 2>&-
  sh -c 'ls /proc/self/fd >plain 2>&1' <&- >&- 2>&-
  cmp plain profiled
}

test_inherited_descriptors_reach_command() {
  echo from-nine >nine
  equal from-nine "$(record -q sh -c 'cat <&9' 9<nine)"
}

# A reader of COMMAND's output waits for COMMAND alone, neither for the front nor for the sampler.
test_end_of_file_comes_when_command_closes() {
  mkfifo gate pipe
  "$heaptap" record -q sh -c 'echo word; exec >&-; read word <gate' >pipe &
  front=$!
  # COMMAND, front and sampler all still run.
  timeout "$(seconds 20)" cat pipe >out || fail 'somebody besides COMMAND holds its output'
  equal word "$(cat out)"
  echo >gate
  wait $front || fail "status $?"
}

# The kernel takes 160 ms to close a uprobe. A build's log must not wait for that, nor whoever started the build.
test_nobody_waits_for_the_probe_to_be_closed() {
  need_root
  cat >slow.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int close(int fd)
{
	char path[64], what[64] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, what, sizeof(what) - 1) > 0 && strstr(what, "perf_event")) {
		syscall(SYS_close, open("closing", O_CREAT | O_WRONLY, 0600));
		while (access("gate", F_OK) != 0)
			usleep(1000);
	}
	return (int)syscall(SYS_close, fd);
}
C
  gcc -shared -fPIC -o slow.so slow.c
  mkfifo log
  timeout "$(seconds 20)" cat log >err &
  reader=$!
  status=0
  preload_heaptap "$PWD/slow.so"
  timeout "$(seconds 20)" "$heaptap" record -b uprobe -o out/ sh -c 'echo word >&2; exit 3' 2>log || status=$?
  equal 3 $status
  wait $reader || fail 'the end of stderr did not come'
  wait_for 20 test -e closing
  : >gate
  matches word err
  matches 'exit 3|exited with 3|status 3' err
  profile_check out/*.exit.pb.gz
}

test_descriptors_are_not_held() {
  mkfifo held gate
  "$heaptap" record -q sh -c 'exec 7>&-; echo started >started; read word <gate' 7>held &
  front=$!
  # EOF although COMMAND, front and sampler all still run.
  timeout "$(seconds 20)" cat held >out || fail 'someone holds descriptor 7'
  wait_for 20 test -s started
  echo >gate
  wait $front
}

test_terminal() {
  script -qec "$heaptap record -q sh -c 'test -t 0 && test -t 1 && test -t 2 && echo it-is-a-terminal; exit 8'" screen \
    >/dev/null || status=$?
  equal 8 "${status:-0}"
  matches it-is-a-terminal screen
  # Same process group: COMMAND is in the foreground, so that it may read and set the terminal.
  script -qec "$heaptap record -q stty -a" screen >/dev/null
  matches 'rows' screen
}
