# SPDX-License-Identifier: Apache-2.0
# `heaptap serve`: /debug/pprof of sessions, beside what a real Go program answers, and with Go's own client.
# timeout: 180

. "$HEAPTAP_TOP/tests/serve.sh"

# go_server: Go's net/http/pprof; $go is where
go_server() {
  "$readers/go_pprof" go.address &
  children+=($!)
  wait_for 20 test -s go.address
  go=http://$(cat go.address)
}

# What a client sees of an answer but its date; Go gives no length where it is chunked.
answer_of() {
  curl -sS --max-time "$(seconds 60)" -i "$@" | tr -d '\r' | grep -v -i -e '^date:' -e '^connection:' >answer
  sed '/^$/,$d' answer | sort -f | tr 'A-Z' 'a-z'
  sed '1,/^$/d' answer
}

# same_as_go PATH [OPTION...]
same_as_go() {
  local path=$1
  shift
  answer_of "$@" "$go$path" >go.answer
  answer_of "$@" "$url$path" >our.answer
  diff go.answer our.answer || fail "$path is answered otherwise than by Go"
}

test_errors_are_go_s() {
  go_server
  program a -p 1 -b copy
  serve
  same_as_go '/debug/pprof/nothing'
  same_as_go '/debug/pprof/nothing?seconds=x&debug=1'
  same_as_go '/debug/pprof/heap/x'
  same_as_go '/debug/pprof/heap?seconds=0'
  same_as_go '/debug/pprof/heap?seconds=-1'
  same_as_go '/debug/pprof/heap?seconds=1.5'
  same_as_go '/debug/pprof/heap?seconds=99999999999999999999'
  same_as_go '/debug/pprof/allocs?seconds=x%20y'
  same_as_go '/debug/pprof/heap?seconds=1&debug=1'
  # Newer Go extends its time instead; up to 1.23 it says this.
  for path in heap allocs profile; do
    equal 400 "$(fetch "/debug/pprof/$path?seconds=601")"
    equal "profile duration exceeds server's WriteTimeout" "$(cat body)"
    equal 1 "$(header X-Go-Pprof)"
  done
  same_as_go '/debug/pprof/symbol'
  same_as_go '/debug/pprof/symbol?0x1+0x2+zz'
  same_as_go '/debug/pprof/symbol' --data-binary '0x1+0x2'
  same_as_go '/debug/pprof/symbol' -I
  same_as_go '/nothing'
  # Of a profile all but its bytes, and so the length.
  for path in heap allocs 'heap?gc=1' 'heap?seconds=1' 'allocs?seconds=1' 'profile?seconds=1' 'heap?debug=1'; do
    for server in "$go" "$url"; do
      curl -sS --max-time "$(seconds 60)" -D - -o bytes "$server/debug/pprof/$path" | tr -d '\r' |
        grep -v -i -e '^date:' -e '^content-length:' -e '^transfer-encoding:' -e '^connection:' | sort -f
    done >both
    equal "$(head -n $(($(wc -l <both) / 2)) both)" "$(tail -n $(($(wc -l <both) / 2)) both)" "headers of $path"
  done
  # These we do not have.
  for name in block mutex goroutine threadcreate trace; do
    equal 404 "$(fetch "/debug/pprof/$name")"
    equal 'Unknown profile' "$(cat body)"
    equal 1 "$(header X-Go-Pprof)"
  done
  finish a
}

# Its stacks, named, with all values: what two profiles must have in common to be equal.
stacks_of() {
  go tool pprof -raw "$1" 2>/dev/null | sed -n '/^Samples:/,$p'
}

test_heap_is_the_snapshot_of_the_moment() {
  program a -p 1 -b copy
  tell a 'hold 500'
  serve
  equal 200 "$(fetch /debug/pprof/heap)"
  cp body heap.pb.gz
  equal 'application/octet-stream' "$(header Content-Type)"
  equal 'attachment; filename="heap"' "$(header Content-Disposition)"
  file=$("${user[@]}" "$heaptap" snapshot "$(cat a.pid)")
  stacks_of heap.pb.gz >heap.stacks
  stacks_of "$file" >file.stacks
  diff heap.stacks file.stacks || fail 'the heap is not that of the snapshot file'
  profile_check heap.pb.gz
  [ "$(total_of heap.pb.gz inuse_space)" -ge 500000 ] || fail 'too little is in use'
  # No file and no number was used up: the snapshot's number is the first.
  case $file in *0001*) ;; *) fail "the first snapshot is $file" ;; esac
  equal 1 "$(ls a/*.pb.gz | grep -v peak | wc -l)" 'profiles in the folder'
  # allocs: the same, with another type first.
  equal 200 "$(fetch /debug/pprof/allocs)"
  cp body allocs.pb.gz
  equal 'attachment; filename="allocs"' "$(header Content-Disposition)"
  for type in alloc_space alloc_objects inuse_space inuse_objects; do
    equal "$(total_of heap.pb.gz $type)" "$(total_of allocs.pb.gz $type)" $type
  done
  go tool pprof -top allocs.pb.gz 2>/dev/null >top
  matches '^Type: alloc_space' top
  go tool pprof -top heap.pb.gz 2>/dev/null >top
  matches '^Type: inuse_space' top
  finish a
}

