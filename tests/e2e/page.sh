# SPDX-License-Identifier: Apache-2.0
# `heaptap serve`: the page in a browser, and the JSON behind it beside what the commands say of the same profiles.
# timeout: 180

. "$HEAPTAP_TOP/tests/serve.sh"
cp "$HEAPTAP_BUILD/tests/targets/leaky" bin/

# Four snapshots of a heap that grows, in ./a, and the profile of its end.
growing() {
  program a -p 4K -b copy --labels thread,age
  for round in 1 2 3 4; do
    tell a 'hold 5000'
    "${user[@]}" "$heaptap" snapshot "$(cat a.pid)" >>snapshots
    wait_for 20 test -s a/000$round.pb.gz
  done
  pid=$(cat a.pid)
  finish a
  serve "$PWD/a"
}

# id_of FILE: the id of a profile that is served, by its time
id_of() {
  fetch /api/v1/profiles >/dev/null
  python3 - "$1" <<'PYTHON'
import json, subprocess, sys, os
report = json.loads(subprocess.run([os.environ["HEAPTAP_PROGRAMS"] + "/heaptap", "report", "--json", sys.argv[1]], capture_output=True, check=True).stdout)
print(next(p["id"] for p in json.load(open("body"))["profiles"] if p["time_ns"] == report["time_ns"] and p["kind"] != "peak"))
PYTHON
}

