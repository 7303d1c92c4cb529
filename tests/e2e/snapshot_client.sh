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
  matches 'has not answered for 2 snapshots' err
  fake reads 'asked 1'
  client
  equal 1 "$status" 'exit status'
  matches 'has not answered for 1 snapshot$' err
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

# A process has eight CPU profiles at a time. Who comes then is told that, not that nobody profiles it: of a service's sum
# it would be missing without a word.
test_no_room_is_not_unknown() {
  "$heaptap" record -q -o out/ sleep 1000 &
  front=$!
  started() { target=$(child_of "$front" sleep) && [ -n "$target" ] && "$heaptap" snapshot "$target" >/dev/null 2>&1; }
  wait_for 20 started
  timeout "$(seconds 30)" python3 - "$(only "$XDG_RUNTIME_DIR"/heaptap/*.sock)" "$target" >answers <<'PYTHON'
import socket, sys
def ask():
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(sys.argv[1])
    client.send(b"cpu 600000 " + sys.argv[2].encode())
    print(client.recv(100).decode())
    return client
clients = [ask() for _ in range(9)]
PYTHON
  kill "$target"
  wait "$front" || :
  equal 8 "$(grep -cx 'asked 1' answers)" 'CPU profiles'
  equal busy "$(tail -n 1 answers)" 'the ninth'
}

# Who looks between its bind() and its listen() is refused; that does not mean that the sampler was killed.
test_a_session_that_begins_keeps_its_socket() {
  cat >slow.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

int listen(int fd, int backlog)
{
	struct sockaddr_un name = {0};
	socklen_t bytes = sizeof(name);
	if (getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 && name.sun_path[0]) {
		syscall(SYS_close, open("binds", O_CREAT | O_WRONLY, 0600));
		while (access("gate", F_OK) != 0)
			usleep(1000);
	}
	return (int)syscall(SYS_listen, fd, backlog);
}
C
  gcc -shared -fPIC -o slow.so slow.c
  preload_heaptap "$PWD/slow.so"
  "$heaptap" record -q -o p/ sleep 1000 &
  front=$!
  wait_for 20 test -e binds
  equal 1 "$(status_of snapshot_all_here)" 'status while there is nobody'
  : >gate
  answers() { target=$(child_of "$front" sleep) && [ -n "$target" ] && "$heaptap" snapshot "$target" >paths 2>&1; }
  wait_for 20 answers
  profile_check "$(cat paths)"
  kill "$target"
  wait "$front" || :
  wait_for 20 eval '[ -z "$(ls -A "$XDG_RUNTIME_DIR/heaptap")" ]'
}
