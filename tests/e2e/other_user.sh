# SPDX-License-Identifier: Apache-2.0
# An image that another user executes cannot open the descriptors of the sampler below /proc: it asks for its region
# through the region socket.
# timeout: 60

# through_the_socket OPTIONS... COMMAND...: records into folder ./x; again if the sampler did not answer within the 200 ms
# that a program waits, and reports it.
through_the_socket() {
  local attempt
  for attempt in 1 2 3 4 5; do
    rm -rf x
    record -o x/ -p 64K "$@" 2>err || fail "status $?: $(cat err)"
    grep -q 'not profiled: [0-9]* program' err || return 0
  done
}

test_program_that_drops_root_and_executes() {
  [ "$(id -u)" = 0 ] || skip "needs root to drop it"
  stage # where the build is may be closed to the other user
  for backend in uprobe breakpoint copy; do
    through_the_socket -b $backend setpriv --reuid 65534 --clear-groups \
      python3 -c 'blocks = [bytes(1000) for i in range(50000)]'
    profile=$(only x/heaptap.python3*.exit.pb.gz)
    profile_check "$profile"
    comment_of "$profile" | grep -E 'samples: [0-9]{3,} taken' || fail "$backend: no samples of the other user's image"
    at_least 1 "$(share_of '^(_start|main|Py_.*|_?Py.*)$' "$profile")" "$backend: stacks"
  done
}

test_strangers_at_the_socket() {
  [ "$(id -u)" = 0 ] || skip "only a sampler run by root has a region socket"
  # Connects to the region socket of its own session without the cookie, keeps silent, or says something wrong: no region for it,
  # and the command is profiled as ever.
  through_the_socket python3 -c '
import os, socket
path = os.environ["HEAPTAP"].rsplit(":", 1)[0]
quiet = []
for i in range(40):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(60)
    s.connect("\0heaptap" + path + "-" + os.environ["HEAPTAP"].rsplit(":", 1)[1][:6])
    if i % 2:
        s.send(b"12345678")
        assert s.recv(16) == b"", "a stranger was let in"
    quiet.append(s)
blocks = [bytes(1000) for i in range(50000)]
'
  profile=$(only x/heaptap.python3*.exit.pb.gz)
  profile_check "$profile"
  comment_of "$profile" | grep -E 'samples: [0-9]{3,} taken'
}
