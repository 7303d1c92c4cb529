# SPDX-License-Identifier: Apache-2.0
# contrib/grafana: every metric of the dashboard is served, and what Alloy and Parca are told to fetch is there.

. "$top/tests/serve.sh"

contrib=$top/contrib/grafana

# dashboard: checks heaptap.json; prints the names of the metrics that it reads
dashboard() {
  /usr/bin/python3 - "$contrib/heaptap.json" <<'PYTHON'
import json, re, sys
board = json.load(open(sys.argv[1]))
variables = {v["name"]: v for v in board["templating"]["list"]}
assert set(variables) == {"datasource", "instance", "service"}, variables
assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
names, ids, places = set(), set(), []
def expressions(panel):
    for target in panel.get("targets", []):
        yield target["datasource"]["uid"], target["expr"]
    if "datasource" in panel:
        yield panel["datasource"]["uid"], ""
known = set(variables) | {"__rate_interval"}
for panel in board["panels"]:
    assert panel["id"] not in ids, panel["id"]
    ids.add(panel["id"])
    at = panel["gridPos"]
    assert at["x"] + at["w"] <= 24, panel["title"]
    for other, there in places:
        assert at["x"] + at["w"] <= there["x"] or there["x"] + there["w"] <= at["x"] or at["y"] + at["h"] <= there["y"] or \
            there["y"] + there["h"] <= at["y"], f'{panel["title"]} lies on {other}'
    places.append((panel["title"], at))
    if panel["type"] == "row":
        continue
    assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
    refs = [target["refId"] for target in panel["targets"]]
    assert refs and len(set(refs)) == len(refs), panel["title"]
    # Grafana's types (npm @grafana/schema) want it.
    if panel["type"] == "timeseries":
        assert isinstance(panel["options"]["legend"]["calcs"], list), panel["title"]
    for uid, text in expressions(panel):
        assert uid == "${datasource}", f'{panel["title"]} reads {uid}'
        assert text.count("(") == text.count(")") and text.count("{") == text.count("}"), text
        assert set(re.findall(r"\$(\w+)", text)) <= known, text
        names |= set(re.findall(r"\bheaptap_\w+", text))
for variable in variables.values():
    names |= set(re.findall(r"\bheaptap_\w+", variable.get("definition", "")))
print("\n".join(sorted(names)))
PYTHON
}

# A session, a loss, a snapshot and a target of push, so that nothing is left out of /metrics.
test_dashboard() {
  local name
  dashboard >names || fail 'the dashboard is not good'
  [ "$(wc -l <names)" -ge 20 ] || fail "only $(wc -l <names) metrics"
  mkdir -p state/heaptap/push/one
  printf 'sent 3\n' >state/heaptap/push/one/counters
  chmod -R a+rX state
  export XDG_STATE_HOME=$PWD/state
  program a -p 1 -b copy
  tell a 'hold 300'
  serve
  equal 200 "$(fetch /debug/pprof/heap)"
  equal 200 "$(fetch /metrics)"
  for name in $(cat names); do
    grep -q "^# TYPE $name " body || fail "the dashboard reads $name, which is not served"
  done
  # And what is counted is read as a counter, what is not is not.
  for name in $(sed -n 's/^# TYPE \([^ ]*\) counter$/\1/p' body); do
    case $name in *_total) ;; *) fail "$name is a counter" ;; esac
    grep -qx "$name" names || fail "the dashboard does not read $name"
    grep -o "[a-z]*($name" "$contrib/heaptap.json" >uses || fail "$name is not in a function"
    ! grep -qvE '^(rate|increase)\(' uses || fail "$name is read as it is: $(cat uses)"
  done
  finish a
}

# has_both PATH: what is in use, and what was allocated since
has_both() {
  local type
  equal 200 "$(fetch "$1")" "$1"
  cp body profile.pb.gz
  for type in alloc_space inuse_space; do
    [ "$(total_of profile.pb.gz $type)" -ge 300000 ] 2>/dev/null || return 1
  done
}

# paths FILE: what it has scraped of each process
paths() {
  grep -oE '/debug/pprof/[a-z_]+' "$1" | sort -u
}

test_what_is_scraped_is_served() {
  local path
  program a -p 1 -b copy
  tell a 'hold 300'
  serve
  fetch /sd >/dev/null
  prefix=$(/usr/bin/python3 -c 'import json; print(json.load(open("body"))[0]["labels"]["__profile_path_prefix__"])')
  for path in $(paths "$contrib/parca.yaml") $(paths "$contrib/config.alloy"); do
    # A difference needs a first one, and a snapshot is shared for a second.
    equal 200 "$(fetch "$prefix$path?client=a")" "$path"
    tell a 'hold 300'
    wait_for 20 has_both "$prefix$path?client=a"
  done
  # The port and the paths of lists, as everywhere else.
  for path in parca.yaml config.alloy README.md; do
    matches '127.0.0.1:7337' "$contrib/$path"
  done
  matches '/sd$|/sd"' "$contrib/parca.yaml"
  matches '/sd"$' "$contrib/config.alloy"
  finish a
}

# Parca's own rules, for where it cannot be run (engines.sh runs it): known keys only, a time limit above the interval, and
# nothing fetched that is not there.
test_parca_rules() {
  /usr/bin/python3 - "$contrib/parca.yaml" <<'PYTHON'
import re, sys, yaml
text = open(sys.argv[1]).read()
for whole in text, re.sub(r"(?m)^( *)#authorization", r"\1authorization", text):
    config = yaml.safe_load(whole)
    assert set(config) == {"object_storage", "scrape_configs"}, set(config)
    job, = config["scrape_configs"]
    assert set(job) <= {"job_name", "params", "scrape_interval", "scrape_timeout", "scheme", "normalized_addresses",
        "profiling_config", "relabel_configs", "http_sd_configs", "authorization", "tls_config"}, set(job)
    seconds = lambda name: int(re.fullmatch(r"(\d+)s", job[name])[1])
    assert seconds("scrape_timeout") > seconds("scrape_interval")
    assert set(job["profiling_config"]) <= {"pprof_config", "path_prefix"}
    profiles = job["profiling_config"]["pprof_config"]
    for name in "block", "goroutine", "mutex", "process_cpu":
        assert profiles[name] == {"enabled": False}, name
    for name, profile in profiles.items():
        assert set(profile) <= {"enabled", "path", "delta", "keep_sample_type", "seconds"}, profile
        for kept in profile.get("keep_sample_type", []):
            assert set(kept) == {"type", "unit"} and kept["type"].split("_")[0] == (
                "alloc" if name.endswith("alloc") else "inuse"), kept
assert "credentials_file" in config["scrape_configs"][0]["authorization"]
assert "credentials_file" in config["scrape_configs"][0]["http_sd_configs"][0]["authorization"]
PYTHON
}
