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

# The page's own script, on a page of nothing but the elements that it asks for.
test_flame_graph_draws_itself() {
  profile_make
  "$heaptap" export -f flamegraph "$profile" -o graph.html
  equal 0 "$(grep -c '@TITLE@\|@DATA@' graph.html)" 'marks left in the page'
  cat >dom.js <<'JS'
const page = require("fs").readFileSync("graph.html", "utf8");
const [, text, script] = page.match(/<script id="data"[^>]*>([^]*?)<\/script>\s*<script>([^]*?)<\/script>/);
class Element {
	constructor(id) { Object.assign(this, { id, style: {}, dataset: {}, boxes: [], on: {}, value: "", checked: false, clientWidth: 1000 });
		this.classList = { add: name => { this.className = name; } }; }
	append(...boxes) { this.boxes.push(...boxes); }
	replaceChildren(fragment) { this.boxes = fragment.boxes; }
	addEventListener(what, run) { this.on[what] = run; }
	click() { this.on.click(); }
}
const elements = { data: { textContent: text } }, get = id => elements[id] ??= new Element(id);
const document = { title: "t", getElementById: get, createElement: () => new Element(), createDocumentFragment: () => new Element() };
const width = name => Math.round(Math.max(0, ...get("graph").boxes.filter(box => box.textContent === name).map(box => parseFloat(box.style.width))));
new Function("document", "location", "history", "addEventListener", "Option", script)(
	document, { hash: "" }, { replaceState() {} }, () => {}, class { constructor(text) { this.text = text; } });
console.log("kinds", get("kind").boxes.map(option => option.text).join(", "));
console.log("all", width("all"), "main", width("main") > 900, "remember_request", width("remember_request") > 100);
get("graph").on.click({ target: get("graph").boxes.find(box => box.textContent === "handle_request") });
console.log("zoomed in", width("handle_request"));
get("search").value = "remember_";
get("search").on.input();
console.log(get("found").textContent.replace(/[0-9.]+/g, "N"));
get("inverted").checked = true;
get("inverted").on.change();
console.log("inverted", get("graph").boxes.filter(box => box.style.top === "18px").some(box => box.textContent === "remember_request"));
JS
  node dom.js >drawn || fail "the page's script fails"
  matches '^kinds inuse \(bytes\), ' drawn
  matches '^all 1000 main true remember_request true$' drawn
  matches '^zoomed in 1000$' drawn
  matches '^found N [KM]iB, N%$' drawn
  matches '^inverted true$' drawn
}

test_flame_graph_in_a_browser() {
  command -v chromium >/dev/null || skip 'no chromium'
  profile_make
  "$heaptap" export -f flamegraph "$profile" -o graph.html
  browse() {
    timeout "$(seconds 60)" chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/chromium" --virtual-time-budget=3000 \
      --window-size=1200,700 --dump-dom "file://$PWD/graph.html$1" 2>/dev/null |
      tr '\n' ' ' | sed 's/<div /\n&/g'
  }
  browse '' >page.html
  matches '<div [^>]*>remember_request</div>' page.html
  # What is narrow has no padding, which would lay it over its neighbours.
  ! sed -n 's/.*width: \([0-9.]*\)px[^"]*".*/\1 &/p' page.html | awk '$1 < 7 && !/padding: 0/ { found = 1 } END { exit !found }' ||
    fail 'a narrow frame is wider than its share'
  browse '#kind=alloc&search=remember_' >page.html
  matches 'id="found">found [0-9.]+ MiB, ' page.html
  matches 'title="remember_request .*class="found"' page.html
  node=$(sed -n 's/.*data-node="\([0-9]*\)"[^>]*>handle_request<.*/\1/p' page.html | head -n 1)
  browse "#kind=alloc&root=$node" >page.html
  grep -o '<div [^>]*>handle_request</div>' page.html | grep -q 'width: 11[0-9][0-9]' || fail 'zoomed in, handle_request is not as wide as the page'
  browse '#kind=inuse&inverted=1' >page.html
  matches 'remember_request' page.html
  ! grep -qE '(src|href)="|https?://' graph.html || fail 'the page refers to something outside'
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
