# SPDX-License-Identifier: Apache-2.0
# An image executed by another user than the sampler's cannot open the sampler's descriptors below /proc: it comes by
# the door.
# timeout: 60

test_program_that_drops_root_and_executes() {
  [ "$(id -u)" = 0 ] || skip "needs root to drop it"
  stage # where the build is may be closed to the other user
  for backend in uprobe breakpoint copy; do
    mkdir $backend
    record -q -b $backend -p 64K -o $backend/ setpriv --reuid 65534 --clear-groups \
      python3 -c 'blocks = [bytes(1000) for i in range(50000)]'
    profile=$(only $backend/heaptap.python3*.exit.pb.gz)
    profile_check "$profile"
    comment_of "$profile" | grep -E 'samples: [0-9]{3,} taken, 0 lost' || fail "$backend: no samples of the other user's image"
  done
}

test_strangers_at_the_door() {
  [ "$(id -u)" = 0 ] || skip "there is a door for a root sampler only"
  # Connects to the door of its own session without the cookie, keeps silent, or says something wrong: no region for it,
  # and the command is profiled as ever.
  record -q -p 64K -o x/ python3 -c '
import os, socket
path = os.environ["HEAPTAP"].rsplit(":", 1)[0]
quiet = []
for i in range(40):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect("\0heaptap" + path + "-" + os.environ["HEAPTAP"].rsplit(":", 1)[1][:6])
    if i % 2:
        s.send(b"12345678")
        assert s.recv(16) == b"", "a stranger was let in"
    quiet.append(s)
blocks = [bytes(1000) for i in range(50000)]
'
  profile=$(only x/heaptap.python3*.exit.pb.gz)
  profile_check "$profile"
  comment_of "$profile" | grep -E 'samples: [0-9]{3,} taken, 0 lost'
}
