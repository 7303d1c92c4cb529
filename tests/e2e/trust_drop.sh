# SPDX-License-Identifier: Apache-2.0
# A forked child that has dropped root by the C library has no way to the stacks that its parent copies (trust_drop.c is
# the child, and it is hostile). Such stacks are copied all the time.
# timeout: 240

. "$top/tests/daemon_lib.sh"

need_root

# sees_nothing WHAT FILE: the child found nothing, though there was something to find
sees_nothing() {
  equal 'begun mapped 0 mremap 0 remap_file_pages 0 descriptors 0 map_files 0 parent 0 sampler 0 copied 1' \
    "$(tr '\n' ' ' <"$2" | sed 's/ $//')" "$1"
}

test_of_a_session() {
  record -q -b copy -p 1 "$targets/trust_drop" kept >kept
  at_least 1 "$(sed -n 's/^mapped //p' kept)" 'a child that is root still sees the secret'
  record -q -b copy -p 1 "$targets/trust_drop" dropped >out
  sees_nothing 'by a ticket' out
  for way in locked quietly; do
    record -q -b copy -p 1 "$targets/trust_drop" $way >out
    sees_nothing "by a ticket, $way" out
  done
  record -q -b copy -p 1 "$targets/trust_drop" again >out
  sees_nothing 'executed again' out
}

# Root with less privileges than its sampler may not open what the sampler has, and gets the region by the socket.
test_by_the_socket() {
  stage trust_drop
  record -q -b copy -p 1 setpriv --bounding-set=-sys_ptrace,-sys_admin --inh-caps=-sys_ptrace,-sys_admin \
    "$targets/trust_drop" dropped >out
  sees_nothing 'by the socket' out
}

test_of_an_offer() {
  stage daemon_steps daemon_offer trust_drop
  start_daemon
  LD_PRELOAD=$PWD/bin/libheaptap.so "$targets/trust_drop" kept >kept
  at_least 1 "$(sed -n 's/^mapped //p' kept)" 'a child that is root still sees the secret'
  for way in dropped locked quietly; do
    LD_PRELOAD=$PWD/bin/libheaptap.so "$targets/trust_drop" $way >out
    sees_nothing "of an offer, $way" out
    # there is no room for a file in memory: the offer is anonymous memory
    (ulimit -f 1000 && LD_PRELOAD=$PWD/bin/libheaptap.so "$targets/trust_drop" $way | cat >out)
    sees_nothing "of an offer without files, $way" out
  done
  stop_daemon
}

test_of_a_process_that_is_attached_to() {
  "$targets/trust_drop" dropped >out &
  target=$!
  wait_for 20 grep -q begun out
  "$heaptap" record -q -b copy -p 1 -o out.pb.gz -P $target
  wait $target || fail "status $?"
  sees_nothing 'attached' out
}
