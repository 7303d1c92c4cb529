# SPDX-License-Identifier: Apache-2.0
# What a program sees of being attached to: its calls in progress, its registers, its memory.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# begin NAME beside|alone: tests/targets/attach_calls waits in this call; its input, output: NAME.in, NAME.said
begin() {
  local name=$1 fd
  mkfifo "$name.in"
  # shellcheck disable=SC2094
  exec {fd}<>"$name.in"
  if [ "$2" = beside ]; then set -- "$name" beside; else set -- "$name"; fi
  ATTACH_CALLS_MS=$patience "$targets/attach_calls" "$@" <"$name.in" >"$name.said" &
  pids[$name]=$!
  waits() { grep -qs '^skip' "$name.said" || { grep -qs ready "$name.said" && grep -q '^State:.*S (' "/proc/${pids[$name]}/status"; }; }
  wait_for 20 waits
}

# calls beside|alone "NAME RESULT ERROR [input|SIGNAL]"...: all of them are attached to by one record while their call
# lasts, and see what they would have seen. With longer calls if that was late for some.
calls() {
  local with=$1 line name result error action ended
  shift
  declare -A pids
  for patience in 3000 12000 48000; do
    rm -rf ./*.in ./*.said p
    for line; do
      begin "${line%% *}" "$with"
    done
    "$heaptap" record -q -P "$(IFS=, && echo "${pids[*]}")" --duration 1ms -o p/ 2>log || grep -q 'does not exist\|ended' log ||
      fail "$(cat log)"
    ended=$(grep -c 'does not exist\|ended' log || :)
    for line; do
      read -r name result error action <<<"$line"
      case $action in
        input) echo >"$name.in" ;;
        USR2) kill -USR2 "${pids[$name]}" ;;
      esac
    done
    for line; do
      read -r name result error action <<<"$line"
      wait "${pids[$name]}" || grep -q '^skip' "$name.said" || fail "$name: it ended with $?"
      grep -q '^skip' "$name.said" ||
        equal "$name $result $error whole" "$(tail -1 "$name.said")" "what the program saw, $with"
    done
    [ "$ended" != 0 ] || return 0
  done
  fail "too late: $(cat log)"
}

test_calls_in_progress() {
  need_root
  calls alone 'poll 0 -' 'poll_input 1 - input' 'select 0 -' 'epoll_input 1 - input' 'read 1 - input' \
    'nanosleep 0 -' 'sem_timedwait -1 ETIMEDOUT' 'futex 110 ETIMEDOUT' 'sigwait 12 - USR2' 'accept 1 - input' \
    'uring_input 0 - input'
}

# Calls that a stop ends whatever we do: another thread is asked for what is to be done.
test_calls_that_would_end() {
  need_root
  calls beside 'epoll 0 -' 'sigtimed -1 EAGAIN' 'semop -1 EAGAIN' 'receive -1 EAGAIN' 'write 1 - input' \
    'uring -1 ETIME' 'uring_submit 1 - input'
}

# registers NAME: of a thread that makes no call
registers() {
  rm -f in
  running "$targets/attach_calls" "$1"
  for round in 1 2 3; do
    ! says "^$1 " || break
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || says "^$1 " || fail "$(cat log)"
  done
  [ "$round" -gt 1 ] || fail 'it was over before it was attached to'
  wait_for 60 says "^$1 "
  finish
  equal "$1 0 - whole" "$(tail -1 said)" 'registers that differ'
}

# General and vector registers, and a flag.
test_registers() {
  need_root
  registers registers
}

# The wide half of the vectors, masks, x87, control words.
test_registers_wide() {
  need_root
  grep -q avx512bw /proc/cpuinfo || skip 'this processor has no AVX-512'
  registers registers_wide
}

# seen FILE: of all mappings addresses, protections, flags and, where nobody writes, the bytes; descriptors, dispositions,
# environment.
seen() {
  python3 -B "$top/tests/attach_seen.py" "$target" >"$1"
}

different() {
  python3 -B "$top/tests/attach_seen.py" "$1" "$2" >difference
}

# A program that does nothing meanwhile: afterwards nothing is different but that the library is there, and its memory; the
# second time, nothing at all.
test_nothing_else_is_left() {
  need_root
  for program in "$targets/attach_calls poll_input beside" '/usr/bin/python3 -uc print("ready");input()'; do
    rm -f in
    # shellcheck disable=SC2086
    running $program
    asleep() { grep -q '^State:.*S (' "/proc/$target/status"; }
    wait_for 20 asleep
    seen before
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || fail "$(cat log)"
    seen after
    different before after
    ! grep -vE '^new (rw-p|rw-s|r--p|r-xp) [0-9]+ bytes (libheaptap-attach|\[(heap|stack)\]$|\(no file\)$)' difference ||
      fail "$program: $(cat difference)"
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || fail "$(cat log)"
    seen again
    different after again
    [ ! -s difference ] || fail "$program, the second time: $(cat difference)"
    echo >&7
    finish
  done
}

# A thread in a restartable sequence is let alone: the kernel would think that it has left it.
test_restartable_sequences() {
  need_root
  "$targets/attach_sequence" 4000 >said &
  target=$!
  ready_or_ended() { says ready || ! kill -0 $target 2>/dev/null; }
  wait_for 20 ready_or_ended
  kill -0 $target 2>/dev/null || skip 'the libc registers no sequences here'
  rounds=0
  while ! says '^sequences'; do
    ! "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log || rounds=$((rounds + 1))
  done
  wait $target || fail "the target ended with $?"
  matches '^sequences [0-9]+ aborted [0-9]+ broken 0$' said
}

# An allocator in the program: its code is not told from the program's, but a thread that waits for input is in neither.
test_a_program_with_its_own_malloc() {
  need_root
  running "$targets/attach_own_malloc"
  attach -p 1
  echo >&7
  wait_for 30 says done
  detach
  profile=$(only p/heaptap.*."$target".detach.pb.gz)
  profile_check "$profile"
  reached_exactly "$profile" copy_text 'alloc_objects 100' 'alloc_space 100000'
  comment_of "$profile" >comments
  matches 'in the program itself' comments
  finish
}

# A stack that the program has made may be small, however large its mapping is, and what is below it is another block's: no
# function is called there. That of a thread may be the only one of a forked child.
test_stacks_of_the_program() {
  need_root
  cat >stacks.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
enum { STACK = 48 << 10 };
static ucontext_t home, coroutine;
static void wait_for_line(void)
{
	char byte;
	free(malloc(100));
	while (read(0, &byte, 1) == 1 && byte != '\n')
		;
}
static void wait_there(void)
{
	puts("ready");
	wait_for_line();
}
static void *fork_here(void *argument)
{
	const pid_t child = fork();
	int status = 0;
	if (child == 0) {
		printf("child %d\nready\n", (int)getpid());
		wait_for_line();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status ? argument : NULL;
}
int main(int argc, char *argv[])
{
	pthread_t thread;
	void *failed = argv;
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc == 2)
		return pthread_create(&thread, NULL, fork_here, argv) || pthread_join(thread, &failed) || failed;
	char *below = malloc(100 << 10), *stack = malloc(STACK);
	memset(below, 0x5a, 100 << 10);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = STACK;
	coroutine.uc_link = &home;
	makecontext(&coroutine, wait_there, 0);
	swapcontext(&home, &coroutine);
	puts("main");
	wait_for_line();
	return 0;
}
C
  gcc -O1 -fno-builtin -w -pthread -o stacks stacks.c
  running ./stacks
  equal 1 "$(status_of "$heaptap" record -q -o p/ -P "$target" --duration 1ms 7>&-)" 'status in a coroutine'
  matches "pid $target cannot be attached to: no thread was at a safe point .*on a stack that is not its own" err
  echo >&7
  wait_for 20 says main
  attach
  detach
  finish
  rm -f in
  running ./stacks thread
  forked_by=$target
  target=$(sed -n 's/^child //p' said)
  attach
  detach
  exec 7>&-
  wait "$forked_by" || fail "it ended with $?"
}

# A signal that comes while the thread is called, which natively had ended the thread's own call: SIGTERM is deferred until
# then, SIGUSR1 is handled meanwhile; SIGWINCH is ignored, and ends nothing.
test_signals_during_the_call() {
  need_root
  for mode in epoll beside; do
    for signal in TERM USR1 WINCH; do
      rm -rf in p
      running "$targets/attach_stuck" "$targets/attach_stuck_module" $mode
      attach # the library is there then
      detach
      ! says '^woken' || fail "$mode: the first call was ended: $(cat said)"
      echo in >&7
      wait_for 20 says inside
      "$heaptap" record -o p/ -P "$target" 2>log 7>&- &
      sampler=$!
      in_the_call() { grep -q '/memfd:heaptap ' "/proc/$target/maps"; }
      wait_for 30 in_the_call
      kill -$signal "$target"
      taken() { [ $signal != USR1 ] || ! grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$target/status"; }
      wait_for 20 taken
      echo >&7
      wait_for 20 says out
      wait_for 30 grep -q 'attached; paused one thread' log
      number=15
      if [ $signal = USR1 ]; then number=10; fi
      if [ $signal = WINCH ]; then kill -TERM "$target"; fi
      woken() { says "^woken $number EINTR$"; }
      wait_for 20 woken
      equal 1 "$(grep -c '^woken' said)" "calls that were ended: $mode, $signal"
      detach
      finish
    done
  done
}

# The call waits for a lock of the loader's; nobody waits for the call any more. When it returns the hooks are out again.
test_a_call_that_comes_late() {
  need_root
  running "$targets/attach_stuck" "$targets/attach_stuck_module" beside
  attach # the library is there then
  detach
  echo in >&7
  wait_for 20 says inside
  "$heaptap" record -o p/ -P "$target" 2>log 7>&- &
  sampler=$!
  in_the_call() { grep -q '/memfd:heaptap ' "/proc/$target/maps"; }
  wait_for 30 in_the_call
  kill -TERM $sampler
  status=0
  wait $sampler || status=$?
  equal 1 $status status
  matches 'given up while its thread [0-9]+ was in the call; it goes on by itself, and records nothing$' log
  echo >&7
  wait_for 20 says out
  gone() { ! in_the_call; }
  wait_for 30 gone
  attach -p 1
  detach
  finish
}

# A thread that did not stop when it was to, and stops while another is called, would do so with the loader's lock, which the
# call waits for: here it waits for a file system, which answers then.
test_a_thread_that_stops_late() {
  need_root
  cat >slow_input.c <<'C'
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tests/unit/fuse_server.h"
static const char input[] = "in\n\n"; /* the second line comes when somebody opens "go", the end with "over" */
static void serve(int fuse_fd)
{
	const struct fuse_attr attr = {.ino = 2, .mode = S_IFREG | 0644, .nlink = 1, .size = sizeof(input) - 1};
	const struct fuse_entry_out entry = {.nodeid = 2, .attr = attr};
	const struct fuse_attr_out attributes = {.attr = attr};
	const struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
	static char text[1 << 16];
	const struct fuse_in_header *request = (void *)text;
	const struct fuse_read_in *wish = (void *)(request + 1);
	while (read(fuse_fd, text, sizeof(text)) > 0) {
		if (request->opcode == FUSE_INIT)
			fuse_answer_init(fuse_fd, request);
		else if (request->opcode == FUSE_LOOKUP)
			fuse_answer(fuse_fd, request, 0, &entry, sizeof(entry));
		else if (request->opcode == FUSE_GETATTR)
			fuse_answer(fuse_fd, request, 0, &attributes, sizeof(attributes));
		else if (request->opcode == FUSE_OPEN)
			fuse_answer(fuse_fd, request, 0, &opened, sizeof(opened));
		else if (request->opcode == FUSE_READ) {
			if (wish->offset >= 3)
				close(open(wish->offset == 3 ? "go" : "over", O_RDONLY));
			fuse_answer(fuse_fd, request, 0, input + wish->offset, wish->offset < sizeof(input) - 1);
		} else if (request->opcode != FUSE_FORGET && request->opcode != FUSE_INTERRUPT)
			fuse_answer(fuse_fd, request, request->opcode == FUSE_RELEASE ? 0 : -ENOSYS, NULL, 0);
	}
}
int main(int argc, char *argv[])
{
	const int fuse_fd = fuse_mount("mounted");
	if (fuse_fd < 0)
		return 77;
	if (fork() == 0) {
		serve(fuse_fd);
		_exit(0);
	}
	const int fd = open("mounted/input", O_RDONLY);
	close(fuse_fd);
	if (fd < 0 || dup2(fd, 0) != 0 || close(fd) != 0 || umount2("mounted", MNT_DETACH) != 0)
		return 1;
	return execv(argv[1], argv + 1);
}
C
  gcc -w -D_GNU_SOURCE -I "$top" -o slow_input slow_input.c
  mkdir mounted
  mkfifo go over
  ./slow_input "$targets/attach_stuck" "$targets/attach_stuck_module" beside >said 2>said.err &
  target=$!
  inside_or_ended() { says inside || ! kill -0 $target 2>/dev/null; }
  wait_for 20 inside_or_ended
  says inside || skip "no FUSE file system can be mounted here: $(cat said.err)"
  beside=$(find "/proc/$target/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vx "$target")
  "$heaptap" record -o p/ -P "$target" 2>log &
  sampler=$!
  waits_for_the_lock() { grep -q '^202 ' "/proc/$target/task/$beside/syscall"; }
  wait_for 30 waits_for_the_lock
  : >go
  wait_for 20 says out
  wait_for 20 grep -q 'attached; paused one thread' log
  : >over
  wait "$target" || fail "the target ended with $?"
  wait "$sampler" || fail "record ended with $?: $(cat log)"
}
