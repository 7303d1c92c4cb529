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

# refused FOLDER REASON OPERAND...: record with these does not start its COMMAND
refused() {
  local folder=$1 reason=$2
  shift 2
  rm -f started
  status=0
  "$heaptap" record "$@" touch started 2>err || status=$?
  equal 2 "$status" "the status with $*"
  equal "heaptap: no profile can be written to the folder $folder: $reason" "$(cat err)" 'message'
  [ ! -e started ] || fail "COMMAND was started with $*"
}

test_a_folder_that_cannot_be_written_is_an_error_before_the_start() {
  need_root
  touch file
  refused /proc/nope 'No such file or directory' -o /proc/nope/
  refused file/out 'Not a directory' -o file/out/%p.pb.gz
  refused file 'Not a directory' -o file/x.pb.gz
  stage truth
  mkdir closed
  setpriv --reuid 1234 --regid 1234 --clear-groups "$heaptap" record -o closed/ "$targets/truth" /dev/null 1 0 \
    2>err && fail 'a folder of somebody else was taken'
  matches 'written to the folder closed: Permission denied' err
  equal '' "$(ls -A closed)" 'left behind'
}

test_a_folder_that_is_missing_is_made_before_the_start() {
  "$heaptap" record -q -o new/folder/ sh -c 'test -d new/folder' || fail 'it was not there'
  "$heaptap" record -q -o 100%%/%e.pb.gz true
  profile_check 100%/true.pb.gz
  equal 100% "$(ls -d 1*)" 'folders'
  "$heaptap" record -q -o '%e/x.pb.gz' true # a directive in the folder's name: made with the profile
  profile_check true/x.pb.gz
}
