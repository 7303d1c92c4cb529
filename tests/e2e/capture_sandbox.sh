# SPDX-License-Identifier: Apache-2.0
# Programs that may make few system calls, and die of any other (capture_seccomp.c).

sandbox=$targets/capture_seccomp

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

# agrees PROFILE: with the line in ./truth
agrees() {
  read -r _ pid objects bytes inuse <truth
  profile_check "$1"
  reached_exactly "$1" take "alloc_objects $objects" "alloc_space $bytes" "inuse_space $inuse"
}

in_sandbox() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$sandbox" "$1" >truth 2>err || fail "$backend: status $?: $(cat err)"
    read -r _ pid _ <truth
    agrees "$(only heaptap.capture_seccomp."$pid".exit.pb.gz)"
  done
}

test_the_sandbox_kills() {
  # Else the other tests prove nothing: under the filter of those tests, a call of ours would be the end.
  equal 159 "$(status_of "$sandbox" exec "$sandbox" later)" 'prctl under the loader filter'
}

test_filter_after_start() { in_sandbox later; }

test_filter_after_start_and_forks() {
  in_sandbox fork
  # The child has a place and a profile of its own: 202 more blocks.
  equal 2 "$(find . -name 'heaptap.capture_seccomp.*.exit.pb.gz' | wc -l)" profiles
  profile_check heaptap.*.pb.gz
}

# Memory is locked without a look at what there is, which takes calls that the program does not make.
test_memory_locked_under_a_filter() { in_sandbox lock; }

# Nor is it asked how many threads there are.
test_memory_limited_under_a_filter() { in_sandbox limit; }

# Executed under a filter already in force, which allows what the loader has just used: the hand-over uses no more.
test_filter_before_exec() {
  for backend in $(backends); do
    rm -f heaptap.*
    record -q -b "$backend" -p 1 "$sandbox" exec "$sandbox" inside >truth 2>err || fail "$backend: status $?: $(cat err)"
    matches '^truth ' truth
    for profile in heaptap.*.exit*.pb.gz; do
      if "$readers/oracle" -reach '^take$' "$profile" | grep -q '^reach.alloc_objects.602'; then
        agrees "$profile"
        continue 2
      fi
    done
    fail "$backend: no profile of the program in the sandbox"
  done
}

# As in most containers: perf_event_open is refused, all else is allowed.
test_filter_without_perf() {
  python3 "$top/tests/without_perf.py" "$heaptap" record -q -p 1 -o x.pb.gz "$sandbox" later >truth
  agrees x.pb.gz
  comment_of x.pb.gz | grep -q 'backend copy' || fail 'not backend copy'
}
