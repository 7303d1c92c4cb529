# SPDX-License-Identifier: Apache-2.0
# `heaptap push` into the real Pyroscope and the real Parca (make engines), read back by their own queries.

export XDG_STATE_HOME=$PWD/state

children=()

# need ENGINE: its path in $engine
need() {
  engine=${HEAPTAP_ENGINES:-none}/$1
  [ -x "$engine" ] || skip "no $1: make engines builds it, where Go's module proxy can be reached"
}

free_port() {
  /usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

is_ready() {
  curl -sf -o ready "$1"
}

# rendered TYPE: the total of all that Pyroscope has of the service
rendered() {
  curl -sfG "http://127.0.0.1:$port/pyroscope/render" --data-urlencode \
    "query=memory:$1:space:bytes{service_name=\"snapshot_api\"${labels:-}}" -d from=now-1h -d until=now -d format=json >render.json
  /usr/bin/python3 -c 'import json; print(json.load(open("render.json"))["flamebearer"]["numTicks"])'
}

rendered_is() {
  [ "$(rendered "$1" 2>/dev/null)" = "$2" ]
}

test_pyroscope() {
  need pyroscope
  local grpc gossip raft type
  snapshots >files
  port=$(free_port) grpc=$(free_port) gossip=$(free_port) raft=$(free_port)
  # All of its parts on loopback, and at ports of its own: two of these may run at once.
  "$engine" -target=all -architecture.storage=v2 -auth.multitenancy-enabled=false -usage-stats.enabled=false \
    -self-profiling.disable-push=true -tracing.enabled=false \
    -server.http-listen-address=127.0.0.1 -server.http-listen-port="$port" \
    -server.grpc-listen-address=127.0.0.1 -server.grpc-listen-port="$grpc" \
    -memberlist.bind-addr=127.0.0.1 -memberlist.bind-port="$gossip" \
    -metastore.raft.bind-address=127.0.0.1:"$raft" -metastore.raft.advertise-address=127.0.0.1:"$raft" \
    -metastore.raft.server-id=127.0.0.1:"$raft" -metastore.address=127.0.0.1:"$grpc" -query-backend.address=127.0.0.1:"$grpc" \
    -distributor.ring.instance-addr=127.0.0.1 -query-frontend.instance-addr=127.0.0.1 \
    -query-scheduler.ring.instance-addr=127.0.0.1 -segment-writer.lifecycler.addr=127.0.0.1 >engine.log 2>&1 &
  trap "kill $! 2>/dev/null || :" EXIT
  wait_for 120 is_ready "http://127.0.0.1:$port/ready"
  "$heaptap" push --to "pyroscope+http://127.0.0.1:$port" --label env=ci --timeout 120s p.*.pb.gz 2>err ||
    { tail -n 5 engine.log >&2; fail "$(cat err)"; }
  for type in alloc_space:bytes alloc_objects:count; do
    wait_for 30 rendered_is "$type" "$(total_of p.exit.pb.gz "${type%:*}")"
  done
  for type in inuse_space:bytes inuse_objects:count; do
    wait_for 30 rendered_is "$type" "$(sums "${type%:*}" p.*.pb.gz)"
  done
  # Its labels, and those of the push. (LabelNames of 2.0.1 has no names yet just after a push.)
  labels=',env="ci",pyroscope_spy="heaptap"'
  wait_for 30 rendered_is inuse_space:bytes "$(sums inuse_space p.*.pb.gz)"
  labels=',env="other"'
  equal 0 "$(rendered inuse_space:bytes)" 'of another label'
  labels=
  # The flame graph has the program's own functions.
  rendered inuse_space:bytes >ticks
  grep -q take_held render.json || fail 'no take_held in the flame graph'
}

# parca: starts it with ./parca.yaml, at $port. It ends with the test.
parca() {
  port=$(free_port)
  "$engine" --config-path=parca.yaml --http-address="127.0.0.1:$port" --debuginfod-upstream-servers= \
    --storage-active-memory=67108864 >engine.log 2>&1 &
  children+=($!)
  trap 'kill "${children[@]}" 2>/dev/null || :' EXIT
  wait_for 60 is_ready "http://127.0.0.1:$port/ready"
}

test_parca() {
  need parca
  snapshots >files
  printf 'object_storage:\n  bucket:\n    type: FILESYSTEM\n    config:\n      directory: ./data\nscrape_configs: []\n' >parca.yaml
  parca
  "$heaptap" push --to "parca+http://127.0.0.1:$port" --label env=ci --timeout 120s p.*.pb.gz 2>err ||
    { tail -n 5 engine.log >&2; fail "$(cat err)"; }
  curl -sf "http://127.0.0.1:$port/api/profiles/labels/service_name/values" >values
  grep -q snapshot_api values || fail "no service: $(cat values)"
  /usr/bin/python3 - "$port" "$(total_of p.exit.pb.gz alloc_space)" "$(total_of p.exit.pb.gz inuse_space)" <<'PYTHON'
import json, sys, time, urllib.parse, urllib.request
port, allocated, in_use = sys.argv[1], *map(int, sys.argv[2:])
def ask(path, **query):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/profiles/{path}?{urllib.parse.urlencode(query)}") as answer:
        return json.load(answer)
def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
types = [f'{t["name"]}:{t["sampleType"]}:{t["sampleUnit"]}:{t["periodType"]}:{t["periodUnit"]}' + (
    ":delta" if t.get("delta") else "") for t in ask("types")["types"]]
for want in "memory:inuse_space:bytes:space:bytes", "memory:alloc_space:bytes:space:bytes:delta":
    assert want in types, f"{want} is not in {types}"
def values(type):
    found = ask("query_range", query=type + '{service_name="snapshot_api"}', start=stamp(time.time() - 3600),
        end=stamp(time.time() + 60), limit=0)
    return [int(sample["value"]) for series in found["series"] for sample in series["samples"]]
assert in_use in values(types[types.index("memory:inuse_space:bytes:space:bytes")]), values(types[0])
got = sum(values("memory:alloc_space:bytes:space:bytes:delta"))
assert got == allocated, f"allocated: wanted {allocated}, got {got}"
PYTHON
}

# scraped: what Parca says of its targets: "good" if each profile that is enabled was fetched, and which
scraped() {
  curl -sf "http://127.0.0.1:$port/api/targets" >targets.json && /usr/bin/python3 - <<'PYTHON'
import json
found = [t for group in json.load(open("targets.json"))["targets"].values() for t in group["targets"]]
bad = [t.get("lastError") or t["health"] for t in found if t["health"] != "HEALTH_GOOD" or t.get("lastError")]
print("good" if found and not bad else f"bad: {bad}", *sorted(t["url"].split("/debug")[1].split("?")[0] for t in found))
PYTHON
}

scraped_is() {
  [ "$(scraped 2>/dev/null)" = "$1" ]
}

# Parca takes contrib/grafana/parca.yaml, finds the process by /sd with the token, and fetches both of its profiles.
test_parca_scrapes_serve() {
  need parca
  . "$top/tests/serve.sh"
  program a -p 1 -b copy
  tell a 'hold 300'
  echo 0123456789abcdef0123 >token
  own token
  chmod 600 token
  serve --token-file token
  sed -E "s,127.0.0.1:7337,${url#http://},; s,^( *)#authorization,\1authorization,; s,/etc/heaptap/token,$PWD/token,; \
    s,(scrape|refresh)_interval: [0-9]+s,\1_interval: 2s,; s,scrape_timeout: [0-9]+s,scrape_timeout: 9s," \
    "$top/contrib/grafana/parca.yaml" >parca.yaml
  parca
  wait_for 60 scraped_is 'good /pprof/delta_heap /pprof/heap' || fail "$(scraped)"
  for type in memory:inuse_space memory_alloc:alloc_space; do
    wait_for 30 has_type "$type"
  done
  curl -sf "http://127.0.0.1:$port/api/profiles/labels/service_name/values" >values
  grep -q serve_program values || fail "no service: $(cat values)"
}

# has_type NAME:SAMPLE_TYPE: of a program that allocates
has_type() {
  tell a 'hold 100'
  curl -sf "http://127.0.0.1:$port/api/profiles/types" >types.json && /usr/bin/python3 - "$1" 2>/dev/null <<'PYTHON'
import json, sys
name, sample = sys.argv[1].split(":")
assert any(t["name"] == name and t["sampleType"] == sample for t in json.load(open("types.json"))["types"])
PYTHON
}
