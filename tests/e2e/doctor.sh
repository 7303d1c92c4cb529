# SPDX-License-Identifier: Apache-2.0
# `heaptap doctor` of what is no ELF file: a script is judged by its interpreter, anything else gets its own message.

# judged PROGRAM FILE: doctor says that it judges the program, and no word about the file but that
judged() {
  status_of "$heaptap" doctor "$2" >status
  matches "^ok    $1 is dynamically linked: (its allocations are|what it allocates by malloc is) seen$" out
  ! grep -E "^(ok|note|bad) +$2 (is dynamically|is stripped|has)" out || fail "$2 is judged as an ELF file"
}

# program FILE LINE
script() {
  printf "$2" >"$1"
  chmod +x "$1"
}

test_scripts() {
  export PATH=/usr/bin:/bin
  script plain.sh '#!/bin/sh\necho\n'
  judged /bin/sh ./plain.sh
  matches '^ok +./plain.sh is a script for /bin/sh: that is judged below$' out
  script options.sh '#! /bin/sh -eu \necho\n'
  judged /bin/sh ./options.sh
  script env.py '#!/usr/bin/env python3\n'
  judged /usr/bin/python3 ./env.py
  matches '^ok +./env.py is a script for python3, which /usr/bin/env finds as /usr/bin/python3: that is judged below$' out
  script env-s.py '#!/usr/bin/env -S LC_ALL=C python3 -u\n'
  judged /usr/bin/python3 ./env-s.py
  # A script for a script.
  script outer "#!$PWD/plain.sh\n"
  judged /bin/sh ./outer
  matches "^ok +$PWD/plain.sh is a script for /bin/sh" out
  # As execvp and shells run it.
  script none 'echo\n'
  judged /bin/sh ./none
  matches '^note +./none is a script without a #! line: /bin/sh runs it' out
}

test_scripts_that_cannot_run() {
  script missing '#!/no/such/interpreter\n'
  equal 1 "$(status_of "$heaptap" doctor ./missing)"
  matches '^bad +./missing is a script for /no/such/interpreter: there is no such program$' out
  script env '#!/usr/bin/env no-such-program\n'
  equal 1 "$(status_of "$heaptap" doctor ./env)"
  matches '^bad +./env is a script for no-such-program: there is no such program$' out
  script dos '#!/bin/sh\r\necho\r\n'
  equal 1 "$(status_of "$heaptap" doctor ./dos)"
  matches '^bad +./dos is a script for /bin/sh\?, with a carriage return: there is no such program$' out
  matches '^ +fix: end its lines with LF' out
  script loop "#!$PWD/loop\n"
  equal 1 "$(status_of "$heaptap" doctor ./loop)"
  matches '^heaptap: ./loop cannot run' err
}

# complains WANTED FILE
complains() {
  equal 1 "$(status_of "$heaptap" doctor "$2")" "status for $2"
  equal "heaptap: $1" "$(cat err)"
  ! grep -E "^(ok|note|bad) .*$2" out || fail "$2 is judged"
}

test_what_is_no_program() {
  echo hello >text
  : >empty
  head -c 300 /dev/zero >zeros
  chmod +x zeros
  mkdir folder
  mkfifo pipe
  cp "$targets/leaky" leaky
  complains './text is no program: neither an ELF file nor a script with a #! line' ./text
  complains './zeros is no program: neither an ELF file nor a script with a #! line' ./zeros
  complains './empty is no program: the file is empty' ./empty
  complains './folder is a folder: name a program in it' ./folder
  complains './pipe is no file that can be executed: a device, a pipe or a socket' ./pipe
  complains 'there is no file ./missing' ./missing
  complains 'there is no program missing in PATH' missing
  complains 'there is no program leaky in PATH; the one here: heaptap doctor ./leaky' leaky
}

