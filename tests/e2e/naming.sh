# SPDX-License-Identifier: Apache-2.0
# Where profiles go and what they are called.

test_default_name() {
  record -q -p 1 "$targets/truth" truth.tsv 1 0
  profile=$(only heaptap.*.exit.pb.gz)
  [[ $profile =~ ^heaptap\.truth\.[0-9]+\.exit\.pb\.gz$ ]] || fail "named $profile"
  equal 600 "$(stat -c %a "$profile")" mode
  profile_check "$profile"
}

test_every_directive() {
  before=$(date +%s)
  record -q -p 1 -o 'x%%-%e-%p-%n-%h-%t.gz' "$targets/truth" truth.tsv 1 0
  profile=$(only x*-exit-*.gz)
  [[ $profile =~ ^x%-truth-[0-9]+-exit-(.+)-([0-9]+)\.gz$ ]] || fail "named $profile"
  equal "$(hostname | tr -c 'A-Za-z0-9._+\n-' _)" "${BASH_REMATCH[1]}" host
  at_least "$before" "${BASH_REMATCH[2]}" seconds
}

test_folders_are_made() {
  record -q -p 1 -o a/b%p/c/ "$targets/truth" truth.tsv 1 0
  only a/b*/c/heaptap.truth.*.exit.pb.gz
  mkdir there
  record -q -p 1 -o there "$targets/truth" truth.tsv 1 0
  only there/heaptap.truth.*.exit.pb.gz
}

# A path with a mistake in it is made, and said.
test_folders_that_were_missing_are_said() {
  record -p 1 -o ./profils/deep/ "$targets/truth" truth.tsv 1 0 2>err
  matches '^heaptap: made ./profils/deep$' err
  record -p 1 -o ./profils/deep/ "$targets/truth" truth.tsv 1 0 2>err
  ! grep ' made ' err || fail 'it was there'
  record -p 1 -o ./beside/ "$targets/truth" truth.tsv 1 0 2>err
  ! grep ' made ' err || fail 'only the last part is new'
  record -q -p 1 -o ./other/deep/ "$targets/truth" truth.tsv 1 0 2>err
  ! grep ' made ' err || fail 'said with -q'
}

test_names_within_a_run_are_never_reused() {
  record -q -p 1 -o same.pb.gz sh -c "$targets/truth t1 1 0; $targets/truth t2 1 0; true"
  profile_check same.pb.gz same-2.pb.gz same-3.pb.gz
  [ ! -e same-4.pb.gz ] || fail 'one too many'
}

test_earlier_runs_are_replaced() {
  echo old >same.pb.gz
  record -q -p 1 -o same.pb.gz "$targets/truth" truth.tsv 1 0
  profile_check same.pb.gz
  equal 'same-peak.pb.gz same.pb.gz' "$(echo same*)"
}

test_odd_executable_names() {
  cp "$targets/truth" './we ird$(name)'
  record -q -p 1 './we ird$(name)' truth.tsv 1 0
  only heaptap.we_ird__name_.*.exit.pb.gz
}

test_summary_tells_where_the_profile_is() {
  record -p 1 "$targets/truth" truth.tsv 1 0 2>err
  profile=$(only heaptap.*.exit.pb.gz)
  matches "$profile" err
  matches 'go tool pprof|pprof ' err
  record -q -p 1 "$targets/truth" truth.tsv 1 0 2>err
  equal '' "$(cat err)" 'stderr with -q'
}

# pprof's "File:" is the name that was executed, not the file that a link leads to (Debian's redis-server).
test_a_program_with_two_names() {
  cp "$targets/leaky" one-name
  ln -s one-name other-name
  record -q -p 4K -i 0 -e page-faults/1 -o named/%n.pb.gz "$PWD/other-name" 3000 64
  for profile in named/exit.pb.gz named/page-faults-exit.pb.gz; do
    "$heaptap" check "$profile" || fail "$profile is not valid"
    pprof_top $profile >top
    matches '^File: other-name$' top
  done
  go tool pprof -raw named/exit.pb.gz 2>/dev/null | sed -n '/^Mappings/,$p' >mappings
  ! grep one-name mappings || fail 'mappings of one file have two names'
  # A name that leads elsewhere by the time that heaptap looks is not believed: by a relative path there is none.
  record -q -p 4K -i 0 -o relative.pb.gz ./other-name 3000 64
  pprof_top relative.pb.gz >top
  matches '^File: one-name$' top
}

