# SPDX-License-Identifier: Apache-2.0
# heaptap export: each format is read by the program that it is for.
# timeout: 240

profile_make() {
  record -q -p 4K -i 200ms "$targets/leaky" 300000 64 2>log
  profile=$(only heaptap.leaky.*.exit.pb.gz)
  inuse=$(total_of "$profile" inuse_space)
}

test_folded() {
  profile_make
  "$heaptap" export -f folded "$profile" >stacks
  equal "$inuse" "$(awk '{ sum += $NF } END { printf "%d", sum }' stacks)" 'sum of the stacks'
  matches '^[^ ]*main;handle_request;remember_request [0-9]+$' stacks
}

test_json_for_gprof2dot() {
  profile_make
  "$heaptap" export -f json --sort alloc "$profile" -o graph.json
  python3 - "$(total_of "$profile" alloc_space)" <<'PYTHON'
import json, sys
graph = json.load(open("graph.json"))
assert set(graph) == {"version", "costs", "functions", "events"} and graph["version"] == 0
assert graph["costs"] == [{"description": "alloc", "unit": "bytes"}]
names = [function["name"] for function in graph["functions"]]
total = 0
for event in graph["events"]:
    assert set(event) == {"callchain", "cost"} and event["callchain"]
    chain = [names[i] for i in event["callchain"]]
    if "remember_request" in chain:
        assert chain[0] == "remember_request" and chain[1] == "handle_request", chain
    total += event["cost"][0]
assert total == int(sys.argv[1]), total
PYTHON
}

test_csv() {
  profile_make
  "$heaptap" export -f csv "$profile" -o table.csv
  python3 - "$inuse" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open("table.csv", newline="")))
assert sum(int(row["inuse_space_flat"]) for row in rows) == int(sys.argv[1])
row = next(row for row in rows if row["function"] == "remember_request")
assert row["file"].endswith("leaky.c") and float(row["inuse_space_flat_samples"]) > 100
assert 0 < float(row["inuse_space_flat_error"]) < int(row["inuse_space_flat"])
PYTHON
}

test_speedscope() {
  profile_make
  "$heaptap" export -f speedscope "$profile" -o speedscope.json
  python3 - "$inuse" <<'PYTHON'
import json, sys
file = json.load(open("speedscope.json"))
assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
assert [p["name"] for p in file["profiles"]] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
names = [frame["name"] for frame in file["shared"]["frames"]]
for profile in file["profiles"]:
    assert profile["type"] == "sampled" and len(profile["samples"]) == len(profile["weights"])
    assert sum(profile["weights"]) == profile["endValue"] and profile["startValue"] == 0
    for sample in profile["samples"]:
        stack = [names[i] for i in sample]
        assert "remember_request" not in stack or stack[-2:] == ["handle_request", "remember_request"]
assert file["profiles"][file["activeProfileIndex"]]["endValue"] == int(sys.argv[1])
PYTHON
}

test_massif_over_time() {
  command -v ms_print >/dev/null || skip 'no ms_print (Debian: valgrind)'
  profile_make
  "$heaptap" export -f massif heaptap.leaky.*.pb.gz -o massif.out
  snapshots=$(ls heaptap.leaky.*.pb.gz | grep -vc peak)
  ms_print massif.out >printed
  equal "$snapshots" "$(sed -n 's/^Number of snapshots: //p' printed)" 'snapshots that ms_print sees'
  matches "$(printf '%d' "$inuse" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta')" printed
  matches '^.*->.*remember_request' printed
}

test_heaptrack() {
  command -v heaptrack_print >/dev/null || skip 'no heaptrack_print (Debian: heaptrack)'
  profile_make
  "$heaptap" export -f heaptrack "$profile" -o heaptrack.txt
  heaptrack_print -F stacks -f heaptrack.txt >printed 2>heaptrack.log
  matches '^Debuggee command was: leaky' printed
  calls=$(sed -n 's/^calls to allocation functions: \([0-9]*\).*/\1/p' printed)
  equal "$(total_of "$profile" alloc_objects)" "$calls" 'allocations that heaptrack counts'
  heaptrack_print -F stacks --flamegraph-cost-type leaked -f heaptrack.txt >printed 2>&1
  equal "$inuse" "$(awk '{ sum += $NF } END { printf "%d", sum }' stacks)" 'bytes that heaptrack calls leaked'
  matches '^temporary memory allocations: 0 ' printed
}

