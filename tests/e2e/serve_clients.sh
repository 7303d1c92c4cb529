# SPDX-License-Identifier: Apache-2.0
# `heaptap serve` and clients that mean no good, or are no good: tokens, connections, time.
# timeout: 180

. "$HEAPTAP_TOP/tests/serve.sh"

# Where it listens, and for whom, also the configuration says; the command line goes before it.
test_configured() {
  mkdir -p conf/heaptap
  printf '%s\n' 0123456789abcdef0123 >token
  chmod 600 token
  own token
  chmod -R a+rX conf
  printf '%s\n' '[service x]' 'nonsense = 1' '[daemon]' "listen = $PWD/run/web" "token-file = $PWD/token" >conf/heaptap/heaptap.conf
  XDG_CONFIG_HOME=$PWD/conf "${user[@]}" "$heaptap" serve 2>serve.err &
  children+=($!)
  wait_for 20 test -S run/web
  answer() {
    curl -sS -o body -w '%{http_code}' --unix-socket "$PWD/run/web" "$@" http://localhost/api/v1/processes
  }
  equal 401 "$(answer)"
  equal 200 "$(answer -H 'Authorization: Bearer 0123456789abcdef0123')"
  XDG_CONFIG_HOME=$PWD/conf serve
  equal 401 "$(curl -sS -o body -w '%{http_code}' "$url/api/v1/processes")"
  echo 'listen = here' >>conf/heaptap/heaptap.conf
  equal 2 "$(XDG_CONFIG_HOME=$PWD/conf status_of "${user[@]}" "$heaptap" serve)"
  matches 'heaptap.conf:6: listen' err
}

test_a_token_where_others_can_connect() {
  printf '%s\n' 0123456789abcdef0123 >token
  chmod 600 token
  own token
  equal 2 "$(status_of "${user[@]}" "$heaptap" serve --listen 0.0.0.0:0)"
  equal 1 "$(wc -l <err)" 'lines of the refusal'
  matches 'give --token-file' err
  equal 2 "$(status_of "${user[@]}" "$heaptap" serve --listen '[::]:0')"
  chmod 644 token
  equal 2 "$(status_of "${user[@]}" "$heaptap" serve --token-file token)"
  matches 'everybody may read' err
  chmod 600 token
  printf 'short\n' >small
  chmod 600 small
  own small
  equal 2 "$(status_of "${user[@]}" "$heaptap" serve --token-file small)"
  program a -p 1 -b copy
  serve --token-file token
  for path in /debug/pprof/ /debug/pprof/heap "/pid/$(cat a.pid)/debug/pprof/heap" /metrics /sd /api/v1/processes \
    /api/v1/openapi.json; do
    equal 401 "$(fetch "$path")" "$path"
    matches '^WWW-Authenticate: Bearer' head
    equal 401 "$(fetch "$path" -H 'Authorization: Bearer 0123456789abcdef012')" "$path"
    equal 401 "$(fetch "$path" -H 'Authorization: Basic 0123456789abcdef0123')" "$path"
    equal 200 "$(fetch "$path" -H 'Authorization: Bearer 0123456789abcdef0123')" "$path"
  done
  for path in / /healthz; do
    equal 200 "$(fetch "$path")" "$path"
  done
  # A snapshot is a file of the session: with a token only.
  equal 200 "$(fetch "/api/v1/snapshot?pid=$(cat a.pid)" -X POST -H 'Authorization: Bearer 0123456789abcdef0123')"
  matches 'a/0001.pb.gz"' body
  test -s a/0001.pb.gz || fail 'no file'
  equal 405 "$(fetch "/api/v1/snapshot?pid=$(cat a.pid)" -H 'Authorization: Bearer 0123456789abcdef0123')"
  kill $serve_pid
  wait $serve_pid || :
  serve
  equal 403 "$(fetch "/api/v1/snapshot?pid=$(cat a.pid)" -X POST)"
  # What was once there says where it is now.
  for path in /pprof/heap "/pid/$(cat a.pid)/pprof/symbol"; do
    equal 410 "$(fetch "$path")" "$path"
    equal '/pprof/... is gone: use /debug/pprof/...' "$(cat body)"
  done
  finish a
}

