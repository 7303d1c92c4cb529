# SPDX-License-Identifier: Apache-2.0
# Debug files from a real server on this machine: on request only, and a server that is no good costs little.

# A program without names, whose debug file only ./served has.
make_program() {
  cat >program.c <<'C'
#include <stdlib.h>
static __attribute__((noinline)) void *hidden_name(size_t size) { return malloc(size); }
static void *(*volatile called)(size_t) = hidden_name;
int main(void)
{
	for (int i = 0; i < 1000; i++)
		if (!called(50))
			return 1;
	return 0;
}
C
  gcc -O1 -g -o program program.c
  mkdir served
  objcopy --only-keep-debug program served/program.debug
  strip program
  id=$(readelf -n program | sed -n 's/.*Build ID: //p')
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# served PORT: the server has the file
served() {
  curl -s -f -o fetched "http://127.0.0.1:$1/buildid/$id/debuginfo" && cmp -s fetched served/program.debug
}

export DEBUGINFOD_CACHE_PATH=$PWD/debuginfod-cache

test_names_from_a_server_on_request() {
  command -v debuginfod >/dev/null || skip 'no debuginfod (package debuginfod)'
  make_program
  port=$(free_port)
  debuginfod -vv -p "$port" -d index.sqlite -F served >server.log 2>&1 &
  server=$!
  wait_for 60 served "$port"
  asked=$(grep -c "$id" server.log)
  export DEBUGINFOD_URLS=http://127.0.0.1:$port
  record -q -p 1 -o without.pb.gz ./program
  pprof_top without.pb.gz >top
  matches 'program\+0x' top
  grep -q hidden_name top && fail 'a name from nowhere'
  comment_of without.pb.gz >comments
  grep -q debuginfod comments && fail "asked without being told to: $(cat comments)"
  equal "$asked" "$(grep -c "$id" server.log)" 'requests that the server saw'
  [ ! -e debuginfod-cache ] || fail 'something was fetched'
  record -q -p 1 --debuginfod -o with.pb.gz ./program
  profile_check without.pb.gz with.pb.gz
  go tool pprof -top -lines with.pb.gz >top 2>/dev/null
  matches 'hidden_name .*program\.c:2' top
  comment_of with.pb.gz >comments
  matches '^debuginfod: 1 of [0-9]+ debug files$' comments
  kill $server
}

# Takes the connection and says nothing: asked once, whatever the number of files.
test_a_silent_server_is_given_up() {
  ldconfig -p | grep -q 'libdebuginfod\.so\.1' || skip 'no libdebuginfod'
  make_program
  cat >silent.py <<'PYTHON'
import os, socket
server = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as port:
    print(server.getsockname()[1], file=port)
os.rename("port.new", "port")
taken = []
while True:
    taken.append(server.accept())
    with open("connections", "a") as log:
        print(taken[-1][1], file=log)
PYTHON
  python3 silent.py &
  server=$!
  wait_for 20 test -e port
  export DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) DEBUGINFOD_TIMEOUT=1
  record -q -p 1 --debuginfod -o named.pb.gz ./program 2>err
  kill $server
  equal '' "$(cat err)"
  profile_check named.pb.gz
  equal 1 "$(wc -l <connections)" 'connections'
  at_least 50000 "$(total_of named.pb.gz alloc_space)" 'bytes'
  comment_of named.pb.gz >comments
  matches '^debuginfod: 0 of [0-9]+ debug files; stopped asking: ' comments
}

# What drips in for ever is cut off by the time that all downloads may take.
test_an_endless_answer_is_cut_off() {
  ldconfig -p | grep -q 'libdebuginfod\.so\.1' || skip 'no libdebuginfod'
  make_program
  cat >endless.py <<'PYTHON'
import os, socket, time
server = socket.create_server(("127.0.0.1", 0))
with open("port.new", "w") as port:
    print(server.getsockname()[1], file=port)
os.rename("port.new", "port")
while True:
    peer = server.accept()[0]
    try:
        peer.recv(4096)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        while True:
            peer.sendall(bytes(65536))
            time.sleep(0.05)
    except OSError:
        pass
PYTHON
  python3 endless.py &
  server=$!
  wait_for 20 test -e port
  export DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) DEBUGINFOD_MAXTIME=2
  record -q -p 1 --debuginfod -o named.pb.gz ./program
  kill $server
  profile_check named.pb.gz
  comment_of named.pb.gz >comments
  matches '^debuginfod: 0 of [0-9]+ debug files; stopped asking: ' comments
}

# The library makes files in its cache, and removes old ones wherever a link leads: root's $XDG_CACHE_HOME (su keeps it) may be
# another user's.
test_no_cache_of_another_user() {
  local before
  need_root
  ldconfig -p | grep -q 'libdebuginfod\.so\.1' || skip 'no libdebuginfod'
  make_program
  mkdir theirs
  chown 4243 theirs
  before=$(stat -c '%y %n' theirs)
  export DEBUGINFOD_URLS=http://127.0.0.1:$(free_port)
  unset DEBUGINFOD_CACHE_PATH
  XDG_CACHE_HOME=$PWD/theirs HOME=$PWD record -q -p 1 --debuginfod -o a.pb.gz ./program
  DEBUGINFOD_CACHE_PATH=$PWD/theirs HOME=$PWD record -q -p 1 --debuginfod -o b.pb.gz ./program
  equal "$before" "$(stat -c '%y %n' theirs)" "when something was made in the stranger's folder"
  [ -d .cache/debuginfod_client ] || fail 'no cache in our own home'
  XDG_CACHE_HOME=$PWD/theirs HOME=$PWD/theirs record -q -p 1 --debuginfod -o c.pb.gz ./program
  comment_of c.pb.gz >comments
  matches '^debuginfod: 0 of [0-9]+ debug files; stopped asking: no cache folder of our own$' comments
  profile_check a.pb.gz b.pb.gz c.pb.gz
}

test_nobody_to_ask_is_said() {
  make_program
  record -q -p 1 --debuginfod -o named.pb.gz ./program 2>err
  matches '^heaptap: --debuginfod: .*names no server$' err
  profile_check named.pb.gz
  comment_of named.pb.gz >comments
  matches '^debuginfod: 0 of [0-9]+ debug files; stopped asking: .DEBUGINFOD_URLS names no server$' comments
}