# The page's own scripts, without a page: what they add up is what the report says, whichever way the tree is read.
test_flame_graph_adds_up() {
  profile_make
  "$heaptap" export -f flamegraph "$profile" -o graph.html
  "$heaptap" report --json --all-frames "$profile" >report.json
  ! grep -qE '<!-- (policy|data) -->|<script src|rel="stylesheet"' graph.html || fail 'marks left in the page'
  ! grep -qE '(src|href)="[^#]|https?://' graph.html || fail 'the page refers to something outside'
  cat >page.js <<'JS'
const fs = require("fs"), html = fs.readFileSync("graph.html", "utf8"), report = JSON.parse(fs.readFileSync("report.json"));
const data = JSON.parse(html.match(/<script id="data"[^>]*>([^]*?)<\/script>/)[1]);
const scripts = [...html.matchAll(/<script>([^]*?)<\/script>/g)].map(match => match[1]).filter(text => /const words =|class Frames|class Graph|class Shape/.test(text));
const { Graph, Shape, words } = new Function("document", scripts.join("\n") + "; return { Graph, Shape, words };")({});
const graph = new Graph(data), near = (a, b, what) => { if (Math.abs(a - b) > 1e-3 * Math.abs(b) + 1) throw new Error(`${what}: ${a}, not ${b}`); };
const types = { inuse: "inuse_space", "inuse-objects": "inuse_objects", alloc: "alloc_space", objects: "alloc_objects" };
graph.showStarts(true); // report has them
console.log("kinds", graph.kinds.map(kind => kind.name).join(" "));
for (const [i, kind] of graph.kinds.entries()) {
	const all = report.totals[types[kind.name]];
	if (!all)
		continue;
	const measure = graph.measure(i), plain = Shape.plain(graph, measure), inverted = Shape.inverted(graph, measure);
	for (const shape of [plain, inverted]) {
		near(shape.value[0], all.all, kind.name);
		near(Math.sqrt(shape.variance[0]), all.all_error, kind.name + " error");
		/* A level is as wide as what is above it, less what ends there; nothing overlaps. */
		for (const level of shape.levels)
			for (let n = 1; n < level.length; n++)
				if (shape.start[level[n]] < shape.start[level[n - 1]] + shape.width[level[n - 1]] - 0.5)
					throw new Error("boxes overlap");
	}
	const { flat, cum } = graph.functions(measure);
	for (const row of report.functions) {
		const frame = graph.names.indexOf(row.name), of = row[types[kind.name]];
		near(cum.value[frame], of.cum, row.name + " cum " + kind.name);
		near(Math.sqrt(cum.variance[frame]), of.cum_error, row.name + " cum error " + kind.name);
		for (const half of [Shape.callers(graph, measure, frame), Shape.callees(graph, measure, frame)])
			near(half.value[0], of.cum, row.name + " sandwich " + kind.name);
		const found = Shape.plain(graph, measure).found(graph.match("^" + row.name.replace(/[^\w]/g, "\\$&") + "$").frames);
		near(found.value, of.cum, row.name + " found");
	}
	near(flat.value.reduce((a, b) => a + b, 0), all.all, "sum of flat");
}
const leaf = graph.names.indexOf("remember_request"), shape = Shape.inverted(graph, graph.measure(0));
console.log("inverted", [...shape.levels[1]].some(node => shape.frame[node] === leaf));
console.log("only", Shape.plain(graph, graph.measure(0, graph.select({ only: "remember_", thread: -1, age: -1 }))).value[0] > 0,
	"without", Shape.plain(graph, graph.measure(0, graph.select({ without: "remember_", thread: -1, age: -1 }))).value[0] < graph.kinds[0].all.value);
console.log(words.bytes(1536), words.doubt(100, 20, 100, true), words.doubt(100, 2, 100, true), words.doubt(100, 2, 0, true));
JS
  node page.js >added || fail "the page's scripts fail"
  matches '^kinds inuse inuse-objects alloc objects freed$' added
  matches '^inverted true$' added
  matches '^only true without true$' added
  matches '^1.5 KiB ±10% 2 samples exact$' added
}

test_flame_graph_has_threads_and_ages() {
  record -q -p 4K --labels thread,age -o x.pb.gz "$targets/leaky" 30000 64 2>log
  "$heaptap" export -f flamegraph x.pb.gz -o graph.html
  python3 - "$(total_of x.pb.gz inuse_space)" <<'PYTHON'
import json, re, sys
data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', open("graph.html").read(), re.S)[1])
assert data["threads"][0] == data["ages"][0] == "" and any("leaky" in name for name in data["threads"]), data["threads"]
assert len(data["ages"]) > 1, data["ages"]
kind = data["kinds"][0]
assert kind["name"] == "inuse" and sum(kind["value"]) == int(sys.argv[1]) == kind["all"]["value"]
rows = data["rows"]
assert len({len(rows[key]) for key in ("node", "head", "thread", "age")} | {len(kind["value"]), len(kind["error"])}) == 1
# What is in use has an age.
assert all(rows["age"][i] for i, value in enumerate(kind["value"]) if value)
PYTHON
}

# In a real browser, driven as a user would: keyboard, pointer, search, views.
test_flame_graph_in_a_browser() {
  command -v chromium >/dev/null || skip 'no chromium'
  profile_make
  "$heaptap" export -f flamegraph "$profile" -o graph.html
  python3 -B "$top/tests/page_static.py" "$PWD/graph.html" || fail 'the page in a browser'
}

test_flame_graph_in_firefox() {
  command -v firefox-esr >/dev/null || skip 'no firefox-esr'
  profile_make
  "$heaptap" export -f flamegraph "$profile" -o graph.html
  HEAPTAP_BROWSER=firefox python3 -B "$top/tests/page_static.py" "$PWD/graph.html" || fail 'the page in a browser'
}

test_anonymous() {
  profile_make
  for format in folded flamegraph speedscope json csv massif heaptrack; do
    "$heaptap" export -f $format --anonymize "$profile" >secret.$format
    ! grep -qE 'remember|handle_|leaky|\.c\b' secret.$format || fail "$format: names are still there"
  done
  "$heaptap" export -f folded --anonymize "$profile" | cmp - secret.folded
  "$heaptap" merge --anonymize -o secret.pb.gz "$profile"
  profile_check secret.pb.gz
  ! gunzip -c secret.pb.gz | grep -qaE 'remember|handle_|leaky|/targets/' || fail 'merge: names are still there'
  equal "$inuse" "$(total_of secret.pb.gz inuse_space)" 'total of the anonymous profile'
}

test_formats_are_named_when_wrong() {
  equal 2 "$(status_of "$heaptap" export -f svg x)"
  matches 'folded, flamegraph, speedscope, json, csv, massif or heaptrack' err
  equal 2 "$(status_of "$heaptap" export "$top/tests/readers/go_heap.pb.gz")"
  matches '--format is missing; allowed: folded' err
  equal 1 "$(status_of "$heaptap" export -f massif --sort objects "$top/tests/readers/go_heap.pb.gz")"
}