# Each takes one more byte now and then: each is cut off, and nobody else waits.
test_slow_clients_are_cut_off() {
  program a -p 1 -b copy
  serve
  /usr/bin/python3 - "${url##*:}" >slow <<'PYTHON' &
import socket, sys, time
port = int(sys.argv[1])
clients = []
for i in range(100):
    s = socket.create_connection(("127.0.0.1", port))
    s.setblocking(False)
    if i % 2:
        s.send(b"GET /debug/pprof/heap HTTP/1.1\r\nHost: localhost\r\nX: ")
    clients.append(s)
began = time.monotonic()
print("ready", flush=True)
while clients and time.monotonic() - began < 170:
    time.sleep(1)
    left = []
    for s in clients:
        try:
            if s.recv(1000) == b"":
                continue
            left.append(s)
        except BlockingIOError:
            try:
                s.send(b"a")
                left.append(s)
            except OSError:
                pass
        except OSError:
            pass
    clients = left
print("left", len(clients), flush=True)
PYTHON
  children+=($!)
  wait_for 20 grep -q ready slow
  for i in 1 2 3; do
    equal 200 "$(fetch /debug/pprof/heap)"
  done
  wait $!
  matches '^left 0$' slow
  finish a
}

# crowd ADDRESS KIND: 1,200 connections of one client, again and again, until it is ended: 127.0.0.1:PORT or a path;
# idle, half (a request), body (half of it), or reader (asks for a large answer and does not read it).
crowd() {
  [ -e crowd.py ] || cat >crowd.py <<'PYTHON'
import resource, socket, sys, time
address, kind = sys.argv[1:]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
first = {"idle": b"", "half": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
    "body": b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\na",
    "reader": b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef0123\r\n\r\n"}[kind]
class Slow:
    def __init__(self):
        self.sent = not first
        self.socket = socket.socket(socket.AF_UNIX if "/" in address else socket.AF_INET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setblocking(False)
        try:
            self.socket.connect(address if "/" in address else ("127.0.0.1", int(address.split(":")[1])))
        except BlockingIOError:
            pass
    def tend(self):
        try:
            if not self.sent:
                self.socket.send(first)
                self.sent = True
            elif kind in ("half", "body"):
                self.socket.send(b"a")
            return self.socket.recv(1, socket.MSG_PEEK if kind == "reader" else 0) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
clients = [Slow() for i in range(1200)]
while True:
    for i in range(len(clients)):
        if not clients[i].tend():
            clients[i].socket.close()
            clients[i] = Slow()
    open("crowd", "w").close()
    time.sleep(0.01)
PYTHON
  rm -f crowd
  "${user[@]}" /usr/bin/python3 crowd.py "$@" &
  crowd=$!
  children+=($crowd)
  wait_for 20 test -e crowd
}

# The server says that connections gave way since the crowd came.
cut_off_total() {
  curl -sS -H 'Authorization: Bearer 0123456789abcdef0123' "$url/metrics" | sed -n 's/^heaptap_serve_cut_off_total //p'
}
some_were_cut_off() {
  [ "$(cut_off_total)" -gt "$before" ]
}

# asked OPTION...: a whole request is answered meanwhile, before any slow client's time is over
asked() {
  local number
  for number in 1 2 3 4 5; do
    equal 200 "$(curl -sS -o body -w '%{http_code}' --max-time 20 "$@")" "request $number beside $kind"
    sleep 0.2
  done
}

# asked_late: a request that comes half a second after its connection, as on a busy machine, is answered too
asked_late() {
  equal 'HTTP/1.1 200' "$(/usr/bin/python3 -c '
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.settimeout(60)
time.sleep(0.5)
s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
print(s.recv(12).decode())' "${url##*:}" 2>&1)" "a late request beside $kind"
}

test_slow_clients_keep_nobody_out() {
  local kind before
  chmod 777 .
  printf '%s\n' 0123456789abcdef0123 >token
  chmod 600 token
  own token
  serve --token-file token --listen "unix:$PWD/run/web"
  # Another client's connection stays, however long it does nothing.
  /usr/bin/python3 -c '
import os, socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), source_address=("127.0.0.2", 0))
s.settimeout(60)
s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
open("other", "w").close()
while not os.path.exists("crowded"):
    time.sleep(0.1)
s.sendall(b"\r\n")
sys.exit(s.recv(12) != b"HTTP/1.1 200")' "${url##*:}" &
  other=$!
  children+=($other)
  wait_for 20 test -e other
  for kind in idle half body reader; do
    before=$(cut_off_total)
    crowd "${url#http://}" $kind
    asked -H 'Authorization: Bearer 0123456789abcdef0123' "$url/metrics"
    [ -e crowded ] || { : >crowded; wait $other || fail 'another client was cut off'; }
    asked_late
    # A body is not waited for where no token is shown, and a small answer is the kernel's as soon as it is sent.
    case $kind in idle | half) wait_for 20 some_were_cut_off ;; esac
    kill $crowd
    wait $crowd || :
  done
  # By the users at the other ends: the server's own are asked for, root asks.
  for kind in idle half; do
    crowd "$PWD/run/web" $kind
    asked --unix-socket run/web http://localhost/healthz
    kill $crowd
    wait $crowd || :
  done
}

