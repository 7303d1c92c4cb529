# SPDX-License-Identifier: Apache-2.0
# A uprobe hears everybody who uses the library: what is not the session's is counted, and enters no profile.

test_another_session_is_counted() {
  need_root
  stage trust_hold truth # a library that no other test's programs use
  "$heaptap" record -q -b uprobe -p 4K -i 0 -o here/ "$targets/trust_hold" ready 2>err &
  front=$!
  wait_for 20 test -e ready
  record -q -b uprobe -p 4K -i 0 -o there/ "$targets/truth" /dev/null 1 0
  kill -TERM "$(child_of $front trust_hold)"
  wait $front || :
  ! grep -q 'backend uprobe is not available' err || skip 'no uprobes here'
  comment_of there/heaptap.truth.*.exit.pb.gz >comments
  ! grep 'of strangers' comments || fail 'nobody else was sampled then'
  comment_of here/heaptap.trust_hold.*.exit.pb.gz >comments
  matches '[0-9]+ bad, [1-9][0-9]* of strangers' comments
}
