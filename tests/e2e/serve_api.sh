# SPDX-License-Identifier: Apache-2.0
# `heaptap serve`: /api/v1, /metrics and /sd, of sessions and of files.
# timeout: 180

. "$HEAPTAP_TOP/tests/serve.sh"

# json EXPRESSION: of the last answer; `r` is what it says
json() {
  /usr/bin/python3 -c 'import json, sys; r = json.load(open("body")); print(eval(sys.argv[1]))' "$1"
}

test_processes_and_moments() {
  program a -p 1 -b copy
  tell a 'hold 200'
  serve
  equal 200 "$(fetch /api/v1/processes)"
  equal 'application/json' "$(header Content-Type)"
  equal "$(cat a.pid)" "$(json 'r["processes"][0]["pid"]')"
  # Moments that somebody has looked at can be compared.
  fetch /debug/pprof/heap >/dev/null
  tell a 'hold 100'
  sleep 1.1
  fetch /debug/pprof/heap >/dev/null
  equal 200 "$(fetch "/api/v1/profiles?pid=$(cat a.pid)")"
  equal 2 "$(json 'len(r["profiles"])')" 'moments'
  base=$(json 'sorted(r["profiles"], key=lambda p: p["time_ns"])[0]["id"]')
  new=$(json 'sorted(r["profiles"], key=lambda p: p["time_ns"])[1]["id"]')
  equal 200 "$(fetch "/api/v1/diff?base=$base&new=$new")"
  grep -q take_held body || fail 'no take_held in the difference'
  equal 200 "$(fetch "/api/v1/profile?id=$new")"
  reached_exactly body take_held 'inuse_space 300000'
  for view in top tree leaks timeline growth; do
    equal 200 "$(fetch "/api/v1/$view?pid=$(cat a.pid)")" "$view: $(cat body)"
    /usr/bin/python3 -m json.tool body >/dev/null || fail "$view"
  done
  # The answer is the same whether it comes compressed or not.
  equal 200 "$(fetch "/api/v1/tree?id=$new" --compressed)"
  cp body plain
  matches '^Content-Encoding: gzip' head
  fetch "/api/v1/tree?id=$new" >/dev/null
  cmp body plain || fail 'compressed'
  equal 400 "$(fetch "/api/v1/top?pid=$(cat a.pid)&sort=nonsense")"
  json 'r["error"]' >error
  equal 400 "$(fetch "/api/v1/top?pid=$(cat a.pid)&focus=(")"
  equal 404 "$(fetch /api/v1/nothing)"
  equal 404 "$(fetch /api/v1/top?id=f-0000000000000000)"
  equal 404 "$(fetch /api/v1/top?pid=1)"
  equal 400 "$(fetch /api/v1/diff?base=$base)"
  equal 200 "$(fetch /api/v1/openapi.json)"
  finish a
}

# profiles COUNT: are so many listed? A request does not wait longer than 5 s for files to be read.
profiles() {
  [ "$(curl -s "$url/api/v1/profiles" | grep -o '"id"' | wc -l)" = "$1" ]
}

test_files() {
  snapshots >files
  mkdir -p store/deep
  mv p.*.pb.gz store/deep
  echo nonsense >store/bad.pb.gz
  own -R store
  serve store
  wait_for 20 profiles 4
  equal 200 "$(fetch /api/v1/processes)"
  equal 1 "$(json 'len(r["processes"])')" processes
  equal 4 "$(json 'r["processes"][0]["profiles"] if "profiles" in r["processes"][0] else r["processes"][0]["profile_count"]')" profiles
  # The newest state is what there is now.
  equal 200 "$(fetch /debug/pprof/heap)"
  cmp body store/deep/p.exit.pb.gz || fail 'not the file'
  equal 400 "$(fetch '/debug/pprof/heap?seconds=1')"
  equal 200 "$(fetch /api/v1/profiles)"
  equal 4 "$(json 'len(r["profiles"])')"
  id=$(json 'sorted(r["profiles"], key=lambda p: p["time_ns"])[0]["id"]')
  at=$(json 'sorted(r["profiles"], key=lambda p: p["time_ns"])[1]["time_ns"]')
  equal 200 "$(fetch "/api/v1/profile?id=$id")"
  cmp body store/deep/p.0001*.pb.gz || fail 'not the file of that id'
  equal 200 "$(fetch "/api/v1/profile?at=$(awk -v ns="$at" 'BEGIN { printf "%.6f", ns / 1e9 + 0.000001 }')")"
  cmp body store/deep/p.0002*.pb.gz || fail 'not the file of that time'
  equal 200 "$(fetch /api/v1/timeline)"
  equal 4 "$(json 'len(r["points"])')" points
  equal 200 "$(fetch /api/v1/growth)"
  # A profile's id is that of its process, too.
  cp body growth
  equal 200 "$(fetch "/api/v1/growth?id=$id")"
  cmp body growth || fail 'growth by an id'
  equal 200 "$(fetch "/api/v1/timeline?id=$id")"
  equal "$(json 'r["process"]["id"]')" "$(fetch /api/v1/processes >/dev/null; json 'r["processes"][0]["id"]')"
  equal 400 "$(fetch '/api/v1/top?at=yesterday')"
  equal 400 "$(fetch '/api/v1/top?state=nonsense')"
  # Ids last: another server has the same.
  kill $serve_pid
  wait $serve_pid || :
  serve store
  wait_for 20 answers 200 "/api/v1/profile?id=$id"
  # A file that comes later is found.
  cp store/deep/p.exit.pb.gz store/later.pb.gz
  own store/later.pb.gz
  wait_for 20 profiles 5
  equal 2 "$(status_of "${user[@]}" "$heaptap" serve nothing)"
  matches 'nothing: No such file' err
}

# Live processes and files together: what has ended is there to be compared with.
test_files_beside_live_processes() {
  program a -p 1 -b copy
  tell a 'hold 100'
  snapshots >files
  mkdir store
  mv p.*.pb.gz store
  own -R store
  serve --socket "$(find "$PWD/run" -name '*.sock')" store
  wait_for 20 answers 200 /debug/pprof/heap # of the live one, which is kept
  wait_for 20 profiles 5
  equal 200 "$(fetch /api/v1/profiles)"
  equal 'f m' "$(json '" ".join(sorted({p["id"][0] for p in r["profiles"]}))')" 'kinds of ids'
  equal 4 "$(json 'sum(p["id"][0] == "f" for p in r["profiles"])')" files
  finish a
}

test_metrics_and_discovery() {
  program a -p 1 -b copy
  tell a 'hold 300'
  serve
  equal 200 "$(fetch /metrics)"
  equal 'text/plain; version=0.0.4; charset=utf-8' "$(header Content-Type)"
  matches '^heaptap_targets\{service_name="serve_program"\} 1$' body
  at_least 300000 "$(sed -n 's/^heaptap_inuse_bytes{service_name="serve_program"} //p' body)" 'in use'
  at_least 300000 "$(sed -n 's/^heaptap_process_resident_bytes{service_name="serve_program"} //p' body)" resident
  if command -v promtool >/dev/null; then
    promtool check metrics <body >promtool 2>&1 || { cat promtool >&2; fail promtool; }
  fi
  equal 200 "$(fetch /sd)"
  equal "$(cat a.pid)" "$(json 'r[0]["labels"]["pid"]')"
  equal "/pid/$(cat a.pid)" "$(json 'r[0]["labels"]["__profile_path_prefix__"]')"
  equal "${url#http://}" "$(json 'r[0]["targets"][0]')"
  # Where this client reaches us, whatever we listen on.
  fetch /sd -H "Host: localhost:1234" >/dev/null
  equal localhost:1234 "$(json 'r[0]["targets"][0]')"
  fetch /sd -0 -H 'Host:' >/dev/null
  equal "${url#http://}" "$(json 'r[0]["targets"][0]')"
  # A service that has gone is in no series any more.
  finish a
  wait_for 20 bash -c "! curl -s $url/metrics | grep -q serve_program"
  if command -v promtool >/dev/null; then
    fetch /metrics >/dev/null
    promtool check metrics <body >promtool 2>&1 || { cat promtool >&2; fail promtool; }
  fi
}

# counter NAME: of the service of these tests; 0: there is none
counter() {
  curl -s "$url/metrics" | sed -n "s/^$1{service_name=\"serve_program\"[^}]*} //p" | awk '{ sum += $1 } END { printf "%d", sum }'
}

counter_is() {
  [ "$(counter "$1")" = "$2" ]
}

# A process that ends takes nothing away from what its service has counted.
test_counters_do_not_fall() {
  program a -p 1 -b copy
  program b -p 1 -b copy
  serve
  tell a 'hold 200'
  tell b 'hold 300'
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 2
  sleep 1.1 # a look is a second old at most
  allocated=$(counter heaptap_alloc_bytes_total) samples=$(counter heaptap_samples_total)
  at_least 500000 "$allocated" allocated
  cpu=$(curl -s "$url/metrics" | sed -n 's/^heaptap_cpu_seconds_total //p')
  finish b
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 1
  at_least "$allocated" "$(counter heaptap_alloc_bytes_total)" 'after the end of one'
  at_least "$samples" "$(counter heaptap_samples_total)" 'samples after the end of one'
  awk -v a="$cpu" -v b="$(curl -s "$url/metrics" | sed -n 's/^heaptap_cpu_seconds_total //p')" 'BEGIN { exit !(b >= a) }' ||
    fail 'the CPU time of samplers fell'
  # And what goes on is counted on.
  now=$(counter heaptap_alloc_bytes_total)
  tell a 'hold 100'
  grown() { [ "$(counter heaptap_alloc_bytes_total)" -ge $((now + 100000)) ]; }
  wait_for 20 grown
  finish a
}

# Of a service with several processes: what all of them had at each moment, those that have ended, too.
# A sampler that does not answer in time is no end of its processes; but for ever it is not waited for.
test_a_list_that_is_late() {
  local sampler
  program a -p 1 -b copy
  tell a 'hold 100'
  serve
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 1
  sampler=$(sampler_of "$(cat a.front)")
  kill -STOP "$sampler"
  sleep 1.1 # the next answer needs a look
  metric 'heaptap_targets{service_name="serve_program"}' 1 || fail 'it is taken for ended'
  gone() { curl -s "$url/metrics" >metrics && ! grep -q '^heaptap_targets{' metrics; }
  wait_for 60 gone
  kill -CONT "$sampler"
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 1
  finish a
}

test_the_time_line_of_a_service() {
  program a -p 1 -b copy
  program b -p 1 -b copy
  tell a 'hold 200'
  tell b 'hold 300'
  serve
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 2
  summed() {
    fetch '/api/v1/timeline?service=serve_program' >status
    [ "$(cat status)" = 200 ] && [ "$(json 'r["points"][-1]["inuse"] >= 500000 and r["points"][-1]["processes"] == 2')" = True ]
  }
  wait_for 20 summed || fail "$(head -c 600 body)"
  equal True "$(json 'r["process"]["pid"] == 0 and r["process"]["running"] and r["process"]["program"] == "serve_program"')"
  equal True "$(json 'r["errors_are_upper_limits"] and all(p["rss"] > 0 and p["missing"] == 0 for p in r["points"])')" "$(cat body)"
  equal 400 "$(fetch '/api/v1/timeline?service=serve_program&focus=(')"
  finish b
  sleep 1.1 # what is within a second is one point
  finish a
  # Of files: the sum of two, to the byte, and with a filter, too.
  kill $serve_pid
  wait $serve_pid || :
  serve a b
  files() { [ "$(curl -s "$url/api/v1/profiles" | grep -o '"kind":"live"' | wc -l)" = 2 ]; }
  wait_for 20 files
  for query in '' '&focus=take_held'; do
    equal 200 "$(fetch "/api/v1/timeline?service=serve_program$query")" "$(head -c 300 body)"
    options=${query:+--focus take_held}
    at_end() { "$heaptap" report --json $options "$1/exit.pb.gz" | /usr/bin/python3 -c 'import json, sys
t = json.load(sys.stdin)["totals"]["inuse_space"]; print(t.get("selected", t["all"]) if sys.argv[1] else t["all"])' "$options"; }
    equal "$(at_end b)" "$(json 'int(r["points"][0]["inuse"])')" "the first point $query: $(cat body)"
    # b had ended when a ended.
    equal "$(at_end a)" "$(json 'int(r["points"][-1]["inuse"])')" "the last point $query: $(cat body)"
    equal 1 "$(json 'r["points"][-1]["processes"]')"
    # a ran while b ended, and no file says what it had then.
    equal 1 "$(json 'r["points"][0]["missing"]')" "$(cat body)"
  done
}

# moment: one that serve keeps of each process of the service
moment() {
  sleep 1.1 # for a second whoever asks gets the last one
  equal 200 "$(fetch /service/serve_program/debug/pprof/heap)" "$(head -c 300 body)"
}

# Of several processes growth is that of their sum: exact at -p 1, like this.
test_the_growth_of_a_service() {
  program a -p 1 -b copy
  program b -p 1 -b copy
  tell a 'hold 100'
  tell b 'hold 100'
  serve
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 2
  equal 200 "$(fetch '/api/v1/growth?service=serve_program')" "$(head -c 300 body)"
  equal '1 False' "$(json 'r["snapshots"], "total" in r' | tr -d '(,)')" 'nothing was known before'
  moment
  tell a 'hold 200'
  tell b 'hold 300'
  moment
  # One that begins now had nothing before.
  program c -p 1 -b copy
  tell a 'hold 400'
  tell c 'hold 50'
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 3
  for _ in 1 2 3; do moment; done
  equal 200 "$(fetch '/api/v1/growth?service=serve_program&focus=take_held')" "$(head -c 300 body)"
  equal 950000 "$(json 'int(r["total"]["difference"])')" "$(cat body)"
  equal 'serve_program 0 3 1' "$(json '" ".join(str(r[k]) for k in ("title", "pid", "profiles", "began_since"))')"
  equal 'rose False' "$(json 'r["total"]["kind"], r["one_process"]' | tr -d "(,')")"
  equal take_held "$(json 'r["rows"][0]["name"]')" "$(cat body)"
  # One that has ended, and left no profile here, is no part of it.
  finish b
  wait_for 20 metric 'heaptap_targets{service_name="serve_program"}' 2
  sleep 1.1
  equal 200 "$(fetch '/api/v1/growth?service=serve_program&focus=take_held')"
  equal 650000 "$(json 'int(r["total"]["difference"])')" "$(cat body)"
  finish a
  finish c
}

# live COUNT: are so many states of processes listed?
live() {
  [ "$(curl -s "$url/api/v1/profiles" | grep -o '"kind":"live"' | wc -l)" = "$1" ]
}

# More processes than there is room for two profiles of each at once: still one time line, filtered or not. Those
# of one process, its start changed, do for the others.
test_many_files_of_a_service() {
  program a -p 1 -b copy
  tell a 'hold 200'
  finish a
  mkdir many
  /usr/bin/python3 - <<'PYTHON'
import gzip, re
profile = gzip.open("a/exit.pb.gz").read()
start = re.search(rb" start=(\d{19})", profile) # nanoseconds since 1970; what follows may look like a digit
for number in range(140):
    other = b" start=" + start[1][:-6] + b"%06d" % number
    with gzip.open(f"many/{number}.pb.gz", "wb", 1) as file:
        file.write(profile.replace(start[0], other))
PYTHON
  own -R many
  serve many
  wait_for 20 live 140
  equal 200 "$(fetch '/api/v1/timeline?service=serve_program&focus=take_held')" "$(head -c 300 body)"
  equal 28000000 "$(json 'int(max(p["inuse"] for p in r["points"]))')" "$(head -c 600 body)"
  # Nobody knows what each had before its end.
  equal 200 "$(fetch '/api/v1/growth?service=serve_program')" "$(head -c 300 body)"
  equal '1 140 False' "$(json '" ".join(str(x) for x in (r["snapshots"], r["profiles"], "total" in r))')"
}

# What Parca's and Alloy's scrapers demand of an answer (their scrape.go and validate.go).
test_scrapers_rules() {
  program a -p 1 -b copy
  tell a 'hold 100'
  serve
  for path in allocs heap 'allocs?seconds=1' delta_heap 'profile?seconds=1'; do
    equal 200 "$(fetch "/debug/pprof/$path" -H 'User-Agent: conprof/v0.28.0')" "$path"
    [ -s body ] || fail "$path is empty"
    case $(header Content-Type) in application/octet-stream*) ;; *) fail "$path has type $(header Content-Type)" ;; esac
    equal 1f8b "$(head -c 2 body | od -An -tx1 | tr -d ' ')" "$path begins with"
    [ -n "$(header Content-Length)" ] || fail "$path: no length"
    [ -z "$(header Content-Encoding)" ] || fail "$path: encoded"
    # Alloy's own differences have room for four types.
    at_most 4 "$("$readers/oracle" body | grep -c '^total')" "types of $path"
  done
  finish a
}
