# SPDX-License-Identifier: Apache-2.0
# What cannot be profiled, or written, costs one clear line each and never COMMAND.

# one_line REGEX: stderr has exactly one line of ours that matches
one_line() {
  equal 1 "$(grep -cE -- "$1" err || true)" "lines that match '$1' in: $(cat err)"
}

test_static_binary() {
  equal 23 "$(status_of record "$targets/static_hello")"
  equal 'hello from a static program' "$(cat out)"
  one_line 'static_hello is statically linked'
}

test_children_of_a_static_binary_are_no_reason_to_speak_with_q() {
  equal 23 "$(status_of record -q "$targets/static_hello")"
  equal '' "$(cat err)"
}

test_setuid_binary() {
  need_root
  stage truth
  cp "$(command -v id)" bin/id
  chown root bin/id
  chmod 4755 bin/id
  mkdir -m 777 place
  cd place
  findmnt -no OPTIONS -T . | grep -q nosuid && skip 'the file system ignores setuid'
  equal 0 "$(status_of unprivileged "$heaptap" record ../bin/id -u)"
  equal 0 "$(cat out)" 'effective user'
  one_line 'id gains privileges'
}

test_unwritable_folder() {
  stage truth
  mkdir -m 555 locked
  [ "$(id -u)" = 0 ] || chmod 555 locked
  equal 2 "$(status_of unprivileged "$heaptap" record -p 1 -o locked/x.pb.gz "$targets/truth" /dev/null 1 0)"
  one_line 'locked: Permission denied'
  equal '' "$(ls locked)"
}

test_folder_that_is_a_file() {
  echo >file
  equal 2 "$(status_of record -p 1 -o file/x.pb.gz "$targets/truth" truth.tsv 1 0)"
  one_line 'file: Not a directory'
}

test_full_disk() {
  need_root
  mkdir small
  mount -t tmpfs -o size=16k none small 2>/dev/null || skip 'cannot mount a tmpfs'
  head -c 100000 /dev/zero >small/filler 2>/dev/null || true
  status=$(status_of record -p 1 -o small/x.pb.gz "$targets/truth" truth.tsv 1 0)
  left=$(ls small)
  umount small
  equal 0 "$status"
  one_line 'small/.*No space left on device'
  equal filler "$left" 'nothing half-written is left'
}

test_missing_library() {
  mkdir alone
  cp "$heaptap" alone/
  equal 2 "$(status_of alone/heaptap record touch started)"
  one_line '^heaptap: libheaptap.so not found next to heaptap or in '
  equal 1 "$(wc -l <err)"
  [ ! -e started ] || fail 'COMMAND was started'
}

# Half a library would end COMMAND (SIGBUS), and a file that is none makes the loader complain.
test_damaged_library() {
  mkdir damaged
  cp "$heaptap" damaged/
  whole=$(stat -c %s "$HEAPTAP_PROGRAMS/libheaptap.so")
  for bytes in 0 100 20000 $((whole - 1)); do
    head -c $bytes "$HEAPTAP_PROGRAMS/libheaptap.so" >damaged/libheaptap.so
    equal 2 "$(status_of damaged/heaptap record touch started)"
    one_line "^heaptap: .*/damaged/libheaptap.so .* $bytes bytes"
    equal 1 "$(wc -l <err)"
  done
  head -c $whole /dev/zero >damaged/libheaptap.so
  equal 2 "$(status_of damaged/heaptap record touch started)"
  one_line 'libheaptap.so has [0-9]+ bytes: it is not a library'
  head -c 20000 "$HEAPTAP_PROGRAMS/libheaptap-attach.so" >damaged/libheaptap-attach.so
  sleep 1000 &
  equal 1 "$(status_of damaged/heaptap record -P $!)"
  equal 1 "$(wc -l <err)"
  one_line 'libheaptap-attach.so is damaged: the file is cut off after 20000 bytes'
  kill $!
  [ ! -e started ] || fail 'COMMAND was started'
}

test_library_that_may_not_be_executed() {
  need_root
  mkdir place
  mount -t tmpfs -o noexec none place 2>/dev/null || skip 'cannot mount a tmpfs'
  cp "$HEAPTAP_PROGRAMS/libheaptap.so" place/
  mkdir bin
  cp "$heaptap" bin/
  ln -s ../place/libheaptap.so bin/
  status=$(status_of bin/heaptap record true)
  umount place
  equal 2 "$status"
  one_line 'libheaptap.so is on a file system that is mounted with noexec'
}