test_go_s_client() {
  program a -p 1 -b copy
  tell a 'hold 300'
  serve
  go tool pprof -top "$url/debug/pprof/heap" >top 2>top.err || { cat top.err >&2; fail 'heap'; }
  matches 'take_held$' top
  go tool pprof -top "$url/debug/pprof/heap?debug=1" >top 2>top.err || { cat top.err >&2; fail 'text'; }
  matches '^Showing nodes' top
  go tool pprof -top -sample_index=alloc_space "http://localhost:${url##*:}/pid/$(cat a.pid)/debug/pprof/allocs" >top 2>top.err ||
    { cat top.err >&2; fail 'allocs'; }
  matches 'take_held$' top
  # What happens within the seconds is all there is in the difference.
  go tool pprof -seconds 2 -proto -output delta.pb.gz "$url/debug/pprof/heap" 2>delta.err &
  local client=$!
  wait_for 20 metric heaptap_serve_waits 1
  wait_for 20 metric heaptap_snapshot_seconds '.*' # the first one is made
  tell a 'hold 100' drop
  wait $client || { cat delta.err >&2; fail '-seconds'; }
  "$readers/oracle" delta.pb.gz >delta.text
  equal 100000 "$("$readers/oracle" -reach '^take_held$' delta.pb.gz | awk -F '\t' '$1 == "reach" && $2 ~ /^alloc_space/ { print $3 }')" allocated
  equal -300000 "$("$readers/oracle" -reach '^take_held$' delta.pb.gz | awk -F '\t' '$1 == "reach" && $2 ~ /^inuse_space/ { print $3 }')" 'in use'
  finish a
}

test_a_cpu_profile() {
  program a -p 1M -b copy
  tell a spin
  serve
  # On a busy machine a second may be over before the program has had a sample's worth of it.
  for seconds in 1 2 4 8 16 32; do
    go tool pprof -top "$url/debug/pprof/profile?seconds=$seconds" >top 2>top.err || { cat top.err >&2; fail 'profile'; }
    matches '^Type: cpu' top
    ! grep -q spin_here top || break
  done
  matches 'spin_here' top
  equal 200 "$(fetch '/debug/pprof/profile?seconds=1')"
  equal 'attachment; filename="profile"' "$(header Content-Disposition)"
  "$readers/oracle" body >/dev/null || fail 'not valid'
  tell a 'hold 0'
  finish a
}

test_many_processes() {
  program a -p 1 -b copy
  program b -p 1 -b copy
  tell a 'hold 200'
  tell b 'hold 300'
  serve
  a=$(cat a.pid) b=$(cat b.pid)
  equal 404 "$(fetch /debug/pprof/heap)"
  equal 1 "$(header X-Go-Pprof)"
  matches "^/pid/$a/debug/pprof/heap" body
  matches "^/pid/$b/debug/pprof/heap" body
  matches '^/service/serve_program/debug/pprof/heap$' body
  for path in "/pid/$a/debug/pprof/heap" "/debug/pprof/heap?pid=$a"; do
    equal 200 "$(fetch "$path")"
    reached_exactly body take_held 'inuse_space 200000'
  done
  equal 200 "$(fetch /service/serve_program/debug/pprof/heap)"
  reached_exactly body take_held 'inuse_space 500000'
  comment_of body >comments
  matches "^pid=$a " comments
  matches "^pid=$b " comments
  equal 404 "$(fetch /pid/1/debug/pprof/heap)"
  equal 404 "$(fetch /service/nothing/debug/pprof/heap)"
  equal 200 "$(fetch "/pid/$a/debug/pprof/cmdline")"
  cmp body <(printf '%s' "$targets/serve_program") || fail 'the command line'
  equal 200 "$(fetch "/pid/$a/debug/pprof/")"
  matches "href='heap\?debug=1'" body
  equal 301 "$(fetch "/pid/$a/debug/pprof")"
  equal 'pprof/' "$(header Location)"
  # Who is meant is not lost on the way.
  equal 301 "$(fetch "/debug/pprof?pid=$a&x=<b>")"
  equal "/debug/pprof/?pid=$a&x=<b>" "$(header Location)"
  equal "<a href=\"/debug/pprof/?pid=$a&amp;x=&lt;b&gt;\">Moved Permanently</a>." "$(head -1 body)"
  # Addresses of a profile have the names that it has.
  go tool pprof -raw "$url/pid/$a/debug/pprof/heap" 2>/dev/null | sed -n 's/^ *[0-9]*: \(0x[0-9a-f]*\) M=[0-9]* take_held .*/\1/p' | head -1 >address
  fetch "/pid/$a/debug/pprof/symbol?$(cat address)" >/dev/null
  matches "^$(cat address) take_held\$" body
  equal "$(curl -s "$url/pid/$a/debug/pprof/symbol" --data-binary "$(cat address)")" "$(cat body)" POST
  # A process that ends is not there any more.
  finish b
  wait_for 20 answers 200 /debug/pprof/heap
  finish a
}

