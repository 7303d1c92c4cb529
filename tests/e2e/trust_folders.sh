# SPDX-License-Identifier: Apache-2.0
# Root works in, or is led into, a folder of another user: he exchanges it for a link, and nothing is written, removed or
# read behind the link. (The rules: unit/folder.)
# timeout: 120

. "$top/tests/push.sh"

stranger=4243

as_stranger() {
  setpriv --reuid $stranger --regid $stranger --clear-groups "$@"
}

# Makes `theirs`, a folder of the stranger's, and `victim`, one of root's, with files that must stay.
their_folder() {
  need_root
  as_stranger mkdir theirs
  mkdir -m 711 victim
  mkdir victim/sub
  echo secret | tee victim/keepme victim/config victim/config-2 victim/config-3 victim/exit.sym >/dev/null
  # what a process that was killed has left would be removed after a while
  touch -d '1 hour ago' victim/.new-1-x victim/.heaptap-0123456789abcdef.tmp
  before=$(victim_is)
}

victim_is() {
  stat -c '%n %a %U' victim
  find victim -mindepth 1 -printf '%p %y %s %m %u %T@\n' | sort
}

victim_stays() {
  equal "$before" "$(victim_is)" "root's folder"
}

# exchange FOLDER: another user's, for a link to root's; what was in it is in FOLDER.was
exchange() {
  as_stranger sh -c 'mv "$1" "$1.was" && ln -s "$2" "$1"' sh "$1" "$PWD/victim"
}

# held PATTERN: records into the pattern a program that waits until ./go is there; sets recorder
held() {
  rm -f ready go
  "$heaptap" record -p 4K -o "$1" sh -c '
    "$1" /dev/null 1 0 >/dev/null; echo >ready; until [ -e go ]; do sleep 0.02; done; "$1" /dev/null 1 0 >/dev/null' sh \
    "$targets/truth" 2>err &
  recorder=$!
  wait_for 20 test -e ready
}

# Ends it.
released() {
  touch go
  wait $recorder || fail "record: $(cat err)"
}

# The folder was opened at the start: wherever its owner moves it, the profiles are in it.
test_an_output_folder_is_exchanged() {
  local folder
  their_folder
  for folder in theirs/out theirs/above/out; do
    held "$folder/"
    wait_for 20 eval "ls $folder/heaptap.truth.*.exit.pb.gz >ls 2>&1"
    exchange theirs/"$(echo "$folder" | cut -d/ -f2)"
    released
    victim_stays
    profile_check $(find theirs -name '*.exit.pb.gz')
    equal 3 "$(find theirs -name '*.exit.pb.gz' | wc -l)" 'exit profiles in the folder that was moved'
    rm -rf theirs/*
  done
}

# A name that is in the linked folder, too.
test_a_file_of_root_is_not_overwritten() {
  their_folder
  held theirs/out/config
  wait_for 20 test -e theirs/out/config
  exchange theirs/out
  released
  victim_stays
  profile_check theirs/out.was/config-2
}

# A link that was there first: said before COMMAND is started.
test_a_link_in_the_way_at_the_start() {
  their_folder
  as_stranger ln -s "$PWD/victim" theirs/link
  for output in theirs/link/ theirs/link/x.pb.gz theirs/link/new/x.pb.gz "$PWD/theirs/link/%e"; do
    equal 2 "$(status_of "$heaptap" record -q -o "$output" touch started)" "the status with $output"
    matches "written to the folder .*theirs/link(/new)?: a symbolic link in another user's folder is not followed" err
  done
  [ ! -e started ] || fail 'COMMAND was started'
  victim_stays
}

# A folder whose name is known only with the profile, and is the target's choice.
test_a_link_in_place_of_a_directive() {
  their_folder
  as_stranger ln -s "$PWD/victim" theirs/truth
  "$heaptap" record -p 4K -o 'theirs/%e/config' "$targets/truth" /dev/null 1 0 2>err >out
  matches 'profile not written: theirs/truth/config: Too many levels of symbolic links' err
  victim_stays
  record -q -p 4K -o 'theirs/%p/%e.%n' "$targets/truth" /dev/null 1 0
  profile_check theirs/*/truth.exit
}

# --keep removes files, too: those that were written, and no others of their names.
test_files_beyond_keep_are_removed_where_they_are() {
  local first number
  their_folder
  mkfifo input
  "$heaptap" record -q -p 1K -i 100ms --keep 1 -o 'theirs/out/x.%n' "$targets/snapshot_signal" wait <input >output 2>err &
  recorder=$!
  exec 9>input
  wait_for 20 eval 'ls theirs/out/x.0* >ls 2>&1'
  for number in $(seq -w 0001 0999); do echo secret >"victim/x.$number"; done
  before=$(victim_is)
  exchange theirs/out
  first=$(ls theirs/out.was/x.0* | head -1)
  wait_for 20 test ! -e "$first"
  wait_for 20 eval 'ls theirs/out.was/x.0* >ls 2>&1'
  exec 9>&-
  wait $recorder || fail "record: $(cat err)"
  victim_stays
  profile_check theirs/out.was/x.exit
}

