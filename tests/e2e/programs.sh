# SPDX-License-Identifier: Apache-2.0
# Real programs from Debian under real work: every reader opens the profile, and stacks reach the program's start.
# timeout: 240

# reaches_start PROFILE [PERCENT]: share of bytes in stacks whose outermost frame is the program's or a thread's start.
# In stripped files these have no names: "libc.so.6+0x1098eb" at the very end is clone3, and what calls
# __libc_start_main is _start.
reaches_start() {
  profile_check "$1"
  share=$(go tool pprof -traces -unit=B -sample_index=alloc_space "$1" 2>/dev/null |
    python3 "$top/tests/roots.py" '^(main|_start|start_thread|thread_start|__clone3?|clone3?|libc\.so\.6\+0x[0-9a-f]+|\[lost stack\]) |< __libc_start_main')
  echo "$1: $share % of bytes reach the start; $("$readers/oracle" "$1" | head -n 1)"
  comment_of "$1" | grep -iE 'lost|sample' || true
  at_least "${2:-99}" "$share" "$1: share of bytes in stacks that reach the start, or are lost"
  # What the ring has no room for on a busy machine is counted, and says nothing about the unwinder.
  at_least 50 "$(awk -v lost="$(share_of '^\[lost stack\]$' "$1")" 'BEGIN { print 100 - lost }')" "$1: share of stacks that are not lost"
}

need() {
  command -v "$1" >/dev/null || skip "no $1"
}

test_redis_under_benchmark() {
  need redis-server
  record -p 64K redis-server --port 0 --unixsocket "$PWD/socket" --save '' --appendonly no >server.log 2>&1 &
  front=$!
  redis_answers() { [ "$(redis-cli -s socket ping 2>/dev/null)" = PONG ]; }
  wait_for 30 redis_answers
  redis-benchmark -s socket -n 60000 -r 20000 -d 200 -q -t set,lpush,hset,zadd >benchmark.log 2>&1
  redis-cli -s socket shutdown nosave || true
  wait $front
  profile=$(only heaptap.redis-*.exit.pb.gz)
  reaches_start "$profile"
  pprof_top "$profile" -sample_index=inuse_space >top
  matches '^File: redis-server$' top # Debian's is a link to redis-check-rdb
  matches 'zmalloc|createStringObject|sdsnewlen|dictAdd|lpCreate|quicklist' top
}

test_sqlite_builds_and_joins() {
  need sqlite3
  cat >script.sql <<'SQL'
CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT, value INTEGER);
CREATE TABLE b(id INTEGER PRIMARY KEY, a_id INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
  INSERT INTO a SELECT i, 'name ' || (i * 7919 % 60000), i % 1000 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
  INSERT INTO b SELECT i, i % 60000, 'a note of some length ' || i FROM n;
CREATE INDEX a_name ON a(name);
CREATE INDEX b_a ON b(a_id);
SELECT count(*), sum(length(note)) FROM a JOIN b ON b.a_id = a.id WHERE a.value < 500;
SELECT value, count(*) FROM a JOIN b ON b.a_id = a.id GROUP BY value ORDER BY 2 DESC LIMIT 3;
SQL
  record -q -p 16K sqlite3 :memory: <script.sql >out
  sqlite3 :memory: <script.sql | cmp - out
  profile=$(only heaptap.sqlite3.*.exit.pb.gz)
  reaches_start "$profile"
  pprof_top "$profile" -sample_index=alloc_space >top
  matches 'sqlite3' top
}

test_gcc_compiles_a_large_file() {
  need gcc
  python3 - >large.c <<'PYTHON'
for i in range(700):
    print(f"""
struct s{i} {{ int a[{i % 7 + 1}]; long b; double c; }};
long f{i}(struct s{i} *s, long n)
{{
	long sum = 0;
	for (long k = 0; k < n; k++) {{
		switch ((k * {i + 3}) % 5) {{
		case 0: sum += s[k].b * {i}; break;
		case 1: sum -= s[k].a[0] << 2; break;
		case 2: s[k].c *= sum + {i}.5; break;
		default: sum ^= k;
		}}
	}}
	return sum{f' + f{i - 1}((struct s{i - 1} *)s, n - 1)' if i else ''};
}}""")
PYTHON
  record -q gcc -O2 -c large.c -o large.o
  [ -s large.o ] || fail 'nothing was compiled'
  # cc1 is the child that does the work; gcc itself is COMMAND, which always has a profile.
  reaches_start "$(only heaptap.cc1.*.exit.pb.gz)"
  profile_check "$(only heaptap.*gcc*.exit.pb.gz)"
}

test_python_builds_dicts() {
  record -q -p 64K python3 -c "
table = {}
for i in range(400000):
    table['key %d' % i] = {'value': [i, str(i)], 'text': 'x' * (i % 100)}
print(len(table), sum(len(entry['text']) for entry in table.values()))" >out
  equal '400000 19800000' "$(cat out)"
  reaches_start "$(only heaptap.python3*.exit.pb.gz)"
}

test_threaded_templates() {
  record -q -p 32K "$targets/templates" 100000 >out
  profile=$(only heaptap.templates.*.exit.pb.gz)
  reaches_start "$profile"
  pprof_top "$profile" -cum -sample_index=alloc_space >top
  matches 'shop::(Stock|fill_stock|sort_words)' top
}

test_node_parses_json() {
  need node
  record -q -p 64K node -e "
let list = [];
for (let i = 0; i < 60000; i++) list.push({id: i, name: 'name ' + i, tags: ['a', 'b', String(i)]});
let total = 0;
for (let i = 0; i < 5; i++) total += JSON.parse(JSON.stringify(list)).length;
for (let i = 0; i < 200; i++) total += Buffer.alloc(100000).length;
console.log(total);" >out
  equal 20300000 "$(cat out)"
  # Frames of generated code have no unwind tables; what is asked for is less.
  reaches_start "$(only heaptap.node*.exit.pb.gz)" 90
}
