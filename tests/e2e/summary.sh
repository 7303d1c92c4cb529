# SPDX-License-Identifier: Apache-2.0
# What the user reads at the start and at the end of a session, and which processes leave files.

programs() {
  cat >program.c <<'C'
#include "proto/heaptap.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
/* program MIB [kill]: allocates so much in blocks of 64 KiB and frees all at its end, or is killed, but not before
 * heaptap has seen it: else nobody tells heaptap how it ended */
int main(int argc, char **argv)
{
	static void *held[8192];
	int count = argc > 1 ? 16 * atoi(argv[1]) : 0;
	for (int i = 0; i < count; i++)
		memset(held[i] = malloc(65536), 1, 65536);
	if (argc > 2 && strcmp(argv[2], "kill") == 0) {
		for (int tries = 0; !heaptap_snapshot("seen") && tries < 30; tries++)
			;
		raise(SIGKILL);
	}
	for (int i = 0; i < count; i++)
		free(held[i]);
	return 0;
}
C
  gcc -O1 -I "$top" -o big program.c
  cp big small
}

# rows: the table's lines but its head, as "process pid peak" (without units)
rows() {
  sed -n '/^heaptap: .* peak .* profile$/,/^heaptap: [^ ]/p' "$1" | sed '1d;$d;s/^heaptap: *//'
}