test_slow_clients_of_a_session() {
  local kind=half
  chmod 777 .
  mkfifo in
  "${user[@]}" "$heaptap" record -p 1 -b copy --listen 127.0.0.1:0 -o '%n.pb.gz' "$targets/serve_program" <in >out 2>err &
  children+=($!)
  local words
  exec {words}>in
  wait_for 20 grep -q 'serving on http' err
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' err)
  wait_for 20 test -s out
  crowd "${url#http://}" $kind
  asked "$url/debug/pprof/heap"
}

# Where there are few descriptors there are as few connections.
test_slow_clients_and_few_descriptors() {
  local kind before limited=(prlimit --nofile=256:256)
  chmod 777 .
  program a -p 1 -b copy
  user+=("${limited[@]}")
  serve
  user=("${user[@]::${#user[@]}-${#limited[@]}}")
  for kind in idle half; do
    before=$(cut_off_total)
    crowd "${url#http://}" $kind
    asked "$url/debug/pprof/heap"
    asked_late
    wait_for 20 some_were_cut_off
    kill $crowd
    wait $crowd || :
  done
}

# Answers that are there for one client alone are memory, however slowly they are taken.
test_large_answers_are_bounded() {
  mkdir files
  /usr/bin/python3 - files/large.pb.gz <<'PYTHON'
import gzip, sys
def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload
# One string of 50 MB, which is the comment.
body = field(1, b"\x08\x02\x10\x03") + field(6, b"") + field(6, b"x" * 50000000) + field(6, b"inuse_space") + field(6, b"bytes") + b"\x68\x01"
open(sys.argv[1], "wb").write(gzip.compress(body, 0))
PYTHON
  chmod -R a+rX files
  serve files
  wait_for 20 bash -c "curl -s '$url/api/v1/profiles' | grep -q '\"id\"'"
  id=$(curl -s "$url/api/v1/profiles" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  /usr/bin/python3 - "${url##*:}" "$id" >slow <<'PYTHON' &
import socket, sys, time
taken = []
for i in range(3):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.sendall(f"GET /api/v1/profile?id={sys.argv[2]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    print(s.recv(12).decode(), flush=True)
    taken.append(s)
print("all", flush=True)
time.sleep(170)
PYTHON
  slow=$!
  children+=($slow)
  wait_for 60 grep -q all slow
  equal "$(printf 'HTTP/1.1 200\nHTTP/1.1 200\nHTTP/1.1 503\nall')" "$(cat slow)"
  kill $slow
  # They have gone: there is room.
  wait_for 20 answers 200 "/api/v1/profile?id=$id"
}

test_the_web_process_can_do_little() {
  serve
  web=$(child_of $serve_pid heaptap-web)
  [ -n "$web" ] || web=$(child_of "$(child_of $serve_pid heaptap-serve)" heaptap-web)
  matches '^Seccomp:	2$' "/proc/$web/status"
  matches '^NoNewPrivs:	1$' "/proc/$web/status"
  if [ "$(id -u)" = 0 ]; then
    ! grep -q '^Uid:	0' "/proc/$web/status" || fail 'it is root'
    matches '^CapEff:	0000000000000000$' "/proc/$web/status"
  fi
  # If it is killed the whole ends, with a word.
  kill -SEGV "$web"
  status=0
  wait $serve_pid || status=$?
  equal 1 $status 'exit status'
  matches 'the web process was killed by signal 11' serve.err
}

# Whatever has happened to the web process: who stops the server is not kept waiting.
test_a_web_process_that_hangs() {
  serve
  web=$(child_of $serve_pid heaptap-web)
  kill -STOP "$web"
  kill $serve_pid
  status=0
  wait $serve_pid || status=$?
  equal 1 $status 'exit status'
  matches 'the web process does not end, and is killed' serve.err
  ! kill -0 "$web" 2>/dev/null || fail 'it is left'
}

# A service manager's signal goes to all of a unit: that is no failure.
test_its_end_as_a_unit() {
  serve
  web=$(child_of $serve_pid heaptap-web)
  kill "$web"
  kill $serve_pid
  wait $serve_pid || fail "exit status $?: $(cat serve.err)"
  ! grep -q 'killed' serve.err || fail "$(cat serve.err)"
}

# As nohup starts it: a terminal that closes is no end.
test_a_hangup_that_is_ignored() {
  program a -p 1 -b copy
  trap '' HUP
  serve
  trap - HUP
  kill -HUP $serve_pid
  equal 200 "$(fetch "/pid/$(cat a.pid)/debug/pprof/cmdline")" # the broker reads it, after its signals
  kill $serve_pid
  wait $serve_pid || fail 'exit status'
  serve
  kill -HUP $serve_pid
  wait $serve_pid || fail 'exit status of one that is not'
  finish a
}

test_its_end() {
  serve --listen "unix:$PWD/socket"
  test -S socket || fail 'no socket'
  equal 660 "$(stat -c %a socket)" mode
  equal 2 "$(status_of "${user[@]}" "$heaptap" serve --listen "${url#http://}")"
  matches 'cannot listen on .*: Address already in use' err
  web=$(child_of $serve_pid heaptap-web)
  kill $serve_pid
  wait $serve_pid || fail 'exit status'
  wait_for 10 bash -c "! kill -0 $web 2>/dev/null"
  [ ! -e socket ] || fail 'the socket is left'
  # What a killed one has left is no obstacle.
  serve --listen "unix:$PWD/socket"
  kill -KILL $serve_pid
  wait_for 10 bash -c "! curl -s -o /dev/null $url/healthz"
  serve --listen "unix:$PWD/socket"
}

# One client waits for its seconds as often as may be: another one has a share of the waits, of both kinds.
test_waits_are_shared() {
  local path=/debug/pprof/heap
  waiting() {
    metric heaptap_serve_waits "$1"
  }
  ended() {
    [ "$(wc -l <one)" = "$1" ]
  }
  program a -p 1 -b copy
  serve
  for i in 1 2 3 4 5 6 7 8; do
    [ $i -lt 5 ] || path=/debug/pprof/profile
    curl -s -o "one.$i" -w '%{http_code}\n' "$url$path?seconds=500" >>one &
    children+=($!)
    wait_for 20 waiting $i
  done
  equal 503 "$(fetch '/debug/pprof/heap?seconds=1')" 'a ninth of the same client'
  for path in heap profile; do
    equal 200 "$(fetch "/debug/pprof/$path?seconds=1" --interface 127.0.0.2)" $path
  done
  # It gets half of them, and no more.
  for i in 1 2 3 4; do
    curl -s -o "two.$i" -w '%{http_code}\n' --interface 127.0.0.2 "$url/debug/pprof/heap?seconds=500" >>two &
    children+=($!)
  done
  wait_for 20 ended 4
  wait_for 20 waiting 8
  equal 503 "$(fetch '/debug/pprof/heap?seconds=1' --interface 127.0.0.2)" 'a fifth'
  equal 503 "$(sort -u one)"
  [ ! -s two ] || fail "$(cat two)"
  finish a
}

# activated NAMES COMMAND...: as the service manager starts it: descriptors from 3 on, which listen at each of these addresses,
# and LISTEN_PID, which is its own pid; or, as `wrong`, that of the manager
activated() {
  "${user[@]}" python3 - "$@" <<'EOF'
import fcntl, os, socket, sys
pid, addresses, command = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
for number, address in enumerate(addresses):
    family = socket.AF_UNIX if address.startswith("/") else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address if family == socket.AF_UNIX else (address, 0))
    listener.listen(8)
    held = fcntl.fcntl(listener.detach(), fcntl.F_DUPFD, 64)  # 3 and 4 may be in use here
    os.dup2(held, 3 + number)
os.environ["LISTEN_FDS"] = str(len(addresses))
os.environ["LISTEN_PID"] = str(os.getpid() if pid == "own" else os.getppid())
os.execvp(command[0], command)
EOF
}

test_sockets_of_the_service_manager() {
  activated own "$PWD/run/web,127.0.0.1" "$heaptap" serve 2>serve.err &
  children+=($!)
  wait_for 20 grep -q '^heaptap: serving on' serve.err
  equal 200 "$(curl -sS -o body -w '%{http_code}' --unix-socket run/web http://localhost/healthz)"
  # What was meant for another process is left alone: it listens where it does without.
  activated wrong "$PWD/run/other" "$heaptap" serve --listen 127.0.0.1:0 2>serve.err &
  children+=($!)
  wait_for 20 grep -q '^heaptap: serving on http://127' serve.err
  equal 0 "$(grep -c run/other serve.err || :)" 'sockets of others'
  # Others can connect to this one: no token, no server.
  status=0
  activated own 0.0.0.0 "$heaptap" serve 2>err || status=$?
  equal 2 $status 'without a token'
  matches 'give --token-file' err
}
