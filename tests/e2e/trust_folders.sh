# SPDX-License-Identifier: Apache-2.0
# Root works in, or is led into, a folder of another user: he exchanges it for a link, and nothing is written, removed or
# read behind the link. (The rules: unit/folder.)
# timeout: 120

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

# ---- folders that variables name, which su keeps

# As the stranger has it: nothing new in it, nothing removed.
their_folder_stays() {
  equal "$1" "$(find theirs -printf '%p %y %u %m %T@\n' | sort)" "the stranger's folder"
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