# The largest is in the table's first row, whatever came before it; what is killed is named before the table; the
# files of short commands are not there, and their bytes are.
test_a_script_of_many_commands() {
  programs
  cat >script <<'S'
i=0
while [ $i -lt 60 ]; do readlink /bin/sh; i=$((i + 1)); done >/dev/null
i=0
while [ $i -lt 12 ]; do ./small 2; i=$((i + 1)); done
./big 100
./big 5 kill
:
S
  record -p 4K -i 0 -o out/ bash ./script 2>err
  matches '^heaptap: recording pid [0-9]+ \(a sample per 4 KiB\) to out/heaptap\.\*\.pb\.gz$' err
  matches '^heaptap: a snapshot of it now: heaptap snapshot [0-9]+$' err
  equal 1 "$(grep -c recording err)"
  equal 'heaptap: recording' "$(head -n 1 err | cut -c1-18)" 'first line'
  matches '^heaptap: bash \(pid [0-9]+\) exited with status 0$' err
  matches '^heaptap: big \(pid [0-9]+\) was killed by SIGKILL; 5\.0 MiB at its largest$' err
  matches '^heaptap: 15 processes by their peaks; profiles in out/:$' err
  rows err >rows
  equal 12 "$(wc -l <rows)" rows # ten, COMMAND, the rest
  matches '^100\.0 MiB .* heaptap\.big\.[0-9]+\.peak\.pb\.gz$' <(head -n 1 rows)
  matches '^5\.0 MiB .* heaptap\.big\.[0-9]+\.exit\.pb\.gz$' <(sed -n 2p rows)
  matches ' heaptap\.bash\.[0-9]+\.(exit|peak)\.pb\.gz$' rows
  matches '^8\.0 MiB +< 12\.0 KiB .* and 4 more, added up$' rows
  matches '^heaptap: [0-9]+ process(es)? of under 16 samples left no profile:$' err
  matches '^heaptap:   [0-9]+ samples, for .* allocated' err
  matches '^heaptap: show the largest: heaptap report out/heaptap\.big\.[0-9]+\.peak\.pb\.gz$' err
  matches '^heaptap: show all, added up: heaptap report out/$' err
  equal 2 "$(grep -c 'show ' err)" hints
  ! grep -q readlink <(ls out) || fail "files of readlink: $(ls out)"
  # The bytes without a profile are counted in COMMAND's.
  comment_of "$(only out/heaptap.bash.*.exit.pb.gz)" >comments
  matches '[0-9]+ processes of few samples left no profile: [0-9]+ samples, [0-9]+ bytes allocated, [0-9]+ in use at their ends' comments
  "$heaptap" report "$(sed -n 's/.*show the largest: heaptap report //p' err)" >report
  matches '100\.0 MiB' report
  profile_check out/*.pb.gz
  # In a narrow terminal the files' names say which process it is.
  COLUMNS=80 record -p 4K -i 0 -o out/ bash ./script 2>err
  matches '^heaptap: +100\.0 MiB +< 12\.0 KiB +[0-9]+ .* heaptap\.big\.[0-9]+\.peak\.pb\.gz$' err
}

# A single process: lines, and the same error as heaptap report has for the same profile.
test_one_process() {
  record -p 1K -i 0 -o x.pb.gz "$targets/leaky" 3000 64 2>err
  # Where it took long to start, its resident memory was looked at, too.
  equal 8 "$(grep -vcE "^heaptap:   (resident|    )" err)" "lines in: $(cat err)"
  matches '^heaptap: recording pid [0-9]+ \(a sample per 1 KiB\) to x\.pb\.gz$' err
  matches '^heaptap: a snapshot of it now: heaptap snapshot [0-9]+$' err
  matches '^heaptap: show it: heaptap report x.pb.gz$' err
  profile_check x.pb.gz
  "$heaptap" report --json x.pb.gz >json
  python3 - <<'P' || fail "$(cat err; head -c 600 json)"
import json, re
totals = json.load(open("json"))["totals"]
line = re.search(r"at end +([0-9.]+) (\w+) \+- ([0-9.]+) (\w+) in ([0-9]+) \+- ([0-9]+) objects", open("err").read())
unit = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
def same(shown, name, exact, key):
    step = 0.051 * unit[name] if name in unit else 0.51
    shown = float(shown) * unit.get(name, 1)
    assert abs(shown - exact[key]) <= max(step, 0.51), (shown, exact[key])
same(line[1], line[2], totals["inuse_space"], "all")
same(line[3], line[4], totals["inuse_space"], "selected_error")
same(line[5], "", totals["inuse_objects"], "all")
same(line[6], "", totals["inuse_objects"], "selected_error")
P
}

# 40 MiB at the peak, of which 512 KiB are left: neither record nor report advises a smaller period.
test_little_at_the_end() {
  printf '#include <stdlib.h>
    int main(void) { static void *held[640]; for (int i = 0; i < 640; i++) held[i] = malloc(65536);
    for (int i = 8; i < 640; i++) free(held[i]); return 0; }\n' >little.c
  gcc -w -O1 -fno-builtin -o little little.c
  record -p 64K -i 0 -o little_out/ ./little 2>err
  "$heaptap" report little_out/ >out
  matches '^  at peak    [0-9.]+ MiB \+- ' out
  ! grep -q 'smaller period' err out || fail 'advice of a smaller period where the peak has many samples'
}

# Nothing is left at the end: the peak is shown, and the end has a bound.
test_nothing_at_the_end() {
  programs
  record -i 0 -o out/ ./big 40 2>err
  matches '^heaptap:   at end  nothing sampled in use \(less than about 1\.5 MiB, 95 %\)$' err
  matches '^heaptap: show the peak: heaptap report out/heaptap\.big\.[0-9]+\.peak\.pb\.gz$' err
  ! grep -q 'smaller period' err || fail "advice for $(grep samples err)"
  "$heaptap" report out/ >report
  matches '^  in use     nothing sampled$' report
  matches '^  at peak    [0-9.]+ MiB \+- ' report
  record -p 1024G -i 0 -o none/ ./big 2>err
  matches '^heaptap:   no allocation was sampled \(less than about 3\.0 TiB was allocated, 95 %\)$' err
  matches '^heaptap: no samples: record with a smaller period for more, such as -p 33554432K$' err
  only none/*.exit.pb.gz >/dev/null
}

# What the programs themselves write is not touched but for our lines, and with -q there are none.
test_quiet() {
  record -q -p 4K -i 0 -o out/ sh -c 'echo hello >&2; readlink /bin/sh >/dev/null; :' 2>err
  equal hello "$(cat err)"
  record -q nosuch 2>err || :
  record nosuch 2>>err || :
  equal "heaptap: nosuch: command not found
heaptap: nosuch: command not found" "$(cat err)" 'no recording of what cannot be executed'
}

# A program is chosen at its exec: by its name, or by its command line from the name on; a child that is forked has
# its parent's.
test_chosen_programs() {
  programs
  cat >script.py <<'P'
import os, sys
held = [bytearray(65536) for _ in range(200)]
if os.fork() == 0:
    more = [bytearray(65536) for _ in range(100)]
    os._exit(0)
os.wait()
P
  script='./small 2; ./big 3; /usr/bin/python3 script.py yes; /usr/bin/python3 script.py no; exec ./big 4'
  record -p 4K -i 0 -o only/ --only '^big$|^python3 .*yes$' sh -c "$script" 2>err
  equal '2 big
2 python3' "$(ls only | grep exit | cut -d. -f2 | sort | uniq -c | sed 's/^ *//')" files
  matches '^heaptap: not chosen by --only and --exclude: [0-9]+ programs?, (the last )?' err
  profile_check only/*.pb.gz
  record -p 4K -i 0 -o not/ --exclude '^(sh|dash)|python3 .*no|^small$' sh -c "$script" 2>err
  equal '2 big
2 python3' "$(ls not | grep exit | cut -d. -f2 | sort | uniq -c | sed 's/^ *//')" files
  record -p 4K -i 0 -o none/ --only '^big$' sh -c './small 2; :' 2>err
  equal 0 "$(find none -name '*.gz' | wc -l)"
  matches '^heaptap: no profile of sh: not chosen by --only and --exclude$' err
  equal 2 "$(status_of "$heaptap" record --only 'a(' true)"
  matches "^heaptap: --only: 'a\(' is not a regular expression" err
}