# What a shell's $! is: not the program, but it leads there.
test_the_pid_of_heaptap() {
  "$heaptap" record -q -p 1 sh -c 'echo >there; sleep 1000; :' &
  wait_for 20 test -e there
  front=$!
  shell=$(child_of $front sh)
  for pid in $front "$(sampler_of $front)"; do
    equal 1 "$(status_of "$heaptap" doctor "$pid")"
    grep -A9 "^[a-z]* *process" out >said
    matches "^bad +process $pid is heaptap itself: name a process that it profiles$" said
    matches "^ +fix: heaptap doctor [0-9]+ \((sh|sleep)\)$" said
    equal 2 "$(wc -l <said)" 'lines'
  done
  kill $(ps -o pid= --ppid "$shell") "$shell"
  wait $front || :
  for word in 0 99999999999999999999; do
    equal 1 "$(status_of "$heaptap" doctor $word)"
    equal "heaptap: $word is not a process id" "$(cat err)"
  done
}

test_a_process_that_may_not_be_examined() {
  need_root
  stage
  equal 1 "$(status_of unprivileged "$heaptap" doctor $$)"
  matches "^heaptap: process $$ (belongs to another user|cannot be traced)" err
}

# What `heaptap record -P` would say.
test_a_process_that_cannot_be_attached_to() {
  need_root
  /usr/bin/python3 -c 'import os, time
child = os.fork()
if not child: os._exit(0)
print(child, flush=True)
time.sleep(1000)' >child &
  parent=$!
  zombie() { other=$(cat child) && grep -qs '^State:.*Z (' "/proc/$other/status"; }
  wait_for 20 zombie
  equal 1 "$(status_of "$heaptap" doctor "$other")"
  matches "^heaptap: process $other has ended \(a zombie" err
  kill -KILL $parent
  echo 'int main(void) { puts("rests"); fflush(0); for (;;) sleep(100); }' >rest.c
  aarch64-linux-gnu-gcc -w -static -o rest rest.c
  qemu-aarch64 ./rest >said &
  other=$!
  wait_for 20 grep -q rests said
  "$heaptap" doctor $other >out 2>err || true
  matches "process $other is an emulator, and runs a program for another architecture" out
  equal 1 "$(status_of "$heaptap" record -q -P $other --duration 1ms)"
  matches "^heaptap: pid $other is an emulator, and runs a program for another architecture\$" err
  kill -KILL $other
  "$heaptap" record -q -o p/ sleep 1000 2>err &
  front=$!
  profiled() { other=$(child_of $front sleep) && grep -qs /memfd:heaptap "/proc/$other/maps"; }
  wait_for 20 profiled
  kill -KILL "$(sampler_of $front)"
  sampler_died() { grep -q 'the sampler died' err; }
  wait_for 20 sampler_died
  "$heaptap" doctor "$other" >out || true
  matches "process $other was profiled, and its sampler is gone" out
  equal 1 "$(status_of "$heaptap" record -q -P "$other" --duration 1ms)"
  matches "^heaptap: pid $other was profiled, and its sampler is gone: heaptap adopt $other\$" err
  kill -KILL "$other"
}

# judged_bad WORDS FIX FILE: the file's only line is that it cannot be recorded, with what to do
judged_bad() {
  equal 1 "$(status_of "$heaptap" doctor "$3")" "status for $3"
  grep -A1 -F -- "$3 " out >said
  equal "bad   $3 $1
      fix: $2" "$(cat said)" "$3"
}

test_programs_that_cannot_run() {
  cp "$targets/leaky" forbidden
  chmod 644 forbidden
  equal 1 "$(status_of "$heaptap" doctor ./forbidden)"
  matches '^bad +./forbidden has no execute permission: it cannot be started$' out
  matches '^ +fix: chmod \+x ./forbidden$' out
  printf '#!/bin/sh\n' >script
  equal 1 "$(status_of "$heaptap" doctor ./script)"
  matches '^bad +./script has no execute permission' out
  printf '#!%s\n' "$PWD/forbidden" >by
  chmod +x by
  equal 1 "$(status_of "$heaptap" doctor ./by)"
  matches "^bad +./by is a script for $PWD/forbidden, which may not be executed$" out
  # Cut anywhere: in the header, in the segments.
  for bytes in 40 3000; do
    head -c $bytes "$targets/leaky" >cut$bytes
    chmod +x cut$bytes
    judged_bad 'is damaged: it ends before what its header announces' 'build or copy it again' ./cut$bytes
  done
  echo 'int f(void) { return 1; }' | gcc -c -o object -x c -
  echo 'int f(void) { return 1; }' | gcc -shared -fPIC -Wl,-soname,library -o library -x c -
  chmod +x object
  judged_bad 'is no program: an object file that is not linked, or a core dump' 'name the program itself' ./object
  judged_bad 'is no program but a shared library: what it allocates is seen in programs' 'name a program that uses it' ./library
  # One fact, said once.
  cp "$targets/static_hello" static
  judged_bad 'is statically linked: the library cannot be preloaded, so nothing of it is seen' \
    'link it dynamically (without -static)' ./static
}

