# SPDX-License-Identifier: Apache-2.0
# Kernels that lack what newer ones have: this one, with the rest refused (tests/targets/old_kernel.c). That is what heaptap
# asks a kernel for, and not the kernel: none of them has run here.

program=$targets/capture_backend

# on VERSION COMMAND...: as on a kernel of that version
on() {
  status=0
  # shellcheck disable=SC2086
  "$targets/old_kernel" ${permission:-} "$@" || status=$?
  [ $status != 77 ] || skip 'this kernel has no filters that can be asked'
  return $status
}

# how_many BACKEND PROFILE: stacks by this backend, as its comments say
how_many() {
  comment_of "$2" | sed -n "s/^samples: .*$1 \([0-9]*\).*/\1/p"
}

# The emulation is one: what it leaves out is out.
test_the_stand_in_refuses() {
  cat >ask.c <<'C'
#include <linux/perf_event.h>
#include <stdio.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static int event(int which)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY,
	    .exclude_kernel = 1, .exclude_hv = 1, .disabled = 1, .mmap = 1, .mmap2 = 1,
	    .remove_on_exec = which == 1, .build_id = which == 2};
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? errno : 0;
}
int main(void)
{
	printf("%d %d %d", event(0), event(1), event(2));
	printf(" %d", syscall(SYS_pidfd_open, getpid(), 0) < 0 ? errno : 0);
	printf(" %d\n", memfd_create("x", 8) < 0 ? errno : 0);
	return 0;
}
C
  gcc -o ask ask.c
  here=$(./ask)
  case $here in "0 0 0 0 "*) ;; *) skip "this kernel answers $here itself" ;; esac
  equal '0 22 22 38 22' "$(on 4.18 ./ask)" 'what 4.18 answers'
  equal '0 22 22 0 22' "$(on 5.10 ./ask)" 'what 5.10 answers'
  equal '0 0 0 0 22' "$(on 6.1 ./ask)" 'what 6.1 answers'
}

# Each backend takes stacks, of a program and of what it forks.
test_each_backend() {
  for version in 4.18 5.4 5.10 5.12; do
    for backend in breakpoint copy $([ "$(id -u)" != 0 ] || echo uprobe); do
      way="by $backend" how=late
      [ $backend != copy ] || way='copied by the hook' how=work
      rm -rf out here*
      on $version "$heaptap" record -q -b $backend -p 1 -o out/ sh -c "$program $how here.1 1000 & $program $how here.2 1000; wait" 2>err ||
        fail "$version, $backend: status $?: $(cat err)"
      profiles=(out/heaptap.capture_backend.*.exit.pb.gz)
      equal 2 ${#profiles[@]} "$version, $backend: profiles"
      for profile in "${profiles[@]}"; do
        profile_check "$profile"
        at_least 10 "$(how_many "$way" "$profile")" "$version: stacks $way"
      done
    done
  done
}

# A program that executes another leaves no breakpoint behind: there are four for all.
test_breakpoints_go_with_the_program_that_they_were_for() {
  on 5.12 "$heaptap" record -q -b breakpoint -p 1 -o out/ "$program" chain 6 "$program" late here 1000 2>err ||
    fail "status $?: $(cat err)"
  profile=$(only out/heaptap.capture_backend.*.exit-8.pb.gz) # the eighth program of that process
  profile_check "$profile"
  at_least 10 "$(how_many 'by breakpoint' "$profile")" 'stacks by breakpoint'
}

# What children have inherited goes with it: they go on by copy.
test_children_of_what_was_executed_go_on() {
  "$targets/old_kernel" 5.12 "$heaptap" record -q -b breakpoint -p 1 -o out/ "$program" parted child "$program" work other 100000000 2>err &
  front=$!
  wait_for 30 test -s other
  from=$(cat child)
  further() { [ "$(cat child)" -ge $((from + 2000)) ]; }
  wait_for 30 further
  touch child.end other.end
  wait $front || { status=$?; [ $status != 77 ] || skip 'this kernel has no filters that can be asked'; fail "status $status: $(cat err)"; }
  profile_check out/*.exit.pb.gz
  for profile in out/*.exit.pb.gz; do
    comment_of "$profile" >comments
    matches 'backend changed: .*, gone with an exec 1\)' comments
    [ "$(how_many 'copied by the hook' "$profile")" -lt 500 ] || copied=yes
  done
  equal yes "${copied:-no}" 'the child went on by copy'
}

# A container's filter refuses by EPERM what it does not know; ends of processes are seen by looking.
test_calls_refused() {
  cat >family <<F
#!/bin/sh
$targets/leaky 3000 64
(exec $targets/leaky 3000 64)
sh -c 'kill -9 \$\$'
exit 3
F
  chmod +x family
  for permission in '' -p; do
    rm -rf profiles
    equal 3 "$(status_of on 4.18 "$heaptap" record -p 64K -o profiles/ ./family)" "$(cat err)"
    for profile in profiles/heaptap.leaky.*.exit.pb.gz; do
      profile_check "$profile"
    done
    equal 2 "$(ls profiles/heaptap.leaky.*.exit.pb.gz | wc -l)" "profiles${permission:+ with EPERM}"
  done
}

# The daemon and the attacher know processes by their folder, too, and close descriptors one by one.
heaptap_on() {
  on "$1" true
  printf '#!/bin/sh\nexec %s %s %s "$@"\n' "$targets/old_kernel" "$1" "$heaptap" >heaptap.old
  chmod +x heaptap.old
  heaptap=$PWD/heaptap.old
}

test_daemon() {
  . "$top/tests/daemon_lib.sh"
  stage old_kernel daemon_steps daemon_offer
  heaptap_on 4.18
  start_daemon
  carry on hold 1000 1000 touch held await go drop 400 &
  target=$!
  wait_for 20 test -e held
  snapshot_all "$target"
  profile_check "$profile"
  reached_exactly "$profile" hold 'inuse_space 1000000' 'inuse_objects 1000'
  matches "pid $target \\(daemon_steps\\)" daemon.log
  touch go
  wait $target
  wait_for 20 profile_of "$target" exit
  profile_check "$profile"
  reached_exactly "$profile" hold 'inuse_space 600000' 'inuse_objects 600'
  stop_daemon
}

test_attach() {
  need_root
  . "$top/tests/attach.sh"
  heaptap_on 4.18
  running "$targets/attach_truth" 4 "$targets/attach_module"
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  detach
  echo >&7
  wait_for 30 said_times done 2
  finish
  profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
  profile_check "$profile"
  reached_exactly "$profile" thread_work 'alloc_objects 2000' 'alloc_space 600000' 'inuse_objects 1000' 'inuse_space 300000'
  reached_exactly "$profile" module_alloc 'alloc_objects 200' 'alloc_space 200000' 'inuse_objects 200'
}

test_events() {
  on 5.10 "$heaptap" record -q --no-heap -e page-faults/1 -o x.pb.gz "$targets/leaky" 3000 64 2>err || skip "no events here: $(cat err)"
  "$heaptap" check x-page-faults-exit.pb.gz || fail 'not valid'
  go tool pprof -top x-page-faults-exit.pb.gz >/dev/null || fail 'pprof refuses it'
}

test_doctor_says_what_it_is() {
  status_of on 5.10 "$heaptap" doctor >status
  matches '^note +this process has a seccomp filter, which allows perf_event_open$' out
}
