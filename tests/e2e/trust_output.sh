# SPDX-License-Identifier: Apache-2.0
# Profiles in folders that belong to others: no device of the owner's choice is written, and a name that somebody took
# first is not the end of a profile. (The race for a name: unit/pprof_file.)
# timeout: 60

test_a_device_behind_a_link_is_not_written() {
  need_root
  mkdir out
  ln -s /dev/full out/x.pb.gz
  chown -hR 65534 out
  "$heaptap" record -o out/x.pb.gz "$targets/truth" /dev/null 1 0 2>err >out.log
  matches 'profile not written: out/x.pb.gz: Invalid argument' err # of /dev/full it would be "No space left on device"
  "$heaptap" record -o /dev/full "$targets/truth" /dev/null 1 0 2>err >out.log
  matches 'profile not written: /dev/full: No space left on device' err
}

# taken_first COMMAND: makes `shared`, a folder like /tmp, in which COMMAND makes the name $1 unusable; records there
taken_first() {
  need_root
  stage truth
  mkdir shared && chmod 1777 shared
  "$@" shared/x.pb.gz
  setpriv --reuid 1234 --regid 1234 --clear-groups "$heaptap" record -q -o "$PWD/shared/x.pb.gz" "$targets/truth" \
    /dev/null 1 0 2>err || fail "$(cat err)"
  equal '' "$(cat err)" 'messages'
  profile_check shared/x-2.pb.gz
}

test_a_strangers_file_at_the_name() {
  taken_first touch
}

test_a_strangers_fifo_at_the_name() {
  taken_first mkfifo
}
