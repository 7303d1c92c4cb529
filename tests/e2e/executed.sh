# SPDX-License-Identifier: Apache-2.0
# A program that does not load the library, executed by a process that has: it is named, with the reason.

# says BACKEND REGEX COMMAND...: the old program's end is the exec, in the summary and in the profile; the status is kept
says() {
  local backend=$1 regex=$2
  shift 2
  rm -rf profiles
  equal 11 "$(status_of "$heaptap" record -b "$backend" -p 1 -o profiles/ "$@")" "status of: $*"
  matches "^heaptap: [a-z]+ \(pid [0-9]+\) executed $regex" err
  ! grep -q 'exited with status' err || fail "the end of another program: $(cat err)"
  ! grep -q 'not seen' err || fail "the C library of another program: $(cat err)"
  comment_of "$(only profiles/*.exit.pb.gz)" >comments
  matches "^snapshot: exit, the process executed $regex" comments
  profile_check profiles/*.exit.pb.gz
}

programs() {
  cat >program.c <<'C'
#include <stdlib.h>
#include <unistd.h>
int main(void) { void *volatile held = malloc(100000); usleep(1500000); return held ? 11 : 0; } /* three times the longest pause between looks */
C
  gcc -O1 -o plain program.c
  gcc -O1 -static -o static program.c
}

test_executed_without_the_library() {
  programs
  backends='copy breakpoint'
  [ "$(id -u)" != 0 ] || backends="$backends uprobe"
  for backend in $backends; do
    says "$backend" '.*/plain, which is not profiled: its environment has no LD_PRELOAD of heaptap$' env -i ./plain
    says "$backend" '.*/static, which is not profiled: it is statically linked' env ./static
  done
  says copy '.*/plain, which is not profiled: its environment has no LD_PRELOAD of heaptap$' env LD_PRELOAD= ./plain
  says copy '.*/plain, which is not profiled: its environment has no HEAPTAP$' env -u HEAPTAP ./plain
  says copy '.*/plain, which is not profiled: its limit of address space' sh -c 'ulimit -v 300000; exec ./plain'
}

# The kernel's record tells of it, however short it lives.
test_executed_and_gone() {
  need_root
  for program in 'env -i ./true' 'env ./true_static'; do
    gcc -O1 -o true -x c - <<<'int main(void) { return 11; }'
    gcc -O1 -static -o true_static -x c - <<<'int main(void) { return 11; }'
    says uprobe '.*true[a-z_]*, which is not profiled: ' $program
  done
}

# Whether it gains privileges is a question of who executes it, not of who runs the sampler.
test_executed_with_privileges_by_another_user() {
  need_root
  stage # where the build is may be closed to the other user
  programs
  cp plain bin/privileged
  chmod 4755 bin/privileged
  chmod a+x .
  says copy '.*/privileged, which is not profiled: it gains privileges when it starts' \
    setpriv --reuid "$other_user" --clear-groups "$PWD/bin/privileged"
}

# One that takes its time and then loads it is profiled, and nothing is said.
test_executed_with_the_library() {
  programs
  for program in 'env ./plain' 'sh -c "exec ./plain"' 'env env sh -c "exec ./plain"'; do
    rm -rf profiles
    equal 11 "$(eval "status_of \"$heaptap\" record -p 1 -o profiles/ $program")"
    matches 'plain .pid [0-9]+. exited with status 11' err
    ! grep -q 'not profiled' err || fail "$(cat err)"
  done
}

# Also of a child that was profiled before, and of a program that says itself why it is not profiled.
test_executed_by_a_forked_child_is_counted_once() {
  programs
  sed -i 's/1500000/4500000/' program.c # longer than a program may take to load the library
  gcc -O1 -static -o static program.c
  gcc -O1 -o plain program.c
  record -b copy -o x.pb.gz sh -c 'sh -c "sleep .3; exec ./static" & wait' 2>err || fail "status $?: $(cat err)"
  matches '^heaptap: not profiled: 1 process after an exec; the last executed .*/static, which is not profiled: it is statically' err
  for limited in 'ulimit -v 200000; ./plain; true' 'sh -c "ulimit -v 200000; ./plain; true"; true'; do
    record -b copy -o x.pb.gz sh -c "$limited" 2>err || fail "status $?: $(cat err)"
    matches 'not profiled: 1 program: its limit of address space' err
    ! grep -q 'after an exec' err || fail "counted twice: $(cat err)"
  done
}

# A child that is forked for that, as a shell does, is named at the end.
test_executed_by_a_forked_child() {
  programs
  for each in 'static:it is statically linked' 'plain:its environment has no LD_PRELOAD of heaptap'; do
    prefix=
    [ "${each%:*}" = static ] || prefix='env -i'
    program="$prefix ./${each%:*}" # again, since a look may be late on a busy machine
    equal 0 "$(status_of record -b copy -o x.pb.gz sh -c "$program; $program; $program; true")"
    matches "^heaptap: not profiled: [123] process(es)? after an exec; the last .*/${each%:*}( \(pid [0-9]+\))?, which is not profiled: ${each#*:}" err
  done
  equal 0 "$(status_of record -b copy -o x.pb.gz sh -c './plain; sh -c "./plain; true"')"
  ! grep -q 'not profiled' err || fail "all are profiled: $(cat err)"
}