# A folder that is gone is made again, as before; one that is moved keeps its profiles.
test_an_own_folder_is_moved_or_removed() {
  held own/
  wait_for 20 eval 'ls own/heaptap.truth.*.exit.pb.gz >ls 2>&1'
  mv own moved
  released
  equal 3 "$(ls moved/*.exit.pb.gz | wc -l)" 'exit profiles in the folder that was moved'
  [ ! -e own ] || fail 'it was made again'
  held own/
  wait_for 20 eval 'ls own/heaptap.truth.*.exit.pb.gz >ls 2>&1'
  wait_for 20 rm -rf own
  released
  equal 2 "$(ls own/*.exit.pb.gz | wc -l)" 'exit profiles in the folder that was made again'
  profile_check moved/*.exit.pb.gz own/*.exit.pb.gz
}

# Links of one's own lead where they say, also in a folder such as /tmp.
test_own_links_are_followed() {
  mkdir real
  ln -s real link
  record -q -p 4K -o link/a.pb.gz "$targets/truth" /dev/null 1 0
  record -q -p 4K -o "$PWD/link/%e/b.pb.gz" "$targets/truth" /dev/null 1 0
  profile_check real/a.pb.gz real/truth/b.pb.gz
  "$heaptap" merge -o link/c.pb.gz real/a.pb.gz
  profile_check real/c.pb.gz
  need_root
  their_folder
  stage truth
  as_stranger sh -c 'mkdir theirs/real; ln -s real theirs/link'
  mkdir -m 700 runtime
  chown "$stranger" runtime # or the session is in /tmp/heaptap-UID, where tests of trust_snapshot count
  as_stranger env HOME="$PWD/theirs" XDG_RUNTIME_DIR="$PWD/runtime" "$heaptap" record -q -p 4K -o theirs/link/ \
    "$targets/truth" /dev/null 1 0
  profile_check theirs/real/heaptap.truth.*.exit.pb.gz
}

# The commands that write what they read.
test_reports_behind_a_link() {
  their_folder
  record -q -p 4K -o a.pb.gz "$targets/truth" /dev/null 1 0
  as_stranger sh -c 'ln -s "$1" theirs/link; ln -s /dev/full theirs/device' sh "$PWD/victim"
  equal 1 "$(status_of "$heaptap" merge -o theirs/link/config a.pb.gz a.pb.gz)" 'status of merge'
  equal 1 "$(status_of "$heaptap" report -o theirs/link/config a.pb.gz)" 'status of report'
  equal 1 "$(status_of "$heaptap" export -f folded -o theirs/link/config a.pb.gz)" 'status of export'
  matches 'cannot write theirs/link/config: Too many levels of symbolic links' err
  equal 1 "$(status_of "$heaptap" export -f folded -o theirs/device a.pb.gz)" 'status for a device'
  matches 'cannot write theirs/device: Invalid argument' err # of /dev/full it would be "No space left on device"
  victim_stays
}

# ---- folders that variables name, which su keeps

# As the stranger has it: nothing new in it, nothing removed.
their_folder_stays() {
  equal "$1" "$(find theirs -printf '%p %y %u %m %T@\n' | sort)" "the stranger's folder"
}

# in_private COMMAND...: with a /var/lib of its own, where root's spools are
in_private() {
  unshare -m true 2>/dev/null || skip 'no mount namespace can be made'
  unshare -m sh -c 'mount -t tmpfs none /var/lib && exec "$@"' sh "$@"
}

# The pusher ends after `record`, and the last that it does is to remove a spool.
pusher_ended() {
  wait_for 20 eval '! pgrep -f "heaptap-push.*127.0.0.1:$port" >pushers'
}

# A recording that sends to a spool with a number, which is removed at the end: it waits for ./go. Sets recorder, and name,
# the spool's, which anybody can compute.
held_spool() {
  rm -f ready go
  "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" --label env=prod \
    sh -c 'echo >ready; until [ -e go ]; do sleep 0.02; done' 2>err &
  recorder=$!
  wait_for 20 test -e ready
  wait_for 20 test -e "$spool"/*-*/lock
  name=$(ls "$spool")
}

test_a_spool_that_is_a_link() {
  local theirs_before
  their_folder
  server
  held_spool
  released
  pusher_ended
  equal 1 "$(requests)" 'profiles that were sent'
  as_stranger sh -c 'mkdir -p theirs/heaptap/push; ln -s "$1" "theirs/heaptap/push/$2"' sh "$PWD/victim" "$name"
  theirs_before=$(find theirs -printf '%p %y %u %m %T@\n' | sort)
  in_private env XDG_STATE_HOME="$PWD/theirs" "$heaptap" record -q -p 4K -o a.pb.gz \
    --push "pyroscope+http://127.0.0.1:$port" --label env=prod "$targets/leaky" 100 64 2>err || fail "record: $(cat err)"
  pusher_ended
  victim_stays
  their_folder_stays "$theirs_before"
  equal 2 "$(requests)" 'profiles that were sent'
}