test_answers_are_those_of_the_commands() {
  growing
  base=$(id_of a/0001.pb.gz) new=$(id_of a/0004.pb.gz)
  same='all-frames=1&full-names=1'
  equal 200 "$(fetch "/api/v1/top?id=$new&$same")" && mv body top
  equal 200 "$(fetch "/api/v1/tree?id=$new&$same&sort=alloc")" && mv body tree
  equal 200 "$(fetch "/api/v1/leaks?id=$new&full-names=1&focus=take_held")" && mv body leaks
  equal 200 "$(fetch "/api/v1/diff?base=$base&new=$new&$same")" && mv body diff
  equal 200 "$(fetch "/api/v1/growth?pid=$pid")" && mv body growth
  equal 200 "$(fetch "/api/v1/timeline?pid=$pid")" && mv body timeline
  equal 200 "$(fetch "/api/v1/top?id=$new&by=thread")" && mv body threads
  "$heaptap" report --json --sort inuse a/0004.pb.gz >top.report
  "$heaptap" report --json --tree --sort alloc a/0004.pb.gz >tree.report
  "$heaptap" report --json --leaks --focus take_held a/0004.pb.gz >leaks.report
  "$heaptap" diff --json a/0001.pb.gz a/0004.pb.gz >diff.report
  "$heaptap" report --json --by thread a/0004.pb.gz >threads.report
  "$heaptap" report --json a >folder.report
  python3 - <<'PYTHON'
import json
load = lambda name: json.load(open(name))
top, wanted = load("top"), load("top.report")
of = {row["name"]: row["inuse_space"] for row in wanted["functions"]}
assert top["rows"] and top["type"] == "inuse"
for row in top["rows"]:
    for key in "flat", "cum":
        assert row[key] == of[row["name"]][key], row
    assert row["error"] == of[row["name"]]["flat_error"] and row["cum_error"] == of[row["name"]]["cum_error"], row
assert top["total"]["value"] == wanted["totals"]["inuse_space"]["all"] and top["total"]["error"] == wanted["totals"]["inuse_space"]["all_error"]
tree, wanted = load("tree"), load("tree.report")["tree"]
assert [(r["name"], r["parent"], r["flat"], r["cum"], r["error"]) for r in tree["rows"]] == \
       [(r["name"], r["parent"], r["self"], r["value"], r["error"]) for r in wanted]
leaks, wanted = load("leaks"), load("leaks.report")
assert leaks["total"]["value"] == wanted["leaked"]["bytes"] > 0
assert [(r["flat"], r["objects"], len(r["stack"])) for r in leaks["rows"]] == [(r["bytes"], r["objects"], len(r["stack"])) for r in wanted["leaks"]]
diff, wanted = load("diff"), load("diff.report")
assert diff["same_process"] is wanted["same_process"] is True and diff["threshold"] == wanted["threshold"]
assert diff["total"]["change"] == wanted["total"]["change"] and diff["total"]["error"] == wanted["total"]["error"]
for row, of in zip(diff["rows"], wanted["functions"]):
    assert (row["name"], row["flat"], row["error"], row["beyond_chance"]) == \
           (of["name"], of["flat"]["change"], of["flat"]["error"], of["flat"]["beyond_chance"]), (row, of)
growth = load("growth")
assert growth["total"]["kind"] == "grows", growth["total"]
assert growth["total"]["difference"] > 10e6 and growth["total"]["difference_error"] > 0, growth["total"]
assert any(frame["name"] == "take_held" for frame in growth["rows"][0]["stack"])
points = load("timeline")["points"]
assert len(points) >= 4 and all(p["error"] > 0 and p["id"] for p in points), points
inuse = [p["inuse"] for p in points][:4] # at its end it frees some
assert inuse == sorted(inuse), points
assert growth["answer"]["grows"] == load("folder.report")["answer"]["grows"] and growth["answer"]["grows_function"] == "take_held", growth["answer"]
held = load("top.report")["answer"]["held"]
assert "take_held" in held and all(view["answer"]["held"] == held for view in (load("top"), load("tree"))), (held, load("top")["answer"])
threads, wanted = load("threads"), load("threads.report")
assert {r["name"]: r["flat"] for r in threads["rows"]} == {r["name"]: r["inuse_space"]["flat"] for r in wanted["functions"]}
PYTHON
  # What is wrong is named, and what is allowed; nothing is guessed.
  equal 400 "$(fetch "/api/v1/top?id=$new&sort=size")" && matches '"error":"sort: .size. is not valid; allowed: inuse' body
  equal 400 "$(fetch "/api/v1/top?id=$new&focus=(")" && matches '"error":"focus: ' body
  equal 404 "$(fetch '/api/v1/top?id=f-1')"
  equal 400 "$(fetch "/api/v1/diff?new=$new")"
}

# A file with filters is what report shows with the same ones; without, it is the file.
test_a_part_of_a_profile_as_a_file() {
  growing
  local id filter
  id=$(id_of a/0004.pb.gz)
  equal 200 "$(fetch "/api/v1/profile?id=$id")"
  cmp body a/0004.pb.gz || fail 'not the file'
  for filter in focus=take_held ignore=take_held hide=take_held module=serve_program thread=. size=64:2K age=0s:1m \
    'focus=take_held|main hide=^main$ size=1:'; do
    set --
    query=
    for part in $filter; do
      set -- "$@" "--${part%%=*}" "${part#*=}"
      query+="&${part//|/%7C}"
    done
    equal 200 "$(fetch "/api/v1/profile?id=$id$query")" "$filter: $(head -c 300 body)"
    cp body part.pb.gz
    profile_check part.pb.gz
    "$heaptap" report --json --sort inuse "$@" a/0004.pb.gz >whole.json
    "$heaptap" report --json --sort inuse part.pb.gz >part.json
    python3 - "$filter" <<'PYTHON' || fail "$filter"
import json, sys
whole, part = json.load(open("whole.json")), json.load(open("part.json"))
rows = lambda report: {f["name"]: (f["inuse_space"]["flat"], f["inuse_space"]["cum"]) for f in report["functions"]}
assert rows(part) == rows(whole), (rows(part), rows(whole))
assert sum(flat for flat, _ in rows(part).values()) == part["totals"]["inuse_space"]["all"]
assert sys.argv[1] in ("ignore=take_held",) or rows(part), "nothing is selected"
PYTHON
    comment_of part.pb.gz >comments
    matches "^merged: what these filters select: .*${filter%%=*}=" comments
  done
  equal 400 "$(fetch "/api/v1/profile?id=$id&focus=(")" && matches '"error":"focus: ' body
  equal 400 "$(fetch "/api/v1/profile?id=$id&size=x")" && matches '"error":"size: ' body
}

# Every answer has what the document says, and nothing that it does not say.
test_openapi_describes_the_answers() {
  growing
  fetch /api/v1/openapi.json >/dev/null && mv body openapi.json
  id=$(id_of a/0004.pb.gz) first=$(id_of a/0001.pb.gz)
  for view in processes profiles "timeline?pid=$pid" "top?id=$id" "tree?id=$id" "leaks?id=$id" "growth?pid=$pid" "diff?base=$first&new=$id"; do
    equal 200 "$(fetch "/api/v1/$view")" "$view"
    python3 - "/${view%%\?*}" <<'PYTHON'
import json, sys
document, answer = json.load(open("openapi.json")), json.load(open("body"))
TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list, "object": dict}

def check(value, schema, where):
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if value is None:
        assert schema.get("nullable"), where + " is null"
        return
    assert isinstance(value, TYPES[schema["type"]]) and (schema["type"] == "boolean") == isinstance(value, bool), (where, value, schema)
    if "enum" in schema:
        assert value in schema["enum"], (where, value)
    if schema["type"] == "object":
        assert set(schema.get("required", ())) <= set(value), (where, sorted(value))
        for key, inner in value.items():
            assert key in schema["properties"], f"{where}/{key} is not in the document"
            check(inner, schema["properties"][key], f"{where}/{key}")
    elif schema["type"] == "array":
        for inner in value:
            check(inner, schema["items"], where + "[]")

path = document["paths"][sys.argv[1]]["get"]
names = [parameter.get("$ref", parameter.get("name")) for parameter in path["parameters"]]
assert len(set(names)) == len(names), f"a parameter is there twice: {names}"
check(answer, path["responses"]["200"]["content"]["application/json"]["schema"], sys.argv[1])
for parameter in path["parameters"]:
    assert parameter["$ref"].rsplit("/", 1)[1] in document["components"]["parameters"]
PYTHON
  done
}

# Every file of the page is there, none of them needs a token, and the policy forbids whatever is not among them.
test_the_files_of_the_page() {
  record -q -p 4K -o x.pb.gz "$targets/leaky" 3000 64
  own x.pb.gz
  (umask 077 && echo sesame-open-0123456789 >token && own token)
  serve --token-file token x.pb.gz
  equal 200 "$(fetch /)"
  matches "default-src 'none'; script-src 'self'" head
  ! grep -qE "<script>|<style|style=|onclick=" body || fail 'the page has script or style in it'
  for file in $(grep -oE '(src|href)="[^"#]+"' body | cut -d'"' -f2); do
    equal 200 "$(fetch "/$file")" "$file"
    [ -s body ] || fail "$file is empty"
  done
  equal 401 "$(fetch /api/v1/processes)"
  equal 200 "$(fetch /api/v1/processes -H 'Authorization: Bearer sesame-open-0123456789')"
}

test_the_page_in_a_browser() {
  command -v chromium >/dev/null || skip 'no chromium'
  growing
  python3 -B "$top/tests/page_served.py" "$url/" "$pid" || fail 'the page'
  kill "$serve_pid" && wait "$serve_pid" || :
  (umask 077 && echo sesame-open-0123456789 >token && own token)
  serve --token-file token "$PWD/a"
  python3 -B "$top/tests/page_served.py" "$url/" "$pid" sesame-open-0123456789 || fail 'the page with a token'
}

# The same steps, and what they find, in the other browser.
test_the_page_in_firefox() {
  command -v firefox-esr >/dev/null || skip 'no firefox-esr'
  growing
  HEAPTAP_BROWSER=firefox python3 -B "$top/tests/page_served.py" "$url/" "$pid" || fail 'the page'
}

# A sum, another tool's profile, two processes that had one pid: each can be opened from the list.
test_processes_without_a_pid_of_their_own() {
  command -v chromium >/dev/null || skip 'no chromium'
  record -q -p 4K -o one.pb.gz "$targets/leaky" 3000 64
  record -q -p 4K -o two.pb.gz "$targets/leaky" 2000 64
  "$heaptap" merge -o sum.pb.gz one.pb.gz two.pb.gz
  rm two.pb.gz
  own one.pb.gz sum.pb.gz
  serve one.pb.gz sum.pb.gz
  python3 -B "$top/tests/page_places.py" "$url/" || fail 'the page'
}

# Two processes of a program, each with four profiles, all at about the same times.
service() {
  mkdir -p -m 777 all
  for name in a b; do
    program $name -p 4K -b copy
  done
  for round in 1 2 3 4; do
    for name in a b; do
      tell $name 'hold 2000'
      "${user[@]}" "$heaptap" snapshot "$(cat $name.pid)" >>snapshots
      wait_for 20 test -s $name/000$round.pb.gz
    done
    sleep 1.2 # what is within a second is one moment
  done
  for name in a b; do
    tell $name 'hold 3000'
    finish $name
    for file in $name/*.pb.gz; do
      mv "$file" "all/$name-${file##*/}"
    done
  done
  serve "$PWD/all"
}

