# SPDX-License-Identifier: Apache-2.0
# `heaptap push`: what arrives at servers of each protocol, and what servers that misbehave are sent again.
# tests/push_server.py is the server; what came is read by pprof's own library (readers/oracle).

push_program=$HEAPTAP_BUILD/heaptap-push
export XDG_STATE_HOME=$PWD/state

# server [FOLDER [PORT]]: starts one; $port is where. It ends with the test.
server() {
  local folder=${1:-server}
  mkdir -p "$folder"
  rm -f "$folder/port"
  /usr/bin/python3 -B "$top/tests/push_server.py" "$folder" ${2:+"$2"} 2>"$folder.err" &
  server_pid=$!
  trap 'kill $server_pid 2>/dev/null || :' EXIT
  wait_for 20 test -s "$folder/port"
  port=$(cat "$folder/port")
}

# plan LINE...: how the server answers from now on
plan() {
  printf '%s\n' "$@" >server/plan.next
  mv server/plan.next server/plan
}

# said NUMBER EXPRESSION: of a request that came; `r` is what the server wrote down
said() {
  /usr/bin/python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
    "server/$1.json" "$2"
}

requests() {
  local files=(server/[0-9]*.json)
  [ -e "${files[0]}" ] && echo ${#files[@]} || echo 0
}

# What was sent is valid for every reader; our own stricter rules (in use is a part of what was allocated) are not for
# differences.
sent_check() {
  local profile
  for profile; do
    "$heaptap" check "$profile" >check.log 2>&1 && "$readers/oracle" "$profile" >>check.log 2>&1 &&
      go tool pprof -top "$profile" >>check.log 2>&1 && gunzip -c "$profile" |
      protoc --proto_path="$top/proto" --decode=perftools.profiles.Profile profile.proto >check.txt 2>>check.log ||
      { cat check.log >&2; fail "$profile is not valid"; }
  done
}

push() {
  "$heaptap" push "$@"
}

# What a server adds up is what the process allocated; what is in use is as in each file.
same_as_files() {
  local type i=0 profile
  for type in alloc_space alloc_objects; do
    equal "$(total_of p.exit.pb.gz $type)" "$(sums $type server/*.pb.gz)" "$type of all that came"
  done
  for type in inuse_space inuse_objects; do
    equal "$(sums $type p.*.pb.gz)" "$(sums $type server/*.pb.gz)" "$type of all that came"
  done
  [ "$(total_of p.exit.pb.gz alloc_space)" -gt 2000000 ] || fail 'too little was allocated'
}

test_pyroscope() {
  local files id
  snapshots >files
  server
  # In any order: each is sent as the difference to the one before it in time.
  push --to "pyroscope+http://127.0.0.1:$port/" --label env=prod --label 'team=a b' --tenant t1 \
    $(sort -r files) 2>err
  matches '^heaptap: 4 profiles sent to http://127.0.0.1:[0-9]*$' err
  equal 4 "$(requests)" requests
  same_as_files
  sent_check server/*.pb.gz
  equal /push.v1.PusherService/Push "$(said 0001 'r["path"]')" path
  equal 't1 application/proto' "$(said 0001 'r["headers"]["x-scope-orgid"] + " " + r["headers"]["content-type"]')"
  equal "__delta__ __name__ __session_id__ env host pyroscope_spy service_name team" \
    "$(said 0001 '" ".join(sorted(r["labels"]))')" labels
  equal "memory snapshot_api prod a b heaptap false" "$(said 0001 \
    '" ".join(r["labels"][x] for x in ("__name__", "service_name", "env", "team", "pyroscope_spy", "__delta__"))')"
  said 0001 'r["labels"]["__session_id__"]' >session
  matches '^[0-9a-f]{16}$' session
  for id in 1 2 3 4; do
    said 000$id 'r["id"]'
  done | sort -u >ids
  equal 4 "$(wc -l <ids)" 'different ids'
  # The same again has the same ids, and the same bytes.
  push -q --to "pyroscope+http://127.0.0.1:$port" --label env=prod --label 'team=a b' $(cat files)
  for id in 1 2 3 4; do
    said 000$((id + 4)) 'r["id"]'
    cmp "server/000$id-0.pb.gz" "server/000$((id + 4))-0.pb.gz"
  done | sort -u >ids2
  cmp ids ids2
}

test_parca() {
  snapshots >files
  server
  push --to "parca+http://127.0.0.1:$port" $(cat files) 2>err
  matches '^heaptap: 4 profiles sent' err
  equal 4 "$(requests)" requests
  sent_check server/*.pb.gz
  # What is in use and what was allocated, apart: a duration marks a difference there.
  local state total
  for state in server/000?-0.pb.gz; do
    total=${state%-0.pb.gz}-1.pb.gz
    equal 0 "$(duration_of "$state")" 'duration of what is in use'
    [ "$(duration_of "$total")" -gt 0 ] || fail 'no duration of what was allocated'
  done
  equal "$(total_of p.exit.pb.gz alloc_space)" "$(sums alloc_space server/*-1.pb.gz)" 'allocated'
  equal "$(sums inuse_space p.*.pb.gz)" "$(sums inuse_space server/*-0.pb.gz)" 'in use'
  equal "__name__ __session_id__ host service_name" "$(said 0001 '" ".join(sorted(r["labels"]))')" labels
}

duration_of() {
  gunzip -c "$1" | protoc --proto_path="$top/proto" --decode=perftools.profiles.Profile profile.proto |
    awk '$1 == "duration_nanos:" { found = $2 } END { print found + 0 }'
}

test_datadog() {
  snapshots >files
  server
  push -q --to "datadog+http://127.0.0.1:$port" --label version=7 $(cat files)
  same_as_files
  sent_check server/*.pb.gz
  equal /profiling/v1/input "$(said 0001 'r["path"]')" path
  said 0001 'r["event"]["tags_profiler"]' >tags
  matches '^service:snapshot_api,version:7,host:[^,]*,runtime:native$' tags
  equal "native 4 ['profile.pprof']" \
    "$(said 0001 'r["event"]["family"] + " " + r["event"]["version"] + " " + str(r["event"]["attachments"])')"
}

test_otlp() {
  snapshots >files
  server
  push -q --to "otlp+http://127.0.0.1:$port" $(cat files)
  equal /v1development/profiles "$(said 0001 'r["path"]')" path
  equal snapshot_api "$(said 0001 'r["otlp"]["attributes"]["service.name"]')" 'service.name'
  local sum=0 i
  for i in 1 2 3 4; do
    sum=$((sum + $(said 000$i 'r["otlp"]["totals"].get("alloc_space/bytes", 0)')))
  done
  equal "$(total_of p.exit.pb.gz alloc_space)" "$sum" 'allocated'
  equal "$(total_of p.exit.pb.gz inuse_space)" "$(said 0004 'r["otlp"]["totals"]["inuse_space/bytes"]')" 'in use'
  said 0001 '"take_held" in r["otlp"]["leaves"]' >leaf
  matches True leaf
}

# An older server, or one behind a proxy that knows only the old path.
test_ingest() {
  snapshots >files
  server
  plan 404push
  push -q --to "pyroscope+http://127.0.0.1:$port/base" --label 'env=a,b}' $(cat files)
  equal 5 "$(requests)" 'requests, one of them in vain'
  said 0002 'r["path"]' >path
  matches '^/base/ingest\?name=snapshot_api%7Benv%3Da_b_%2Chost%3D.*%2C__session_id__%3D[0-9a-f]{16}%7D&from=[0-9]{10}&until=[0-9]{10}&format=pprof&spyName=heaptap$' path
  rm server/0001-0.pb.gz
  same_as_files
}

# An answer that is final: one line with what the server said, status 1, nothing is sent again.
test_refused() {
  snapshots >files
  server
  plan '400 profile time is not_in_ingestion_window' ok
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$port" $(cat files))" status
  equal 4 "$(requests)" requests
  matches '^heaptap: p[.0-9a-z-]*: refused by http://127.0.0.1:[0-9]*: HTTP 400: .*not_in_ingestion_window' err
  matches '^heaptap: 3 profiles sent' err
  equal 2 "$(wc -l <err)" 'lines'
  # What was refused is contained in the next one.
  rm server/0001-0.pb.gz
  equal "$(total_of p.exit.pb.gz alloc_space)" "$(sums alloc_space server/*.pb.gz)" 'allocated'
  plan 'grpc 3 missing%20__name__%20label'
  equal 1 "$(status_of push --to "parca+http://127.0.0.1:$port" p.exit.pb.gz)" status
  matches 'refused by .*: grpc-status 3: missing __name__ label$' err
  # A token must not go to another host: a redirect is no answer.
  server other
  plan "redirect http://127.0.0.1:$port/elsewhere"
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$(cat server/port)" p.exit.pb.gz)" status
  matches 'HTTP 307: redirects to http://127.0.0.1:[0-9]*/elsewhere, and redirects are not followed' err
  [ ! -e other/0001.json ] || fail 'the redirect was followed'
}

# Answers after which the same may succeed: sent again until it does.
test_retried() {
  local how
  record -q -p 4K -o p.pb.gz "$targets/leaky" 100 64
  server
  plan '429 2' 500 ok
  push -v --to "pyroscope+http://127.0.0.1:$port" --timeout 120s p.pb.gz 2>err || fail "$(cat err)"
  equal 3 "$(requests)" 'requests'
  equal 1 "$(for i in 1 2 3; do said 000$i 'r["id"]'; done | sort -u | wc -l)" 'ids'
  matches 'HTTP 429: .*too much.*; again in 2\.[0-9] s' err
  matches 'HTTP 500: .*; again in (0\.9|1\.[01]) s' err
  for how in cut html empty garbage 503 408; do
    plan "$how" ok
    push -v --to "pyroscope+http://127.0.0.1:$port" --timeout 120s p.pb.gz 2>err || fail "$how: $(cat err)"
    matches '; again in 0\.[45] s' err
  done
  for how in 'grpc 14 try%20again' notrailers cut garbage 503; do
    plan "$how" ok
    push -v --to "parca+http://127.0.0.1:$port" --timeout 120s p.pb.gz 2>err || fail "$how: $(cat err)"
    matches '; again in 0\.[45] s' err
  done
}

# Servers that never come to an end: given up at once if they send too much, else when the time is up.
test_hostile() {
  record -q -p 4K -o p.pb.gz "$targets/leaky" 100 64
  server
  local how
  for how in headers body; do
    plan $how
    equal 1 "$(status_of push --timeout 400ms --to "pyroscope+http://127.0.0.1:$port" p.pb.gz)" "status of $how"
    matches 'not delivered to .*: (the answer is too large|Operation timed out)' err
  done
  for how in never trickle; do
    plan $how
    equal 1 "$(status_of push --timeout 400ms --to "pyroscope+http://127.0.0.1:$port" p.pb.gz)" "status of $how"
    matches 'not delivered to .*: Operation timed out' err
  done
  for how in garbage never cut; do
    plan $how
    equal 1 "$(status_of push --timeout 400ms --to "parca+http://127.0.0.1:$port" p.pb.gz)" "status of $how"
  done
  # Several files: the first one's time is up, the others are not tried.
  cp p.pb.gz q.pb.gz
  plan never
  equal 1 "$(status_of push --timeout 400ms --to "pyroscope+http://127.0.0.1:$port" p.pb.gz q.pb.gz)" status
  matches '^heaptap: q.pb.gz: not sent, the server did not take the one before$' err
  equal 2 "$(wc -l <err)" 'lines, one each'
}

# made NAME SECONDS_AGO STACKS DEPTH [PID [CAUSE]]: a profile of that many stacks, as old as that; with PID as heaptap's own
made() {
  [ -d modules ] || { mkdir modules; protoc --proto_path="$top/proto" --python_out=modules profile.proto; }
  PYTHONPATH=modules /usr/bin/python3 -B - "$@" <<'PYTHON'
import gzip, sys, time
import profile_pb2
name, ago, stacks, depth = sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:5])
p = profile_pb2.Profile()
strings = {"": 0}
def string(text):
    return strings.setdefault(text, len(strings))