# The folder of root's spools is root's, and in it is another user's: as it may be that of heaptap-push.service.
test_a_spool_in_a_strangers_folder() {
  their_folder
  server
  mkdir -p state/heaptap
  as_stranger mkdir theirs/push
  mv theirs/push state/heaptap/
  status_of "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" "$targets/leaky" 100 64 >status
  equal '' "$(ls -A state/heaptap/push)" "made in the stranger's folder"
  matches 'cannot use the spool .*: Operation not permitted' err
  # The service's own spools lie there, so root has another folder; its status shows both.
  in_private sh -c '
    mkdir -p /var/lib/heaptap/push/prod
    printf "sent 7\n" >/var/lib/heaptap/push/prod/counters
    chown -R '$stranger' /var/lib/heaptap/push
    shift; unset XDG_STATE_HOME
    "$@" && ls /var/lib/heaptap >made && ls /var/lib/heaptap/push >service' sh - \
    "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" "$targets/leaky" 100 64
  equal 'push push-root' "$(tr '\n' ' ' <made | sed 's/ $//')" 'folders in /var/lib/heaptap'
  equal prod "$(cat service)" "in the service's folder"
  equal 1 "$(requests)" 'profiles that were sent'
}

# What is no file of the spool's stays, and so does its folder.
test_a_spool_removes_what_it_knows() {
  server
  held_spool
  released
  wait_for 20 test ! -e "$spool/$name" # as nothing waits in it
  held_spool
  mkdir "$spool/$name/folder"
  echo mine | tee "$spool/$name/keepme" "$spool/$name/state/keepme" >/dev/null
  released
  pusher_ended
  equal 2 "$(requests)" 'profiles that were sent'
  equal 'mine mine' "$(cat "$spool/$name/keepme" "$spool/$name/state/keepme" | xargs)" 'files in the spool'
}

# What is root's to read is not sent as a profile of another user's: a file that he makes in the folder that he moved away
# has the name of root's in that behind the link.
test_a_profile_behind_a_link_is_not_sent() {
  their_folder
  server
  made victim/secret.pb.gz 1 5 3 77
  made b.pb.gz 1 5 3 78
  as_stranger sh -c 'mkdir theirs/out; cp b.pb.gz theirs/out/'
  "$heaptap" push --follow --to "pyroscope+http://127.0.0.1:$port" theirs/out 2>err &
  pusher=$!
  trap 'kill $pusher $server_pid 2>/dev/null || :' EXIT
  wait_for 20 eval '[ "$(requests)" = 1 ]'
  exchange theirs/out
  as_stranger cp b.pb.gz theirs/out.was/secret.pb.gz
  wait_for 20 eval 'grep -q "cannot read theirs/out/secret.pb.gz: Too many levels of symbolic links" err || [ "$(requests)" -gt 1 ]'
  kill -TERM $pusher
  wait $pusher || :
  equal 1 "$(requests)" 'profiles that were sent'
}

test_nothing_is_made_in_another_users_runtime_folder() {
  local theirs_before
  their_folder
  stage truth leaky
  chmod 700 theirs
  theirs_before=$(find theirs -printf '%p %y %u %m %T@\n' | sort)
  XDG_RUNTIME_DIR=$PWD/theirs record -q -p 4K -o a.pb.gz "$targets/truth" /dev/null 1 0
  their_folder_stays "$theirs_before"
  # He has it for his own sockets.
  as_stranger env XDG_RUNTIME_DIR="$PWD/theirs" HOME="$PWD/theirs" "$heaptap" record -q -p 4K -o theirs/b.pb.gz \
    sh -c 'ls "$XDG_RUNTIME_DIR/heaptap" >theirs/sockets'
  matches '^[0-9]+\.sock$' theirs/sockets
}

test_a_cache_behind_a_link() {
  local theirs_before
  their_folder
  as_stranger ln -s "$PWD/victim" theirs/heaptap
  chmod 700 victim
  before=$(victim_is)
  theirs_before=$(find theirs -printf '%p %y %u %m %T@\n' | sort)
  XDG_CACHE_HOME=$PWD/theirs HOME=$PWD record -q -p 1K -o a.pb.gz "$targets/truth" /dev/null 1 0
  victim_stays
  their_folder_stays "$theirs_before"
  [ -d .cache/heaptap ] || fail 'no cache in our own home'
}

# The daemon's socket, and the file beside it that turns it off.
test_a_socket_in_another_users_folder() {
  local theirs_before
  their_folder
  as_stranger sh -c 'ln -s "$1" theirs/link; mkdir theirs/run' sh "$PWD/victim"
  theirs_before=$(find theirs -printf '%p %y %u %m %T@\n' | sort)
  for folder in link run new; do
    export HEAPTAP_SOCKET=$PWD/theirs/$folder/control
    equal 1 "$(status_of "$heaptap" disable --now)" 'status of disable --now'
    [ $folder = new ] || equal 1 "$(status_of "$heaptap" enable --now)" 'status of enable --now'
    printf '[service]\nprofile = no\n' >heaptap.conf
    equal 1 "$(status_of "$heaptap" daemon --config heaptap.conf --store store)" 'status of the daemon'
  done
  matches 'theirs/new/control: Operation not permitted' err
  victim_stays
  their_folder_stays "$theirs_before"
}