test_a_service_in_a_browser() {
  command -v chromium >/dev/null || skip 'no chromium'
  service
  equal 200 "$(fetch "/api/v1/timeline?service=serve_program")"
  python3 - <<'PYTHON' >moments
import json
points = json.load(open("body"))["points"]
ids = [point["id"] for point in points if point["id"]]
assert len(ids) >= 3 and all(id == f"at-{point['time_ns']}" for id, point in zip(ids, (p for p in points if p["id"]))), points
print(ids[0], ids[-1])
PYTHON
  read -r first last <moments
  equal 200 "$(fetch "/api/v1/diff?service=serve_program&base=$first&new=$last")"
  python3 -c 'import json; d = json.load(open("body")); assert d["same_process"] is True and d["total"]["change"] > 8e6, d["total"]'
  equal 404 "$(fetch "/api/v1/diff?service=serve_program&base=$first")"
  equal 404 "$(fetch "/api/v1/top?service=serve_program&id=at-1")"
  python3 -B "$top/tests/page_service.py" "$url/" serve_program || fail 'the page'
  # Beside the columns in which growth is looked for the peaks are still the peaks.
  "$heaptap" report --session all all | sed -n 's/^  at peaks *//p' >peaks
  "$heaptap" report --session all --state peak all | sed -n 's/^  at peak *//p' >asked
  [ -s peaks ] || fail 'no peaks'
  cmp peaks asked || fail 'the peaks are others'
}