for type, unit in ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"):
    p.sample_type.add(type=string(type), unit=string(unit))
p.period_type.type, p.period_type.unit, p.period = string("space"), string("bytes"), 512
p.time_nanos = int((time.time() - ago) * 1e9)
p.mapping.add(id=1, memory_start=0x400000, memory_limit=0x40000000, filename=string("/usr/bin/made"), has_functions=True)
functions = 2000
for i in range(1, functions + 1):
    p.function.add(id=i, name=string("function_with_a_long_name_number_%d" % i), filename=string("/src/file_%d.c" % (i % 99)))
    p.location.add(id=i, mapping_id=1, address=0x400000 + 16 * i).line.add(function_id=i, line=i)
for i in range(stacks):
    sample = p.sample.add(value=[i + 1, (i + 1) * 64, i % 1000 + 1, i % 1000 * 64 + 64])
    sample.location_id.extend((i * 7 + j * (i // functions + 1)) % functions + 1 for j in range(depth))
    sample.label.add(key=string("bytes"), num=64, num_unit=string("bytes"))
if len(sys.argv) > 5:
    for text in "heaptap 0.1.0", "pid=%s comm=made host=vm" % sys.argv[5], "session=1-1 start=1000", "snapshot: " + (
            sys.argv[6] if len(sys.argv) > 6 else "0001, every 60 s"), "labels: service_name=shop%20a unit=shop.service":
        p.comment.append(string(text))
p.string_table.extend(strings)
open(name, "wb").write(gzip.compress(p.SerializeToString(), 1))
PYTHON
}

# TLS: only with a certificate that is trusted; HTTP/2 is agreed upon for Parca.
test_tls() {
  made good.pb.gz 3 10 3
  mkdir server
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 -keyout server/key.pem -out server/cert.pem 2>openssl.log
  server
  cp good.pb.gz other.pb.gz
  for to in pyroscope parca; do
    equal 1 "$(status_of push --timeout 3s --to "$to+https://127.0.0.1:$port" good.pb.gz)" "status of $to"
    matches 'not delivered to https://.*: .*certificate' err
    push --timeout 60s --ca-file server/cert.pem --to "$to+https://127.0.0.1:$port" good.pb.gz other.pb.gz 2>err ||
      fail "$(cat err)"
    matches '^heaptap: 2 profiles sent' err
  done
  equal 4 "$(requests)" requests
}

# More than Pyroscope takes: the tail is one frame, sums are as before.
test_folded() {
  local type
  server
  made many.pb.gz 10 20000 4
  made large.pb.gz 10 12000 120
  made deep.pb.gz 10 3 1500
  for type in many large deep; do
    rm -f server/0*
    push --to "pyroscope+http://127.0.0.1:$port" $type.pb.gz 2>err
    profile=$(only server/*.pb.gz)
    sent_check "$profile"
    for column in alloc_objects alloc_space inuse_objects inuse_space; do
      equal "$(total_of $type.pb.gz $column)" "$(total_of "$profile" $column)" "$column of $type"
    done
    [ "$(gunzip -c "$profile" | wc -c)" -lt 1992294 ] || fail "$type is too large"
    gunzip -c "$profile" | protoc --proto_path="$top/proto" --decode=perftools.profiles.Profile profile.proto >text
    [ "$(grep -c '^sample {' text)" -le 15000 ] || fail "$type has too many samples"
  done
  matches 'deep.pb.gz: sent, 3 stacks; 3 stacks lost frames in their middle' err
  equal 3000 "$(grep -c '^ *location_id' text)" 'frames of three stacks'
  # Said, and seen beforehand.
  push --dry-run --to "pyroscope+http://127.0.0.1:$port" many.pb.gz large.pb.gz >out
  matches '^  cut     5001 of 20000 stacks, .*% of the total at most, are under \[other\]$' out
  equal 2 "$(grep -c 'are under' out)" 'folded profiles'
  matches '^  size    1[0-9]{6} bytes, [0-9]+ compressed, [0-9]+ stacks$' out
  matches '^  labels  __name__=memory service_name=made ' out
  equal 0 "$(ls server | grep -c large)" 'sent by a dry run'
  # Others take it whole.
  rm -f server/0*
  push -q --to "parca+http://127.0.0.1:$port" many.pb.gz
  equal 20000 "$(gunzip -c "$(only server/*.pb.gz)" |
    protoc --proto_path="$top/proto" --decode=perftools.profiles.Profile profile.proto | grep -c '^sample {')" samples
}

test_window() {
  server
  made old.pb.gz 3600 10 3
  made new.pb.gz -700 10 3
  made good.pb.gz 3500 10 3
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$port" old.pb.gz new.pb.gz good.pb.gz)" status
  matches '^heaptap: old.pb.gz: not sent, it is 60 min old: Pyroscope takes profiles of the last 59 min$' err
  matches '^heaptap: new.pb.gz: not sent, its time is 11 min in the future: is a clock wrong\?$' err
  matches '^heaptap: 1 profile sent' err
  equal 1 "$(requests)" requests
  equal 0 "$(status_of push --to "parca+http://127.0.0.1:$port" old.pb.gz)" 'status of Parca'
}

# Files that are none, and none of what is wanted; a token from a file.
test_operands() {
  server
  made good.pb.gz 3 10 3
  echo nothing >text
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$port" missing text good.pb.gz)" status
  equal 3 "$(wc -l <err)" lines
  matches '^heaptap: cannot read missing: No such file' err
  matches '^heaptap: cannot read text: ' err
  equal 1 "$(requests)" requests
  printf 'secret\n' >token
  push -q --to "pyroscope+http://127.0.0.1:$port" --token-file token good.pb.gz
  equal 'Bearer secret' "$(said 0002 'r["headers"]["authorization"]')" header
  push -q --to "pyroscope+http://127.0.0.1:$port" --user me --token-file token good.pb.gz
  equal "Basic $(printf me:secret | base64)" "$(said 0003 'r["headers"]["authorization"]')" header
  push -q --to "pyroscope+http://127.0.0.1:$port" --types inuse_space - <good.pb.gz
  equal "$(total_of good.pb.gz inuse_space)" "$(total_of server/0004-0.pb.gz inuse_space)" 'in use'
  equal '' "$(total_of server/0004-0.pb.gz alloc_space)" 'allocated'
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$port" --types other_space good.pb.gz)" status
  matches 'none of the sample types that are wanted' err
  equal 2 "$(status_of push good.pb.gz)" 'status without --to'
  equal 2 "$(status_of push --to pyroscope+http://me:secret@host good.pb.gz)" status
  matches 'use --user and --token-file' err
  ! grep -q secret err || fail 'the password is printed'
}

# ---- --follow

spool=$XDG_STATE_HOME/heaptap/push

# follow WORDS...: the service; $follow_pid. It ends with the test.
follow() {
  "$heaptap" push --follow "$@" 2>>follow.err &
  follow_pid=$!
  trap 'kill $follow_pid $server_pid 2>/dev/null || :' EXIT
}

# follow_end: by SIGTERM, as a service manager would; it must end well
follow_end() {
  kill "$follow_pid"
  wait "$follow_pid" || fail "--follow ended with status $?: $(cat follow.err)"
}

# counted NAME COUNTER VALUE
counted() {
  grep -qx "$2 $3" "$spool/$1/counters" 2>/dev/null
}

# spooled NAME: how many profiles wait
spooled() {
  find "$spool/$1" -maxdepth 1 -name '*.pb.gz' | wc -l
}

spooled_is() {
  [ "$(spooled "$1")" = "$2" ]
}

# What lies there, what is written in it, and below it, goes to the server; neither peaks nor anything else.
test_follow() {
  local name
  snapshots >files
  mkdir -p store/day
  server
  name=pyroscope-127.0.0.1-$port
  cp -p p.0001-a.pb.gz store/
  echo none >store/other.pb.gz
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "$name" sent 1
  # Renamed into place, written in place, in a new folder below.
  cp p.0002-b.pb.gz store/.tmp && mv store/.tmp store/p.0002-b.pb.gz
  wait_for 20 counted "$name" sent 2
  cp p.0003-c.pb.gz store/day/
  wait_for 20 counted "$name" sent 3
  mkdir -p new/folder
  cp p.exit.pb.gz new/folder/
  record -q -p 4K -o new/folder/ "$targets/leaky" 10 64
  ls new/folder | grep -q peak || fail 'no peak'
  rm new/folder/*leaky*.exit.pb.gz
  mv new store/
  wait_for 20 counted "$name" sent 4
  same_as_files
  # It was told nothing twice, also not by a second run.
  follow_end
  follow --to "pyroscope+http://127.0.0.1:$port" store
  touch store/p.0001-a.pb.gz
  cp p.0001-a.pb.gz store/another.pb.gz
  made store/z.pb.gz 1 5 3 77
  wait_for 20 counted "$name" sent 5
  follow_end
  equal 5 "$(requests)" requests
  equal 'shop a shop.service' "$(said 0005 'r["labels"]["service_name"] + " " + r["labels"]["unit"]')" labels
  equal 0 "$(spooled "$name")" 'files in the spool'
}

# The server is away: profiles wait, whoever is killed meanwhile; then all of them arrive, once.
test_follow_outage() {
  local name i
  snapshots >files
  mkdir store
  server
  kill $server_pid
  wait $server_pid || :
  printf '[daemon]\nstore = %s\n[push one]\nurl = pyroscope+http://127.0.0.1:%s\nlabel.env = prod\n' \
    "$PWD/store" "$port" >heaptap.conf
  follow --config heaptap.conf
  i=0
  for file in $(cat files); do
    cp "$file" "store/$file"
    i=$((i + 1))
    wait_for 20 spooled_is one $i
    kill -KILL $follow_pid
    wait $follow_pid 2>/dev/null || :
    follow --config heaptap.conf
  done
  # The store keeps only the newest: the others are in the spool.
  rm store/p.0001-a.pb.gz
  wait_for 20 grep -q 'one: Failed to connect.*; again in' follow.err
  server server "$port"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :' EXIT
  wait_for 60 counted one sent 4
  same_as_files
  equal 4 "$(for i in 1 2 3 4; do said 000$i 'r["id"]'; done | sort -u | wc -l)" 'ids'
  equal prod "$(said 0004 'r["labels"]["env"]')" label
  # Killed again and again, it sends nothing that was acknowledged.
  for i in 1 2 3 4 5; do
    kill -KILL $follow_pid
    wait $follow_pid 2>/dev/null || :
    made store/more$i.pb.gz $((20 - i)) 5 3 77
    follow --config heaptap.conf
    wait_for 20 counted one sent $((4 + i))
  done
  follow_end
  equal 9 "$(requests)" requests
  matches 'one: sending works again' follow.err
}

# SIGKILL in the middle of requests: what was not acknowledged is sent again, under the same id.
test_follow_killed() {
  local i
  server
  mkdir store
  plan never
  made store/a.pb.gz 9 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" store
  for i in 1 2 3; do
    wait_for 20 test -e server/000$i.json
    kill -KILL $follow_pid
    wait $follow_pid 2>/dev/null || :
    follow --to "pyroscope+http://127.0.0.1:$port" store
  done
  wait_for 20 test -e server/0004.json
  kill -KILL $follow_pid
  wait $follow_pid 2>/dev/null || :
  mkdir waiting
  cp "$spool/pyroscope-127.0.0.1-$port"/*.pb.gz waiting/
  plan ok
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "pyroscope-127.0.0.1-$port" sent 1
  follow_end
  # As if it had been killed after the acknowledgement was noted, and before the profile was removed.
  cp waiting/* "$spool/pyroscope-127.0.0.1-$port/"
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 spooled_is "pyroscope-127.0.0.1-$port" 0
  follow_end
  equal 5 "$(requests)" requests
  equal 1 "$(for i in 1 2 3 4 5; do said 000$i 'r["id"]'; done | sort -u | wc -l)" 'ids'
}

# Refused for good: moved aside with the answer, the last ten of them; the next ones are sent.
test_follow_rejected() {
  local i
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\n' "$port" >heaptap.conf
  plan '400 no good'
  follow --config heaptap.conf store
  for i in $(seq 12); do
    made "store/$i.pb.gz" $((60 - i)) 3 3 $((100 + i))
  done
  wait_for 30 counted one rejected 12
  plan ok
  made store/last.pb.gz 1 3 3 200
  wait_for 20 counted one sent 1
  follow_end
  equal 10 "$(find "$spool/one/rejected" -name '*.pb.gz' | wc -l)" 'rejected profiles'
  equal 10 "$(find "$spool/one/rejected" -name '*.txt' | wc -l)" 'answers'
  matches 'HTTP 400: .*no good' "$(find "$spool/one/rejected" -name '*.txt' | head -n 1)"
  matches 'one: a profile was refused, it is in .*/push/one/rejected: HTTP 400' follow.err
  "$heaptap" check "$(find "$spool/one/rejected" -name '*.pb.gz' | head -n 1)" || fail 'rejected profile'
}

# A budget is kept, the oldest go first; so does what is too old by the time the server is back.
test_follow_budget() {
  local i
  server
  kill $server_pid
  wait $server_pid || :
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\nspool = 1M\n' "$port" >heaptap.conf
  for i in 1 2 3 4; do
    made "store/$i.pb.gz" $((60 - i)) 6000 300 $((100 + i))
  done
  local each
  each=$(stat -c %s store/1.pb.gz)
  [ "$each" -gt 300000 ] && [ "$each" -lt 900000 ] || fail "$each bytes each"
  follow --config heaptap.conf store
  wait_for 30 counted one dropped $((4 - 1048576 / each))
  made store/5.pb.gz 5 6000 300 105
  wait_for 30 counted one dropped $((5 - 1048576 / each))
  follow_end
  [ "$(find "$spool/one" -maxdepth 1 -name '*.pb.gz' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')" -le 1048576 ] ||
    fail 'over budget'
  matches 'profiles? dropped, the oldest: the spool is full' follow.err
  # The newest is among those that are left.
  cmp store/5.pb.gz "$(find "$spool/one" -maxdepth 1 -name '*.pb.gz' | sort | tail -n 1)"
}

# What was accepted is not known any more: what is in use is sent, nothing is claimed to be newly allocated.
test_follow_damaged() {
  local name
  server
  mkdir store
  name=pyroscope-127.0.0.1-$port
  made store/a.pb.gz 9 5 3 77
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "$name" sent 1
  for file in "$spool/$name"/state/*.accepted; do
    echo garbage >"$file"
  done
  made store/b.pb.gz 8 5 3 77
  wait_for 20 counted "$name" sent 2
  equal "$(total_of store/b.pb.gz inuse_space)" "$(total_of server/0002-0.pb.gz inuse_space)" 'in use'
  equal '' "$(total_of server/0002-0.pb.gz alloc_space)" 'allocated'
  matches 'what was sent before is not known any more: no alloc_\* this time' follow.err
  # From then on it is known again; and what is no profile is moved aside.
  made store/c.pb.gz 7 5 3 77
  wait_for 20 counted "$name" sent 3
  equal "$(total_of store/c.pb.gz inuse_space)" "$(total_of server/0003-0.pb.gz inuse_space)" 'in use'
  kill "$follow_pid"
  wait "$follow_pid"
  echo garbage >"$spool/$name/00000000000000000001-0$(date +%s%N)-00000000000000aa-s.pb.gz"
  follow --to "pyroscope+http://127.0.0.1:$port" store
  wait_for 20 counted "$name" rejected 1
  follow_end
}

# A full disk: profiles wait where they are, and are taken when there is room.
test_follow_full_disk() {
  need_root
  server
  mkdir store state
  mount -t tmpfs -o size=64k none state 2>mount.err || skip "no tmpfs: $(cat mount.err)"
  trap 'kill $follow_pid $server_pid 2>/dev/null || :; umount -l state' EXIT
  made store/a.pb.gz 20 6000 60 77
  [ "$(stat -c %s store/a.pb.gz)" -gt 65536 ] || fail 'too small'
  "$heaptap" push --follow --to "pyroscope+http://127.0.0.1:$port" store 2>>follow.err &
  follow_pid=$!
  wait_for 20 grep -q 'cannot write to the spool: No space left on device; profiles wait where they are' follow.err
  made store/b.pb.gz 10 5 3 77
  mount -o remount,size=16m state
  wait_for 30 counted "pyroscope-127.0.0.1-$port" sent 2
  equal "$(total_of store/a.pb.gz inuse_space)" "$(total_of server/0001-0.pb.gz inuse_space)" 'the first'
  follow_end
}

# A target of its own for each section; what is wrong in the file is said with its line.
test_follow_config() {
  server
  mkdir store
  printf '[push one]\nurl = pyroscope+http://127.0.0.1:%s\ntypes = inuse_space\n[push two]\nurl = parca+http://127.0.0.1:%s\n' \
    "$port" "$port" >heaptap.conf
  follow --config heaptap.conf store
  made store/a.pb.gz 5 5 3 77
  wait_for 20 counted one sent 1
  wait_for 20 counted two sent 1
  # A reload, by the name of the process' own file.
  printf '[push three]\nurl = parca+http://127.0.0.1:%s\n' "$port" >heaptap.conf
  kill -HUP $follow_pid
  wait_for 20 counted three sent 1
  follow_end
  equal 3 "$(requests)" requests
  printf '[push one]\nurl = http://host\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf store)" status
  matches "^heaptap: heaptap.conf:2: 'http://host' is no address for profiles; give pyroscope" err
  printf '[push one]\nurl = parca+http://host\nspol = 5M\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf store)" status
  matches "^heaptap: heaptap.conf:3: 'spol' is none of url, token-file" err
  printf '[push a/b]\nurl = parca+http://host\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf store)" status
  matches "^heaptap: heaptap.conf:1: 'a/b' is no name for a target" err
  printf '[daemon]\nstore = /nowhere\n' >heaptap.conf
  equal 2 "$(status_of push --follow --config heaptap.conf)" status
  matches 'has no section \[push NAME\]$' err
  equal 2 "$(status_of push --follow --to parca+http://host)" 'status without a folder'
}

# ---- record --push

# Snapshots and the exit of each process, while it runs and at its end; COMMAND's status and its output stay.
test_record() {
  server
  equal 7 "$(status_of "$heaptap" record -q -b copy -p 1 -o 'p.%e.%n.pb.gz' --push "pyroscope+http://127.0.0.1:$port" \
    --label env=ci sh -c "$targets/snapshot_api hold 1000 snap a hold 500 snap b; exit 7")" status
  equal 2 "$(grep -c '^snapshot 1$' out)" 'lines of COMMAND'
  rm -f p.*.peak.pb.gz
  equal "$(ls p.*.pb.gz | wc -l)" "$(requests)" 'requests'
  equal "$(sums alloc_space p.*.exit.pb.gz)" "$(sums alloc_space server/*.pb.gz)" 'allocated'
  equal "$(sums inuse_space p.*.pb.gz)" "$(sums inuse_space server/*.pb.gz)" 'in use'
  equal ci "$(said 0001 'r["labels"]["env"]')" label
  equal 0 "$(find "$spool" -maxdepth 2 -name '*.pb.gz' | wc -l)" 'profiles in the spool'
}

# The server is away: the end waits ten seconds, and says where the rest is; the next session sends it.
test_record_away() {
  local began
  server
  kill $server_pid
  wait $server_pid || :
  began=$SECONDS
  equal 0 "$(status_of "$heaptap" record -q -p 4K -o a.pb.gz --push "pyroscope+http://127.0.0.1:$port" \
    "$targets/leaky" 100 64)" status
  [ $((SECONDS - began)) -ge 9 ] || fail "waited $((SECONDS - began)) s only"
  matches '^heaptap: 1 profile \([0-9]+ bytes\) could not be sent yet, and waits in .*/push/record-pyroscope-127.0.0.1-[0-9]+; the next' err
  spooled_is "record-pyroscope-127.0.0.1-$port" 1 || fail 'nothing waits'
  server server "$port"
  record -q -p 4K -o b.pb.gz --push "pyroscope+http://127.0.0.1:$port" "$targets/leaky" 100 64
  equal 2 "$(requests)" requests
  # Nobody waits for a server if Ctrl-C comes a second time: see signals.sh; and a URL that is wrong starts nothing.
  equal 2 "$(status_of "$heaptap" record --push nowhere touch made)" status
  [ ! -e made ] || fail 'COMMAND was started'
}
