# SPDX-License-Identifier: Apache-2.0
# What tests of `heaptap push` share. tests/push_server.py is the server; what came is read by pprof's own library
# (readers/oracle).

push_program=$HEAPTAP_PROGRAMS/heaptap-push
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
