# SPDX-License-Identifier: Apache-2.0
# `heaptap push`: what arrives at servers of each protocol, and what servers that misbehave are sent again.

. "$top/tests/push.sh"

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

test_datadog_is_gone() {
  local line='pyroscope\+http\(s\)://.*, parca\+http\(s\):// or otlp\+http\(s\):// \(datadog\+http:// is gone\)'
  made a.pb.gz 0 10 3
  equal 2 "$(status_of push --to datadog+http://127.0.0.1 a.pb.gz)" status
  matches "$line" err
  equal 2 "$(status_of "$heaptap" record --push datadog+http://127.0.0.1 true)" 'status of record'
  matches "$line" err
  printf '[push old]\nurl = datadog+http://agent:8126\n' >conf
  status_of push --follow --config conf >/dev/null || :
  matches 'datadog\+http:// is gone: use pyroscope' err
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
  # So is a token that is refused: nobody gives another one meanwhile.
  plan '401 who are you' ok
  before=$(requests)
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$port" p.exit.pb.gz)" status
  matches 'refused by .*: HTTP 401: .*who are you' err
  equal $((before + 1)) "$(requests)" requests
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

# More than Pyroscope takes, or Parca takes in good time: the tail is one frame, sums are as before.
test_folded() {
  local type
  server
  made many.pb.gz 10 20000 4
  made large.pb.gz 10 12000 120
  made deep.pb.gz 10 3 1500
  for to in parca pyroscope; do
    for type in many large deep; do
      rm -f server/0*
      push --to "$to+http://127.0.0.1:$port" $type.pb.gz 2>err
      profile=$(only server/*.pb.gz)
      sent_check "$profile"
      for column in alloc_objects alloc_space inuse_objects inuse_space; do
        equal "$(total_of $type.pb.gz $column)" "$(total_of "$profile" $column)" "$column of $type"
      done
      [ "$(gunzip -c "$profile" | wc -c)" -lt 1992294 ] || fail "$type is too large"
      gunzip -c "$profile" | protoc --proto_path="$top/proto" --decode=perftools.profiles.Profile profile.proto >text
      [ "$(grep -c '^sample {' text)" -le 15000 ] || fail "$type has too many samples"
    done
    cp text deep.$to
  done
  matches 'deep.pb.gz: sent, 3 stacks; 3 stacks lost frames in their middle' err
  equal 3000 "$(grep -c '^ *location_id' deep.pyroscope)" 'frames of three stacks'
  equal 4500 "$(grep -c '^ *location_id' deep.parca)" 'frames of three stacks, to Parca'
  # Said, and seen beforehand.
  push --dry-run --to "pyroscope+http://127.0.0.1:$port" many.pb.gz large.pb.gz >out
  matches '^  cut     5001 of 20000 stacks, .*% of the total at most, are under \[other\]$' out
  equal 2 "$(grep -c 'are under' out)" 'folded profiles'
  matches '^  size    1[0-9]{6} bytes, [0-9]+ compressed, [0-9]+ stacks$' out
  matches '^  labels  __name__=memory service_name=made ' out
  equal 0 "$(ls server | grep -c large)" 'sent by a dry run'
  # A folder: the profiles in it, sorted as if they were named; and what has none.
  mkdir folder none
  cp many.pb.gz large.pb.gz folder
  echo no >folder/notes.txt
  push --dry-run --to "pyroscope+http://127.0.0.1:$port" folder/ >out.folder
  matches '^folder/many.pb.gz$' out.folder
  equal "$(grep -v pb.gz out | sort)" "$(grep -v pb.gz out.folder | sort)" 'a folder, and the files in it'
  status=0
  push --dry-run --to "pyroscope+http://127.0.0.1:$port" none 2>err || status=$?
  equal 1 $status
  matches '^heaptap: none: there is no profile in it$' err
  # OpenTelemetry takes it whole.
  rm -f server/0*
  push -q --to "otlp+http://127.0.0.1:$port" many.pb.gz
  equal False "$(said "$(basename "$(only server/*.json)" .json)" '"[other]" in r["otlp"]["leaves"]')" '[other]'
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
  # Never a pid, whoever names it.
  equal 2 "$(status_of push --dry-run --to "pyroscope+http://127.0.0.1:$port" --label pid=7 good.pb.gz)" status
  matches "label 'pid=7': a pid is not sent as a label" err
  # On its way to another machine others may read it, unless it is encrypted: that is said, also by a dry run.
  for to in pyroscope+http://other.example:4040 parca+https://other.example "pyroscope+http://127.0.0.1:$port"; do
    push --dry-run --to "$to" --token-file token good.pb.gz >out 2>err || fail "$(cat err)"
    cat err
  done >warnings
  equal 'heaptap: the token for http://other.example:4040 is not encrypted on its way, and others may read it: use https' "$(cat warnings)"
  push -q --to "pyroscope+http://127.0.0.1:$port" --token-file token good.pb.gz
  equal 'Bearer secret' "$(said 0002 'r["headers"]["authorization"]')" header
  push -q --to "pyroscope+http://127.0.0.1:$port" --user me --token-file token good.pb.gz
  equal 1 "$(status_of push --to "pyroscope+http://127.0.0.1:$port" --token-file none good.pb.gz)" status
  matches 'good.pb.gz: not delivered to .*: cannot read the token in none: No such file' err
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
