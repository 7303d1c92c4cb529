# SPDX-License-Identifier: Apache-2.0
# Hundreds of samples before the sampler comes to read the first (capture_burst.c): it stands still meanwhile.

program=$targets/capture_burst

# burst OPTIONS ARGUMENTS: of record and of the program; the sampler runs again when the program has done its work
burst() {
  # on one processor: with one ring for each of many, none would be full
  taskset -cp "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)" $$ >/dev/null
  # shellcheck disable=SC2086
  "$heaptap" record -p 64K -o out/ $1 "$program" ${2%% *} here ${2#* } 2>err &
  front=$!
  wait_for 10 test -e here
  sampler=$(child_of $front heaptap-sampler)
  kill -STOP "$sampler"
  touch here.go
  wait_for 30 test -e here.done
  kill -CONT "$sampler"
  touch here.end
  wait $front || fail "status $?: $(cat err)"
  for profile in out/*.exit.pb.gz; do
    profile_check "$profile"
    comment_of "$profile"
  done >comments
  grep -qE '(backend|as asked for).*(uprobe|breakpoint)' comments || skip "no perf events here: $(grep '^period' comments)"
}

# lost: samples without a stack, of all processes
lost() {
  sed -n 's/^samples: .* taken, \([0-9]*\) lost.*/\1/p' comments | awk '{ sum += $1 } END { print sum + 0 }'
}

# none_lost ARGUMENTS SAMPLES
none_lost() {
  need_root
  for options in '-b auto' '--labels thread'; do
    rm -rf here* out
    burst "$options" "$1"
    equal 0 "$(lost)" "$options: stacks lost of $(grep '^samples' comments)"
    at_least "$2" "$(sums alloc_objects out/*.exit.pb.gz)" "$options: samples"
  done
}

test_one_thread() { none_lost 'one 800' 800; }
test_many_threads() { none_lost 'threads 200 8' 1600; }
test_forked_children() { none_lost 'forks 200 8' 1600; }
test_programs() { none_lost 'execs 200 6' 1200; }

# Who asks for the uprobe gets it. What the rings have no room for is said where everybody looks.
test_full_rings_are_said() {
  need_root
  burst '-b uprobe' 'one 800'
  at_least 1 "$(lost)" 'stacks lost'
  matches "^samples: 800 taken, $(lost) lost stacks, no room in the rings $(lost), by uprobe" comments
  matches "samples 800 taken, $(lost) without a stack; no room in the rings: $(lost)\$" err
}