test_a_bare_line() {
  printf '#!\necho\n' >bare
  equal 1 "$(status_of "$heaptap" doctor ./bare)"
  equal 'heaptap: ./bare is no program: its #! names none, and it has no execute permission' "$(cat err)"
  chmod +x bare
  judged /bin/sh ./bare
  matches '^note +./bare is a script with a #! that names no program: /bin/sh runs it, and is judged below$' out
  record -q ./bare # so it is
}

test_a_folder_is_no_program() {
  mkdir folder
  for folder in . .. folder ./folder /; do
    equal 1 "$(status_of "$heaptap" doctor $folder)"
    equal "heaptap: $folder is a folder: name a program in it" "$(cat err)"
  done
}

# Without root's rights: what stands in for uprobes, and what would permit them.
test_without_rights() {
  need_root # who is not root may have the capabilities
  [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ] || skip 'uprobes may be permitted to everybody'
  stage leaky
  chmod 777 .
  unprivileged "$heaptap" doctor >out
  matches '^note +backend uprobe: perf events are not permitted \(kernel.perf_event_paranoid, capabilities or a seccomp filter\)$' out
  matches '^ +fix: run as root: uprobes need CAP_SYS_ADMIN, CAP_PERFMON alone is refused$' out
  unprivileged "$heaptap" record -v -p 64K -o x.pb.gz "$targets/leaky" 3000 64 2>err
  matches '^heaptap: stacks by (breakpoint|copy), since uprobes are not permitted' err
  equal 600 "$(stat -c %a x.pb.gz)" 'mode of the profile'
}

# with CAPABILITIES COMMAND...: as another user who has these alone
with() {
  local capabilities=$1
  shift
  setpriv --reuid "$other_user" --regid 65534 --clear-groups --inh-caps="-all$capabilities" --ambient-caps="-all$capabilities" "$@"
}

# What each capability gives is what doctor says of it, and what record gets.
test_capabilities() {
  need_root
  stage leaky
  chmod 777 .
  with ,+perfmon,+ipc_lock "$heaptap" doctor >out
  matches '^ok +perf_event_paranoid -?[0-9]+, .*, uid [0-9]+, CAP_PERFMON, CAP_IPC_LOCK$' out
  if grep -q '^ok .*backend uprobe' out; then # a kernel between 5.8 and the mend of July 2025
    with ,+perfmon,+ipc_lock "$heaptap" record -v -b uprobe -p 64K -o p.pb.gz "$targets/leaky" 3000 64 2>err
    matches '^heaptap: stacks by uprobe, as asked for' err
  else
    matches '^note +backend uprobe: perf events are not permitted' out
    matches '^ +fix: run as root: uprobes need CAP_SYS_ADMIN, CAP_PERFMON alone is refused$' out
    with ,+perfmon,+ipc_lock "$heaptap" record -b uprobe -p 64K -o p.pb.gz "$targets/leaky" 3000 64 2>err
    matches '^heaptap: backend uprobe is not available: perf events are not permitted' err
  fi
  with ,+sys_admin "$heaptap" doctor >out
  matches ', uid [0-9]+, CAP_SYS_ADMIN$' out
  matches '^ok +backend uprobe' out
  with ,+sys_admin "$heaptap" record -v -b uprobe -p 64K -o a.pb.gz "$targets/leaky" 3000 64 2>err
  matches '^heaptap: stacks by uprobe, as asked for' err
  # Root without it is no better than others.
  setpriv --bounding-set -sys_admin "$heaptap" doctor >out
  ! grep 'uid 0.*CAP_SYS_ADMIN' out || fail 'it has CAP_SYS_ADMIN'
  grep -q '^ok .*backend uprobe' out || matches '^ +fix: run as root: uprobes need CAP_SYS_ADMIN' out
}

