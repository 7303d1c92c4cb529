# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The commands of README.md and docs/*.md are typed, and print what the pages say: tests/documents.py.

# What a page's shell begins with: a reader's machine, with heaptap installed, and nothing of another test's.
prelude() {
  cat <<PRELUDE
set -m # so that a command in the background is not deaf to SIGINT
top=$top targets=$targets factor=$factor
export PATH=$work/reader:\$PATH COLUMNS=110 HEAPTAP_SOCKET=$work/none
. "$work/reader.sh"
PRELUDE
}

# type_page PAGE: types the commands of a page in a folder of its own
type_page() {
  local work=$PWD
  mkdir -p reader page
  ln -sf "$heaptap" reader/heaptap
  cat >reader.sh <<'READER'
wait_until() {
  local deadline=$((SECONDS + 30 * factor))
  until eval "$1" || [ $SECONDS -ge $deadline ]; do sleep 0.05; done
}
wait_for_file() {
  wait_until "[ -e '$1' ]"
}
# A command that is ended by ^C, once `interrupt.now` is there.
interruptible() {
  "$@" &
  echo $! >interrupt.pid
  wait $!
}
# ./server leaks until it is interrupted; it has done enough after five snapshots, which come each second.
prepare_server() {
  g++ -O2 -g -pthread -o server "$top/bench/leaks/gateway.cc"
  heaptap() {
    if [ "$1" = record ]; then shift; command heaptap record -i 1s -p 64K "$@"; else command heaptap "$@"; fi
  }
  (wait_until 'ls heaptap.server.*.0005.pb.gz >/dev/null 2>&1'; touch interrupt.now) &
}
# ./server works and ends.
prepare_program() {
  cp "$targets/leaky" . && printf '#!/bin/sh\nexec ./leaky 2000 4096\n' >server && chmod 755 server
}
record_family() {
  command heaptap record -q -p 4K "$targets/family" 1 2
}
start_redis() {
  redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --dir "$PWD" >redis.log &
  redis_pid=$!
  wait_until '[ -e redis.sock ]'
  (while redis-cli -s redis.sock ping; do redis-benchmark -s redis.sock -n 20000 -r 20000 -d 200 -t hset; done) >/dev/null 2>&1 &
}
ask_leak_server() {
  wait_for_file "$1"
  python3 - "$1" "$2" <<'CLIENT'
import socket, sys, time
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
end, asked = time.monotonic() + float(sys.argv[2]), 0
lines = client.makefile("rw")
while time.monotonic() < end:
    lines.write(f"get key-{asked}\n")
    lines.flush()
    lines.readline()
    asked += 1
    time.sleep(0.0003)
CLIENT
}
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# The block of the page that is a configuration, as ./heaptap.conf
write_conf() {
  sed -n '/^```ini/,/^```/p' "$top/$1" | sed '/^```/d' >heaptap.conf
  head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >token
  chmod 600 token
  sed -i "s,/etc/heaptap/token,$PWD/token," heaptap.conf
}
start_daemon() {
  printf '[service]\nprofile = no\n' >heaptap.conf
  export HEAPTAP_SOCKET=$PWD/control
  command heaptap daemon --config heaptap.conf --store store --socket "$HEAPTAP_SOCKET" 2>daemon.log &
  wait_for_file "$HEAPTAP_SOCKET"
}
READER
  (cd page && DOCUMENTS_PRELUDE=$(prelude) python3 "$top/tests/documents.py" run "$1")
}

test_readme() { type_page "$top/README.md"; }
test_finding_a_leak() { type_page "$top/docs/finding-a-leak.md"; }
test_reading_a_report() { type_page "$top/docs/reading-a-report.md"; }
test_recording() { type_page "$top/docs/recording.md"; }
test_resident_memory() { type_page "$top/docs/resident-memory.md"; }
test_running_service() { need_root; type_page "$top/docs/running-service.md"; }
test_containers() { type_page "$top/docs/containers.md"; }
test_all_services() { need_root; type_page "$top/docs/all-services.md"; }
test_configuration() { type_page "$top/docs/configuration.md"; }
test_browser() { type_page "$top/docs/browser.md"; }
test_servers() { type_page "$top/docs/servers.md"; }
test_perf_events() { need_root; type_page "$top/docs/perf-events.md"; }
test_ci() { type_page "$top/docs/ci.md"; }

test_each_page_is_typed() {
  local page
  for page in "$top"/README.md "$top"/docs/*.md; do
    grep -q '^```console' "$page" || continue
    grep -q "type_page \"\$top/${page#"$top"/}\"" "$top/tests/e2e/documents.sh" || fail "$page is typed by no test"
  done
}

test_links() {
  python3 "$top/tests/documents.py" links "$top"
}

test_length() {
  local page
  for page in "$top"/docs/*.md; do
    at_most 150 "$(wc -l <"$page")" "lines of $page"
  done
  at_most 200 "$(wc -l <"$top/README.md")" 'lines of README.md'
}

# breaks PAGE SED WANTED: with that change the page's test fails, and says WANTED
breaks() {
  mkdir -p "$2"
  sed "$3" "$top/docs/$1" >"$2/broken.md"
  ! cmp -s "$2/broken.md" "$top/docs/$1" || fail "sed $3 changes nothing"
  ! (cd "$2" && TEST_TIME_FACTOR=1 type_page "$PWD/broken.md") >"$2/log" 2>&1 || fail "$1 passes with $3"
  matches "$4" "$2/log"
}

test_broken_pages_fail() {
  breaks ci.md option 's/record -q -p/record --quick -p/' 'exit status 2'
  breaks ci.md output 's/^\$ heaptap report --leaks.*/&\nNothing leaks./' 'wanted: Nothing leaks'
  breaks configuration.md key 's/^ok$/fine/' 'wanted: fine'
  breaks ci.md mark '/^<!-- run/d' 'the block has no line'
  mkdir -p tree/docs
  touch tree/SECURITY.md tree/CONTRIBUTING.md
  printf '# A heading\n' >tree/docs/page.md
  printf '[one](docs/page.md#a-heading)\n' >tree/README.md
  python3 "$top/tests/documents.py" links tree
  printf '[one](docs/pages.md)\n' >tree/README.md
  ! python3 "$top/tests/documents.py" links tree 2>log || fail 'a link to no file passes'
  matches 'no such file' log
  printf '[one](docs/page.md#another-heading)\n' >tree/README.md
  ! python3 "$top/tests/documents.py" links tree 2>log || fail 'a link to no heading passes'
  matches 'no such heading' log
}
