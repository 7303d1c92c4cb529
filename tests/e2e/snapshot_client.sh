# SPDX-License-Identifier: Apache-2.0
# What `heaptap snapshot` makes of answers that a sampler gives when it ends or has too much to do.
# timeout: 60

# fake reads|deaf WORDS...: a sampler of ours that answers one client with these packets and ends
fake() {
  mkdir -p -m 700 "$XDG_RUNTIME_DIR/heaptap"
  python3 - "$XDG_RUNTIME_DIR/heaptap/1.sock" "$@" <<'PYTHON' &
import os, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind(sys.argv[1])
server.listen(8)
open(sys.argv[1] + ".listens", "w").close()
client, _ = server.accept()
if sys.argv[2] == "reads":
    client.recv(100)
for word in sys.argv[3:]:
    client.send(word.encode())
client.close()
os.unlink(sys.argv[1])
PYTHON
  fake=$!
  wait_for 10 test -e "$XDG_RUNTIME_DIR/heaptap/1.sock.listens"
}

# client: asks for a snapshot of ourselves; sets status
client() {
  status=$(status_of timeout "$(seconds 20)" "$heaptap" snapshot $$)
  wait $fake
  rm "$XDG_RUNTIME_DIR/heaptap/1.sock.listens"
}

test_a_promise_is_not_an_answer() {
  fake reads 'asked 3' "written $$ /tmp/one.pb.gz"
  client
  equal 1 "$status" 'exit status'
  equal /tmp/one.pb.gz "$(cat out)" 'standard output'
  matches 'has not said what became of 2 snapshots' err
  fake reads 'asked 1'
  client
  equal 1 "$status" 'exit status'
  matches 'has not said what became of 1 snapshot$' err
  ! grep -q 'none of your' err || fail 'it does profile it'
  fake reads 'asked 1' "written $$ /tmp/one.pb.gz"
  client
  equal 0 "$status" 'exit status'
}

test_a_sampler_that_is_busy() {
  for how in reads deaf; do
    fake $how busy
    client
    equal 1 "$status" 'exit status'
    matches 'too many others are waiting for snapshots of a session; try again later' err
    ! grep -q 'none of your' err || fail 'nobody knows'
  done
}
