# SPDX-License-Identifier: Apache-2.0
# A target shows root a folder of root's in place of the one that root has just made for it.

. "$HEAPTAP_TOP/tests/attach.sh"
need_root

# All of it in which a change would show.
seen() {
  stat -c '%a %u %y' victim
  ls -lA --time-style=full-iso victim
  grep -r . victim || :
}

# REPEAT rounds: what is mounted over the folder comes too early or too late in some.
test_a_folder_of_roots_over_ours() {
  stage attach_covers
  chmod 755 .
  mkdir -m 700 victim
  echo own >victim/region
  echo own >victim/libheaptap-attach.so
  touch -d '1 day ago' victim victim/*
  seen >before
  unprivileged "$targets/attach_covers" "$PWD/victim" >said 2>said.err &
  job=$!
  ready_or_ended() { says ready || ! kill -0 $job 2>/dev/null; }
  wait_for 20 ready_or_ended
  says ready || skip "no such namespaces here: $(cat said.err)"
  target=$(sed -n 's/^pid //p' said)
  for round in $(seq "${REPEAT:-10}"); do
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log || matches 'cannot be attached to' log
    seen >after
    cmp before after || fail "round $round: $(diff before after), $(grep -c covered said) times covered"
    [ ! -d p ] || [ -z "$(ls p)" ] || profile_check p/*
    rm -rf p
  done
  says covered || fail 'it has never come to that'
  kill -TERM "$target"
  wait $job || fail "it ended with $?"
}
