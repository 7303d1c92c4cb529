# SPDX-License-Identifier: Apache-2.0
# gdb's backtrace at 200 samples of a real program, and the stacks in the profile of the same run: the same addresses.
# timeout: 240

# sampled_under_gdb INPUT COMMAND...: COMMAND waits for its standard input, gdb attaches, stops it 200 times where
# heaptap takes a sample (its stack is all there then) and writes what it sees to ./seen, the program goes on by itself.
sampled_under_gdb() {
  local input=$1
  shift
  command -v gdb >/dev/null || skip 'no gdb'
  cat >see.py <<'PYTHON'
import gdb
for setting in "pagination off", "backtrace past-main on", "backtrace limit unlimited", "confirm off":
    gdb.execute("set " + setting)
gdb.Breakpoint("capture_sample")
open("ready", "w").close()
with open("seen", "w") as seen:
    for stop in range(200):
        gdb.execute("continue", to_string=True)
        frame, pcs = gdb.newest_frame(), []
        while frame:
            if frame.type() != gdb.INLINE_FRAME:
                # As a call's address, and none for the frames of the library that stopped here.
                if "libheaptap" not in (gdb.solib_name(frame.pc()) or ""):
                    pcs.append(frame.pc() - 1)
            frame = frame.older()
        print(*("%x" % pc for pc in pcs), file=seen)
PYTHON
  mkfifo hold
  "$heaptap" record -q -b copy -p 1 --symbols raw "$@" <hold >out 2>err &
  front=$!
  exec 9>hold
  target() { pid=$(child_of $front "$(basename "$1" | cut -c 1-15)") && [ "$pid" ]; }
  wait_for 20 target "$1"
  [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || need_root
  # In read(0): the number of read is 0 on x86-64, 63 on aarch64.
  waits() { grep -qE '^(0|63) 0x0 ' "/proc/$pid/syscall"; }
  wait_for 20 waits
  DEBUGINFOD_URLS= timeout "$(seconds 120)" gdb -p "$pid" -batch -x see.py >gdb.log 2>&1 9>&- &
  debugger=$!
  wait_for 60 test -e ready
  cat "$input" >&9
  exec 9>&-
  wait $debugger || { tail -n 20 gdb.log >&2; fail 'gdb'; }
  wait $front || fail "status $?: $(cat err)"
  profile=$(only heaptap.*.exit.pb.gz)
  profile_check "$profile"
  go tool pprof -raw "$profile" >raw 2>/dev/null
  comment_of "$profile" | grep '^samples: ' >samples
  python3 - <<'PYTHON'
import re
samples, addresses, section = set(), {}, None
for line in open("raw"):
    if line.rstrip() in ("Samples:", "Locations", "Mappings"):
        section = line.rstrip()
    elif section == "Samples:" and (m := re.match(r"^ *[-0-9 ]+: ([0-9 ]+)$", line.rstrip())):
        samples.add(tuple(m[1].split()))
    elif section == "Locations" and (m := re.match(r"^ *(\d+): 0x([0-9a-f]+)", line)):
        addresses[m[1]] = m[2]
stacks = {" ".join(addresses[i] for i in sample) for sample in samples}
seen = [line.rstrip() for line in open("seen")]
wrong = [stack for stack in seen if stack not in stacks]
print(len(seen), "stacks,", len(set(seen)), "different, of", sum(len(s.split()) for s in seen) / len(seen), "frames;",
      len(wrong), "not in the profile")
assert len(seen) == 200 and len(set(seen)) > 20
# A sampler that gets no time loses stacks, and says how many: what is missing beyond these is wrong.
lost = int(re.search(r"(\d+) lost stacks", open("samples").read())[1])
print(lost, "lost stacks")
if len(wrong) > lost:
    mine = min(stacks, key=lambda s: -sum(a == b for a, b in zip(s.split()[::-1], wrong[0].split()[::-1])))
    raise SystemExit("gdb:     %s\nnearest: %s" % (wrong[0], mine))
PYTHON
}

test_sqlite() {
  command -v sqlite3 >/dev/null || skip 'no sqlite3'
  cat >input <<'SQL'
CREATE TABLE a(id INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO a SELECT i, 'name ' || i FROM n;
CREATE INDEX b ON a(name);
SELECT count(*), group_concat(upper(name)) FROM a JOIN (SELECT id AS other FROM a ORDER BY name) ON id = other;
SQL
  sampled_under_gdb input sqlite3 :memory:
}

test_cplusplus_compiler() {
  cc1plus=$(g++ -print-prog-name=cc1plus 2>/dev/null)
  [ -x "$cc1plus" ] || skip 'no cc1plus'
  cat >input <<'CC'
template <class T> struct list { T value; list *next; list(T v, list *n) : value(v), next(n) {} };
template <class T> T sum(list<T> *l) { return l ? l->value + sum(l->next) : T(); }
int f(int n) { list<int> a(n, nullptr), b(n + 1, &a); return sum(&b); }
double g(double n) { list<double> a(n, nullptr), b(n + 1, &a); return sum(&b); }
CC
  sampled_under_gdb input "$cc1plus" -quiet -O2 -o /dev/null -
}