# A program that has freed all before it ends: the page shows the peak, served and as a file.
test_a_clean_exit_shows_its_peak() {
  command -v chromium >/dev/null || skip 'no chromium'
  program a -p 4K -b copy
  tell a 'hold 5000' drop
  finish a
  serve "$PWD/a"
  python3 -B "$top/tests/page_peak.py" "$url/#pid=$(cat a.pid)" || fail 'the page'
  "$heaptap" export -f flamegraph a -o graph.html
  python3 -B "$top/tests/page_peak.py" "file://$PWD/graph.html" || fail 'the page as a file'
}

# Of several processes the page is of no single one.
test_a_sum_has_the_title_of_a_sum() {
  record -q -p 4K -o one.pb.gz "$targets/leaky" 3000 64
  record -q -p 4K -o two.pb.gz "$targets/leaky" 2000 64
  "$heaptap" export -f flamegraph --session all one.pb.gz two.pb.gz -o graph.html
  grep -qF '<title>2 processes: leaky (2)</title>' graph.html || fail 'the title'
  python3 - <<'PYTHON'
import json, re
data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', open("graph.html").read(), re.S)[1])
assert data["title"] == "2 processes: leaky (2)" and data["about"]["pid"] == 0 and data["about"]["cause"] == "", data["about"]
PYTHON
}

test_an_empty_page_says_what_to_type() {
  command -v chromium >/dev/null || skip 'no chromium'
  serve
  python3 -B "$top/tests/page_empty.py" "$url/" 'heaptap record ./server' || fail 'the page'
  kill "$serve_pid" && wait "$serve_pid" || :
  mkdir -m 755 nothing
  serve "$PWD/nothing"
  python3 -B "$top/tests/page_empty.py" "$url/" 'heaptap record -o FOLDER/ ./server' || fail 'the page of a folder'
}

# What was not sampled is no measured zero, and no blank box.
test_nothing_sampled_yet() {
  command -v chromium >/dev/null || skip 'no chromium'
  program a -p 8M -b copy
  serve
  python3 -B "$top/tests/page_says.py" "$url/#pid=$(cat a.pid)" '#nothing' 'Nothing sampled yet: less than 24.0 MiB (95 %).' \
    '#answer .held' 'No allocation was sampled.' '#tab-leaks' 'In use, by stack' || fail 'the page'
  finish a
}