test_library_in_a_folder_that_ld_preload_cannot_name() {
  for folder in 'two words' 'colon:colon' 'dollar$LIB'; do
    mkdir "$folder"
    cp "$heaptap" "$HEAPTAP_PROGRAMS/libheaptap.so" "$folder/"
    equal 2 "$(status_of "$folder/heaptap" record touch started)"
    one_line '^heaptap: LD_PRELOAD cannot hold a path with'
  done
}

test_installed_places() {
  mkdir -p usr/bin usr/lib/heaptap
  cp "$heaptap" usr/bin/
  cp "$HEAPTAP_PROGRAMS/libheaptap.so" usr/lib/heaptap/
  record=usr/bin/heaptap
  $record record -q env | grep -q "^LD_PRELOAD=.*/usr/lib/heaptap/libheaptap.so$" || fail 'not found in ../lib/heaptap'
}

test_unprivileged_user() {
  stage truth
  mkdir -m 777 place
  cd place
  # Paced: what an unprivileged user may lock in memory holds no flood.
  unprivileged "$heaptap" record -q -p 4K -o x.pb.gz "$targets/truth" truth.tsv 20 1000
  profile_check x.pb.gz
  at_least 99 "$(share_of '^(main|__clone3?|start_thread|\[lost stack\])$' x.pb.gz)" 'stacks that reach main or are lost'
  at_least 1 "$(share_of '^(main|__clone3?|start_thread)$' x.pb.gz)" 'stacks that reach main'
}

# Without perf_event_open (seccomp, as in most containers) stacks are copied.
test_without_perf() {
  python3 "$top/tests/without_perf.py" "$heaptap" record -q -p 4K -o x.pb.gz "$targets/truth" truth.tsv 20 0
  profile_check x.pb.gz
  at_least 99 "$(share_of '^(main|\[lost stack\])$' x.pb.gz)" 'stacks that reach main or are lost'
  at_least 1 "$(share_of '^main$' x.pb.gz)" 'stacks that reach main'
}

# ---- where heaptap itself cannot run: COMMAND does, in place of it

# instead REGEX ERROR_LINES COMMAND...: COMMAND runs, with its status, and heaptap says why it is not profiled
instead() {
  equal 7 "$(status_of "${@:2}")"
  equal hi "$(cat out)"
  one_line "$1"
  one_line '^heaptap: .*sh runs without being profiled$'
}

test_without_processes() {
  stage truth
  mkdir -m 777 place
  cd place
  for most in 1 2 3; do
    # Of root and this user there may be processes: of this one there are none.
    (uid=$((1000000 + $$)); [ "$(id -u)" = 0 ] || skip 'needs a user without processes'
      instead 'Resource temporarily unavailable' \
        setpriv --reuid $uid --regid $uid --clear-groups \
        bash -c "ulimit -u $most; exec $heaptap record -o p/ sh -c 'echo hi; exit 7'")
  done
}

test_without_descriptors() {
  # The loader needs one to load our libraries.
  for most in 4 5 6 7 10; do
    instead 'Too many open files' bash -c "ulimit -n $most; exec $heaptap record sh -c 'echo hi; exit 7'"
  done
}

test_without_proc() {
  need_root
  unshare -m true || skip 'no mount namespaces'
  instead 'there is no /proc here; ' \
    unshare -m bash -c "umount -l /proc; exec $heaptap record sh -c 'echo hi; exit 7'"
}

test_scheduling_that_cannot_be_shared() {
  need_root
  deadline='chrt -d --sched-runtime 1000000 --sched-period 10000000 0'
  $deadline true 2>/dev/null || skip 'no deadline scheduling here'
  instead 'cannot fork the sampler' $deadline "$heaptap" record sh -c 'echo hi; exit 7'
}

test_a_stack_that_is_too_small() {
  stage truth
  mkdir -m 777 place
  cd place
  equal 7 "$(status_of bash -c "ulimit -Ss 100; exec $heaptap record -q sh -c 'echo hi; exit 7'")"
  equal '' "$(cat err)" 'what is said with a soft limit'
  status=$(status_of unprivileged bash -c "ulimit -s 100; exec $heaptap record sh -c 'echo hi; exit 7'")
  equal 7 "$status"
  ! grep -q dmesg err || fail 'that is not the reason'
  one_line '(died while it was starting: the limit of its stack .ulimit -s. is 100 KiB|^heaptap: recording pid)'
}

# Both have the limit: COMMAND has room for what it shares with the sampler, the sampler has none.
test_little_address_space() {
  stage truth
  mkdir -m 777 place
  cd place
  for kib in 600000 200000; do
    equal 7 "$(status_of unprivileged bash -c "ulimit -v $kib; exec $heaptap record -p 1 -o p/ sh -c 'exit 7'")"
    ! grep -q 'it did not load' err || fail "that is not the reason: $(cat err)"
    matches 'ulimit -v' err
  done
}
