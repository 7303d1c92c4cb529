# SPDX-License-Identifier: Apache-2.0
# The user's limits: the sampler lives with them, COMMAND keeps them, and what they cost is said.

test_file_size_limit_of_the_shell() {
  (
    ulimit -S -f 100
    record -p 1K -o prof/ bash -c 'ulimit -S -f >limit; exec "$0" /dev/null 1 0' "$targets/truth" 2>err
  ) || fail "status $?: $(cat err)"
  equal 100 "$(cat limit)" "COMMAND's limit"
  profile_check prof/heaptap.truth.*.exit.pb.gz
}

# A shell's `ulimit -f` sets the hard limit too. Who may raise that does, everybody else is told which limit it is; COMMAND
# runs under it in either case.
test_hard_file_size_limit() {
  (
    ulimit -f 100
    "$heaptap" record -p 1K -o prof/ bash -c 'ulimit -H -f >limit; exec "$0" /dev/null 1 0' "$targets/truth" 2>err
  ) || fail "status $?: $(cat err)"
  equal 100 "$(cat limit)" "COMMAND's limit"
  if ls prof/heaptap.truth.*.exit.pb.gz >/dev/null 2>&1; then
    profile_check prof/heaptap.truth.*.exit.pb.gz
  else
    matches "cannot start the sampler: the hard limit of a file's size \(ulimit -H -f\) is below the 330 MB" err
  fi
}

test_address_space_limit() {
  (
    ulimit -v 800000
    record -p 1K -o prof/ "$targets/truth" /dev/null 1 0 2>err
  ) || fail "status $?"
  matches 'no profile of .*truth: its limit of address space or of data \(ulimit -v, ulimit -d\) leaves no room' err
  matches 'not profiled: 1 program: its limit of address space' err
}

# As root with a user's $HOME (sudo): what root makes there, the user could not use.
test_no_cache_below_a_folder_of_another() {
  need_root
  unset XDG_CACHE_HOME
  mkdir home
  chown 4243 home
  HOME=$PWD/home record -q -p 1K -o prof/ "$targets/truth" /dev/null 1 0
  profile_check prof/heaptap.truth.*.exit.pb.gz
  equal '' "$(ls -A home)" 'made in the home of another'
  HOME=$PWD record -q -p 1K -o prof/ "$targets/truth" /dev/null 1 0
  [ -d .cache/heaptap ] || fail 'no cache in our own home'
}

# The reason of one program is not given for another.
test_address_space_limit_of_a_child() {
  cat >launcher.c <<'C'
#include <stdlib.h>
int main(int argc, char **argv)
{
	return argc == 2 && system(argv[1]) != 0;
}
C
  gcc -static -o launcher launcher.c 2>/dev/null || skip 'no static libc'
  record -p 1K -o prof/ ./launcher "ulimit -v 800000; exec $targets/truth /dev/null 1 0" 2>err || fail "status $?"
  matches 'not profiled: 1 program: its limit of address space' err
  matches 'no profile of ./launcher: it did not load libheaptap.so' err
}