test_delta_heap_is_kept_by_caller() {
  serve
  program a -p 1 -b copy
  tell a 'hold 100'
  delta() {
    equal 200 "$(fetch "/debug/pprof/delta_heap?client=$1")"
    equal 'attachment; filename="delta_heap"' "$(header Content-Disposition)"
    reached_exactly body take_held "alloc_space $2" "inuse_space $3"
    "$readers/oracle" body >/dev/null || fail 'not valid'
  }
  # The process began after the server: nobody has had anything of it.
  delta one 100000 100000
  tell a 'hold 50'
  sleep 1.1 # no older than the second that an answer is kept
  delta one 50000 150000
  delta two 150000 150000
  tell a drop
  sleep 1.1
  delta one 0 0
  delta two 0 0
  # To a server that begins later it may have been sent by one before.
  kill $serve_pid
  wait $serve_pid || :
  serve
  tell a 'hold 10'
  delta one 0 10000
  tell a 'hold 10'
  sleep 1.1
  delta one 10000 20000
  finish a
}

test_record_listen() {
  mkfifo in
  "${user[@]}" "$heaptap" record -p 1 -b copy --listen 127.0.0.1:0 -o '%n.pb.gz' "$targets/serve_program" <in >out 2>err &
  front=$!
  children+=($front)
  local words
  exec {words}>in
  wait_for 20 grep -q 'serving on http' err
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' err)
  wait_for 20 test -s out
  echo 'hold 100' >&$words
  wait_for 20 more_than 1 out
  program other -p 1 -b copy
  # Of this session alone.
  equal 200 "$(fetch /debug/pprof/heap)" "$(cat body err)"
  reached_exactly body take_held 'inuse_space 100000'
  finish other
  echo quit >&$words
  wait $front
  # It ends with the session.
  wait_for 20 bash -c "! curl -s -o /dev/null $url/healthz"
  # What cannot be is refused before anything is run.
  equal 2 "$(status_of "${user[@]}" "$heaptap" record --listen 0.0.0.0:0 "$targets/serve_program" </dev/null)"
  matches 'other machines can reach it' err
  # Its --token-file is one for --push: what helps is another command.
  matches 'let heaptap serve do that' err
  [ ! -s out ] || fail 'the program was run'
  equal 2 "$(status_of "${user[@]}" "$heaptap" record --listen nonsense "$targets/serve_program" </dev/null)"
}