# The process ends while the sampler looks at it.
test_a_link_of_a_process_that_ends() {
  cp "$targets/leaky" one-name
  ln -s one-name other-name
  preload_heaptap "$targets/ended_module"
  record -q -p 4K -i 0 -e page-faults/1 -o ended/%n.pb.gz "$PWD/other-name" 3000 64
  for profile in ended/exit.pb.gz ended/page-faults-exit.pb.gz; do
    "$heaptap" check "$profile" || fail "$profile is not valid"
    pprof_top $profile >top
    equal 'File: other-name' "$(head -n 1 top)" "of $profile"
  done
}

# The process has ended, but is still there, at the sampler's first look: nothing says what it executed but its records.
test_a_link_that_had_ended_at_the_first_look() {
  mkdir my.software # a folder whose name is like a library's
  cp "$targets/leaky" my.software/one-name
  ln -s one-name my.software/other-name
  mkfifo begin end
  "$heaptap" record -q -b copy -p 4K -i 0 -e page-faults/1 -o out/ \
    sh -c 'echo >begun; read word <begin; "$0" 3000 64 >log & echo $! >pid; read word <end; wait' "$PWD/my.software/other-name" &
  front=$!
  wait_for 20 test -e begun
  sampler=$(sampler_of $front)
  kill -STOP "$sampler"
  echo go >begin
  wait_for 20 test -s pid
  wait_for 20 grep -q '^State:.Z' "/proc/$(cat pid)/status"
  kill -CONT "$sampler"
  wait_for 40 eval 'ls out/heaptap.other-name."$(cat pid)".exit.pb.gz out/heaptap.other-name."$(cat pid)".page-faults-exit.pb.gz >/dev/null 2>&1'
  echo go >end
  wait $front
  for kind in exit page-faults-exit; do
    profile=$(only out/heaptap.other-name."$(cat pid)".$kind.pb.gz)
    "$heaptap" check "$profile" || fail "$profile is not valid"
    pprof_top "$profile" >top
    equal 'File: other-name' "$(head -n 1 top)" "of $kind"
  done
}

# The process is gone before the sampler's first look: its list of modules names "./other-name", which is a link. The
# mapping found by that name and its build id is the program's, not one without a file.
test_a_link_that_was_gone_at_the_first_look() {
  cp "$targets/leaky" one-name
  ln -s one-name other-name
  mkfifo begin end
  "$heaptap" record -q -b copy -p 4K -i 0 -o out/ \
    sh -c "read word <begin; ./other-name 3000 64 >log; : >over; read word <end" &
  front=$!
  # COMMAND runs once the sampler is ready.
  wait_for 20 eval 'sampler=$(child_of $front heaptap-sampler); [ -n "$sampler" ] && [ -n "$(child_of $front sh)" ]'
  kill -STOP "$sampler"
  echo go >begin
  wait_for 20 test -e over
  kill -CONT "$sampler"
  echo go >end
  wait $front
  profile=$(only out/heaptap.other-name.*.exit.pb.gz)
  profile_check "$profile"
  pprof_top "$profile" >top
  matches '^File: one-name$' top
  matches ' load_table$' top
}

# Nothing is made beside a device, and it stays one.
test_a_device() {
  need_root
  mkdir folder
  cd folder
  mknod -m 666 device c 1 3 2>/dev/null && echo x >device 2>/dev/null || skip 'no device can be made here'
  "$heaptap" record -q -p 1 -i 100ms --keep 1 --delta -o device "$targets/leaky" 3000 64 || fail "status $?"
  equal device "$(ls)"
  [ -c device ] || fail 'the device was replaced'
}

# The loader knows a library by a link, the kernel by its file. A program that returns at once is known by the loader's list
# alone, if the kernel cannot be asked in time.
test_a_library_has_one_name() {
  cat >short.cc <<'C'
#include <string>
#include <vector>
std::vector<std::string> *volatile kept;
int main(int count, char **) { kept = new std::vector<std::string>(1000, std::string(100, 'x')); return count - 1; }
C
  g++ -O1 -o short short.cc
  for run in 1 2 3 4 5 6 7 8 9 10; do
    record -q -p 1 -o x$run.pb.gz ./short
    go tool pprof -raw x$run.pb.gz 2>/dev/null | grep -o '/[^ ]*libstdc++[^ ]*' || true
  done | sort -u >names
  equal "$(realpath "$(ldd short | awk '/libstdc/ { print $3 }')")" "$(cat names)" 'names of a library'
}