# Debian's and Ubuntu's kernels refuse all events above 2, CAP_PERFMON or not (seen on 6.1): as they answer, and as they say.
test_paranoid_3() {
  need_root
  echo 3 >paranoid
  cat >there.sh <<'S'
mount --bind paranoid /proc/sys/kernel/perf_event_paranoid || exit 42
exec python3 "$HEAPTAP_TOP/tests/without_perf.py" -EACCES setpriv --bounding-set -sys_admin "$@"
S
  status=$(status_of unshare --mount sh there.sh "$heaptap" doctor)
  [ "$status" != 42 ] || skip 'no mounts here'
  matches '^ok +perf_event_paranoid 3, .*CAP_PERFMON' out
  matches '^note +backend breakpoint: perf events are not permitted' out
  matches '^ +fix: sudo sysctl kernel.perf_event_paranoid=2, on the machine itself; above that CAP_SYS_ADMIN is needed, CAP_PERFMON is refused$' out
  matches '^ok +backend copy: always available' out
  unshare --mount sh there.sh "$heaptap" record -v -p 1 -o x.pb.gz "$targets/leaky" 300 64 2>err
  matches '^heaptap: stacks by copy, since perf events are not permitted' err
  profile_check x.pb.gz
}

# As Docker's and podman's filters refuse it.
test_filter_of_a_container() {
  python3 "$top/tests/without_perf.py" "$heaptap" doctor >out
  matches '^note +this process has a seccomp filter, which forbids perf_event_open$' out
  matches '^note +backend uprobe: perf events are not permitted' out
  matches "^ +fix: a container's seccomp profile that allows perf_event_open, and CAP_SYS_ADMIN: docker or podman run --privileged has both\$" out
  if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
    matches '^ +fix: docker or podman run --privileged; or on the machine: ' out
  else
    matches '^ +fix: in a container: docker run --cap-add PERFMON, podman run --cap-add PERFMON,SYS_ADMIN, or ' out
  fi
}

# What record says before COMMAND starts (e2e/obstacles) is a finding here.
test_a_damaged_library() {
  mkdir damaged
  cp "$heaptap" "$HEAPTAP_PROGRAMS"/libheaptap*.so damaged/
  : >damaged/libheaptap.so
  equal 1 "$(status_of damaged/heaptap doctor)"
  matches '^bad +/.*/damaged/libheaptap.so has 0 bytes: it is not a library$' out
  ! grep -E '^ok +(library|backend)' out || fail 'a damaged library is said to do'
  head -c 20000 "$HEAPTAP_PROGRAMS/libheaptap-attach.so" >damaged/libheaptap-attach.so
  cp "$HEAPTAP_PROGRAMS/libheaptap.so" damaged/
  status_of damaged/heaptap doctor >status
  matches '^ok +library /.*/damaged/libheaptap.so$' out
  if [ "$(uname -m)" = x86_64 ]; then
    equal 1 "$(cat status)"
    matches '^bad +/.*/damaged/libheaptap-attach.so is damaged: the file is cut off after 20000 bytes$' out
  fi
  rm damaged/libheaptap.so
  mv damaged alone
  status_of alone/heaptap doctor >status
  matches '^(bad +libheaptap.so is not found|ok +library /.*)$' out
}

# A program may be another user's, and root looks at it: its file is read by a process that has given up its rights before.
test_a_file_is_read_without_rights() {
  command -v strace >/dev/null || skip 'no strace'
  strace -f -o calls -e trace=prctl,read,pread64 "$heaptap" doctor /bin/true >out || true
  matches '/bin/true is dynamically linked' out
  awk '/SECCOMP_MODE_FILTER/ { confined[$1] = 1 } /(pread64|read)\(.*ELF/ && confined[$1] { print }' calls >after
  [ -s after ] || { cat calls >&2; fail 'it is not read after the rights are given up'; }
}