# However few samples: COMMAND has its file, and whoever asks has them all.
test_min_samples() {
  record -p 64K -i 0 -o some/ sh -c 'readlink /bin/sh; readlink /bin/sh; :' >/dev/null 2>err
  equal 1 "$(ls some | grep -c exit)"
  only some/heaptap.*sh.*.exit.pb.gz >/dev/null
  record -p 256 -i 0 -o all/ --min-samples 1 sh -c 'readlink /bin/sh; readlink /bin/sh; :' >/dev/null 2>err
  equal 3 "$(ls all | grep -c exit)"
  record -p 1 -i 0 -o every/ sh -c 'readlink /bin/sh; :' >/dev/null 2>err
  equal 2 "$(ls every | grep -c exit)" 'with -p 1'
  record -p 256 -i 0 -o few/ --min-samples 1000000 sh -c 'readlink /bin/sh; readlink /bin/sh; :' >/dev/null 2>err
  equal 1 "$(ls few | grep -c exit)"
  matches '^heaptap: 2 processes of under 1000000 samples left no profile:$' err
}

# A program that COMMAND starts at its end may yet load the library: until that is known it is not said to be recorded.
test_unprofiled_processes_that_go_on() {
  echo 'int main(void) { puts("on"); fflush(stdout); return getchar() == 0; }' >still.c
  gcc -static -include stdio.h -o still still.c 2>/dev/null || skip 'no static libc'
  mkfifo in
  exec 8<>in # until it is closed nobody has the end of a file there
  record -p 1 -i 0 -o out/ bash -c ': >started; for i in 1 2 3; do ./still <in >>started & done
    while [ "$(wc -l <started)" != 3 ]; do sleep 0.02; done' >log 2>err 8<&-
  ! grep 'still recorded' err || fail 'none is recorded'
  exec 8<&-
  wait_for 30 grep -q '^heaptap: not profiled: 3 processes after an exec; the last executed .*still, which is not' err
}

# What outlives COMMAND is said to, and has its own summary when it has ended.
test_processes_that_go_on() {
  cat >child.py <<'P'
import os, sys, time
held = [bytearray(65536) for _ in range(200)]
open("ready" + sys.argv[1], "w").close()
while not os.path.exists("end"):
    time.sleep(0.02)
P
  record -p 4K -i 0 -o out/ sh -c 'python3 child.py 1 & python3 child.py 2 &
    while [ ! -e ready1 ] || [ ! -e ready2 ]; do sleep 0.02; done' >log 2>err
  matches '^heaptap: still recorded, to be summed up at their ends: 2 processes$' err
  : >end
  wait_for 30 grep -q '^heaptap: 2 processes by their peaks; profiles in out/:$' err
  wait_for 30 grep -q '^heaptap: show all, added up: heaptap report out/$' err
  equal 2 "$(find out -name 'heaptap.python3*.exit.pb.gz' | wc -l)"
}

# Where snapshots were written, the end begins with what a report of them begins with, once.
test_the_end_begins_with_the_answer() {
  "$heaptap" record -i 300ms -p 4K -o p/ python3 -c '
import time
kept = []
for i in range(40):
    kept += [bytearray(20000) for _ in range(20)]
    time.sleep(0.06)' 2>err
  "$heaptap" report p | head -n 2 >report
  matches 'in use at the end' report
  matches ' grows since ' report
  sed -n 's/^heaptap: //p' err | grep -n ' in use at the end\| grows since ' >said
  equal 2 "$(wc -l <said)" 'sentences of the answer'
  equal "$(tr -d '\n ' <report)" "$(sed 's/^[0-9]*://' said | tr -d '\n ')" 'the answer'
  sed -n '/ grows since /,$p' err | grep -v '^heaptap: Not seen: ' | sed -n 2p >next
  matches '^heaptap: python3 \(pid [0-9]+\) exited' next
  # Without snapshots there is none, nor is there one of less than all of them.
  "$heaptap" record -i 0 -p 4K -o q/ "$targets/leaky" 300 64 2>err
  ! grep ' in use at the end' err || fail 'an answer without snapshots'
}