# files_listed: of that many profiles the page knows
files_listed() {
  [ "$(curl -s "$url/api/v1/profiles" | grep -o '"id":"f' | wc -l)" -ge "$1" ]
}

# The page of a session has the session's own profiles, from before somebody looked at it: differences and growth.
# What lies in the same folder and is older is none of them.
test_the_page_knows_its_session() {
  mkdir profiles
  own profiles
  "${user[@]}" "$heaptap" record -q -p 1 -b copy -o profiles/older.pb.gz "$targets/serve_program" </dev/null >out
  touch -d '1 hour ago' profiles/older.pb.gz
  mkfifo in
  rm out
  "${user[@]}" "$heaptap" record -p 1 -b copy -i 200ms --listen 127.0.0.1:0 -o 'profiles/%e/%n.pb.gz' \
    "$targets/serve_program" <in >out 2>err &
  front=$!
  children+=($front)
  local words round
  exec {words}>in
  wait_for 20 test -s out
  for round in 1 2 3 4 5 6; do
    echo 'hold 300' >&$words
    wait_for 20 test -e profiles/serve_program/000$round.pb.gz
  done
  url=$(sed -n 's,^heaptap: serving on \(http://[^/]*\)/$,\1,p' err)
  wait_for 20 files_listed 6
  equal 200 "$(fetch /api/v1/processes)"
  python3 - <<'EOF'
import json
processes = json.load(open("body"))["processes"]
assert len(processes) == 1 and processes[0]["running"] and processes[0]["profiles"] >= 6, processes
EOF
  equal 200 "$(fetch /api/v1/growth)"
  python3 - <<'EOF'
import json
growth = json.load(open("body"))
assert growth["total"]["kind"] == "grows" and growth["total"]["change"] >= 900000, growth["total"]
assert growth["rows"][0]["name"] == "take_held", growth["rows"]
EOF
  # Whoever serves all sessions has them too.
  serve
  wait_for 20 files_listed 6
  echo quit >&$words
  wait $front
}

# A sampler has room for 16 who ask; of a service with more processes each waits for its turn.
test_a_service_of_many_processes() {
  local input
  mkdir -m 777 many
  mkfifo many/in
  "${user[@]}" "$heaptap" record -q -b copy --interval 0 -o 'many/%n.pb.gz' \
    bash -c 'while read -r line && [ $line = more ]; do for i in {1..8}; do sleep 170 & done; done; kill $(jobs -p)' \
    2>many/err <many/in &
  local front=$!
  children+=($front)
  exec {input}>many/in
  serve
  # A session has 16 regions ready at first: of more programs that start at once some get none, beside a load.
  for running in 8 16 24 32 40; do
    echo more >&"$input"
    wait_for 60 metric 'heaptap_targets{service_name="sleep"}' $running
  done
  equal 200 "$(fetch /service/sleep/debug/pprof/heap)" "$(head -c 300 body)"
  comment_of body >comments
  equal 40 "$(grep -c '^pid=' comments)" processes
  # CPU time is sampled of all at once: of so many it is refused before anybody waits for it.
  equal 503 "$(fetch '/service/sleep/debug/pprof/profile?seconds=600')"
  matches 'at most 8 processes' body
  equal 200 "$(fetch '/api/v1/top?service=sleep')" "$(head -c 300 body)"
  # As a file it is their sum, too.
  equal 200 "$(fetch '/api/v1/profile?service=sleep')" "$(head -c 300 body)"
  comment_of body >comments
  equal 40 "$(grep -c '^pid=' comments)" 'processes of the file'
  # Their time line is their sum, whose errors cannot be known exactly.
  equal 200 "$(fetch '/api/v1/timeline?service=sleep')" "$(head -c 300 body)"
  matches '"errors_are_upper_limits": ?true' body
  echo quit >&"$input"
  wait $front || :
}

# A process that ends while its service is asked for takes nothing from the answer but itself.
test_one_that_ends_meanwhile() {
  local path other client
  program a -p 1 -b copy
  tell a 'hold 100'
  serve
  for path in heap profile; do
    other=beside.$path
    program "$other" -p 1 -b copy
    wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 2
    fetch "/service/serve_program/debug/pprof/$path?seconds=4" >status &
    client=$!
    children+=($client)
    wait_for 20 metric heaptap_serve_waits 1
    [ $path = heap ] || wait_for 20 samples_cpu "$other"
    finish "$other"
    wait $client
    equal 200 "$(cat status)" "$path of the service, $(head -c 300 body | tr -d '\0')"
    "$heaptap" report body >report || fail "$path is not valid"
    comment_of body >comments
    matches "^pid=$(cat a.pid) " comments
    equal 404 "$(fetch "/pid/$(cat "$other.pid")/debug/pprof/heap")"
    wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 1
  done
  finish a
}

# Does the sampler of that program have a child that samples its CPU time?
samples_cpu() {
  ps -o args= --ppid "$(sampler_of "$(cat "$1.front")")" | grep -q -- --no-heap
}

samples_no_cpu() {
  ! samples_cpu "$1"
}

test_waits_are_bounded() {
  program a -p 1 -b copy
  serve
  # The ninth wait is refused; a client that goes away makes room.
  for i in 1 2 3 4 5 6 7 8; do
    curl -s -o "wait.$i" "$url/debug/pprof/heap?seconds=600" &
    waits[i]=$!
    children+=($!)
  done
  wait_for 20 metric heaptap_serve_waits 8
  equal 503 "$(fetch '/debug/pprof/heap?seconds=1')"
  equal 1 "$(header X-Go-Pprof)"
  equal 503 "$(fetch '/debug/pprof/profile?seconds=1')"
  equal 200 "$(fetch /debug/pprof/heap)"
  kill "${waits[3]}"
  wait_for 20 metric heaptap_serve_waits 7
  equal 200 "$(fetch '/debug/pprof/heap?seconds=1')"
  # One that leaves during a CPU profile ends that: no child of the sampler is left.
  curl -s -o /dev/null "$url/debug/pprof/profile?seconds=600" &
  local client=$!
  wait_for 20 samples_cpu a
  kill $client
  wait_for 30 samples_no_cpu a
  kill "${waits[@]}" 2>/dev/null || :
  wait_for 20 metric heaptap_serve_waits 0
  finish a
}
