# SPDX-License-Identifier: Apache-2.0
# Many profiles, one truth: folders of one process, of several, of several sessions, against what the programs did.
# timeout: 240

# json_of OPTIONS... OPERANDS: "in use, allocated, processes" of a report
json_of() {
  "$heaptap" report --json "$@" 2>err | python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["totals"]["inuse_space"]["all"], report["totals"]["alloc_space"]["all"], report["processes"])'
}

# folded_of OPTIONS... OPERANDS: the sum of the folded stacks
folded_of() {
  "$heaptap" export -f folded "$@" 2>err | awk '{ sum += $NF } END { printf "%d\n", sum }'
}

# Three children: 100, 200 and 300 blocks of 1000 bytes, and two more each for the snapshots; the parent 1000 and two.
# Each held 200 more at its peak.
kept=$((1608 * 1000))
allocated=$((1608 * 1000 + 4 * 200 * 1000))
peaks=$((1600 * 1000 + 4 * 200 * 1000))

test_a_forking_server() {
  record -q -p 1 -b copy -o dir/ "$targets/family" 3 2
  profile_check dir/*.pb.gz
  for name in a b c d; do echo '{}' >dir/$name.jsonl; done # what another program has written there
  equal 4 "$(ls dir/*.exit.pb.gz | wc -l)" 'processes'
  for operands in dir dir/ 'dir/*.pb.gz' 'dir/*' 'dir/*.exit.pb.gz dir/*.000?.pb.gz'; do
    # shellcheck disable=SC2086
    equal "$kept $allocated 4" "$(json_of $operands)" "report $operands"
    # shellcheck disable=SC2086
    equal $kept "$(folded_of $operands)" "export $operands"
    # shellcheck disable=SC2086
    equal 0 "$(status_of "$heaptap" report --fail-over $kept $operands)" "--fail-over of $operands"
    # shellcheck disable=SC2086
    equal 3 "$(status_of "$heaptap" report --fail-over $((kept - 1)) $operands)" "--fail-over below $operands"
    matches '^heaptap: 1\.5 MiB in use, more than the 1\.5 MiB of --fail-over$' err
  done
  equal "$kept $allocated 4" "$(cd dir && json_of)" 'report without operands'
  equal $kept "$(cd dir && folded_of)" 'export without operands'
  equal $peaks "$(folded_of --state peak dir)" 'export --state peak'
  equal $peaks "$(folded_of --sort peak dir)" 'export --sort peak'
  equal 3 "$(status_of "$heaptap" report --state peak --fail-over $((peaks - 1)) dir)"
  matches 'MiB in use at the peak, more than' err

  comment_of "$(ls dir/*.exit.pb.gz | head -1)" >comments
  matches '^session=[0-9]{19}-[0-9]+ start=[0-9]{19}$' comments

  # What the headline says.
  "$heaptap" report dir >report 2>err
  matches '^4 processes: family \(4\)  20' report
  matches '^  each at its end, added up$' report
  ! grep 'samples:' report || fail 'how samples were taken is said without -v'
  "$heaptap" report -v dir >verbose
  matches "^  samples: 2408 taken, [0-9]+ lost stacks" verbose
  matches '^  at peaks   2\.3 MiB in 2400 objects$' report
  matches '^Most in use at the peak of each process' report
  ! grep -q 'more profiles' report || fail 'untrue words'
  equal '' "$(cat err)" 'words about a folder with other files'
  : >dir/err # also if it is empty
  equal 2 "$(status_of "$heaptap" diff --session 2 dir)" 'diff takes the last two sessions'
  "$heaptap" report dir/* >report 2>err
  matches '^heaptap: not profiles, passed over: dir/a\.jsonl, dir/b\.jsonl, .* and 2 more$' err
  pid=$(ls dir/*.exit.pb.gz | head -1 | cut -d. -f3)
  "$heaptap" report dir/*."$pid".exit.pb.gz dir/*."$pid".peak.pb.gz >report
  matches '^  peak and end of one process$' report

  # A profile that is damaged is never passed over in silence: the sum lacks a process.
  cp dir/*."$pid".exit.pb.gz saved
  echo garbage | gzip >"$(ls dir/*."$pid".exit.pb.gz)"
  for operands in dir 'dir/*'; do
    # shellcheck disable=SC2086
    equal 1 "$(status_of "$heaptap" report --fail-over 100M $operands)"
    matches "^heaptap: cannot read dir/.*$pid.exit.pb.gz: not a pprof profile" err
    matches '^  INCOMPLETE: 1 that could not be read is not in these numbers$' out
    # What others read on has nobody to say so: no output.
    # shellcheck disable=SC2086
    equal 1 "$(status_of "$heaptap" export -f folded $operands)"
    [ ! -s out ] || fail 'exported in spite of a damaged profile'
    # shellcheck disable=SC2086
    equal 1 "$(status_of "$heaptap" merge -o lacking.pb.gz $operands)"
    [ ! -e lacking.pb.gz ] || fail 'merged in spite of a damaged profile'
  done
  cp saved "$(ls dir/*."$pid".exit.pb.gz)"

  # All states added up, on demand, is as much as it was before without asking.
  everything=$(for file in dir/*.pb.gz; do folded_of "$file"; done | awk '{ sum += $1 } END { printf "%d\n", sum }')
  equal "$everything" "$(folded_of --state all dir)" 'export --state all'
  # 16, unless a slow sampler has answered both requests of a process by one snapshot.
  all=$(ls dir/*.pb.gz | wc -l)
  matches "^heaptap: $all profiles of 4 processes added up: blocks in several of them count several times\$" err
  equal 1 "$(status_of "$heaptap" report --state delta dir)"
  matches '^heaptap: --state delta: none of these' err
}

# Copies of a parent's blocks are each process' own memory, and are counted so; how much that is, is said.
test_inherited_blocks() {
  record -q -p 1 -b copy -o dir/ "$targets/family" 2 0 0 late
  equal $((3300 * 1000)) "$(folded_of dir)" 'in use'
  equal $((1300 * 1000 + 3 * 200000)) "$(json_of dir | cut -d ' ' -f 2)" 'allocated, by one process each'
  "$heaptap" report dir >report
  matches '^  of that    1\.9 MiB counted more than once \(shared after fork\)$' report
  "$heaptap" report "$(ls dir/*.exit.pb.gz | head -1)" >report
  ! grep -q 'more than once' report || fail 'said of one process'
  # They are in use, but nobody has allocated them here: what each has freed is as much as without them.
  "$heaptap" report --sort freed --by process dir >report
  equal 3 "$(grep -c '^ *200 .* 33\.3%  .*family' report)" 'processes that freed 200 blocks'
}

test_what_merge_says() {
  record -q -p 1 -b copy -o dir/ "$targets/family" 3 2
  # 16, unless a snapshot was asked for in vain: it waits for the file of the one before, but for 2 s only
  files=$(ls dir/*.pb.gz | wc -l)
  at_least 8 "$files" 'ends and peaks'
  objects=$(sums inuse_objects dir/*.pb.gz)
  bytes=$(sums inuse_space dir/*.pb.gz)
  "$heaptap" merge -o merged.pb.gz dir/*.pb.gz 2>err
  matches '^heaptap: merged: 4 profiles of 4 processes: family \(4\); samples: 2408 taken, [0-9]+ lost stacks' err
  matches '^heaptap: left out: '$((files - 4))' other profiles of the same processes: the newest counts \(--state all adds all up, --state delta the deltas\)$' err
  profile_check merged.pb.gz
  equal $kept "$(total_of merged.pb.gz inuse_space)" 'merged'
  "$heaptap" report merged.pb.gz >report
  matches '^4 profiles of 4 processes: family \(4\)' report
  ! grep -q ' pid ' report || fail 'a pid of a merged profile'
  "$heaptap" merge --state all -o all.pb.gz dir 2>err
  matches "^heaptap: merged: $files profiles of 4 processes" err
  profile_check all.pb.gz
  "$heaptap" report all.pb.gz >report
  matches "^$files profiles of 4 processes: family \($files\)" report
  matches "^  in use     [0-9.]+ MiB in $objects objects$" report
  equal "$bytes" "$(total_of all.pb.gz inuse_space)" 'merged states'
  "$heaptap" merge --state peak -o peak.pb.gz dir 2>err
  equal $peaks "$(total_of peak.pb.gz inuse_space)" 'merged peaks'
  # Beside the processes in it a merged profile counts nothing twice.
  equal $kept "$(folded_of merged.pb.gz dir)" 'merged and others'
  matches '^heaptap: left out: merged\.pb\.gz, a sum of processes beside profiles of processes; ' err
}

# Two sessions in one folder: never added up in silence.
test_two_sessions() {
  record -q -p 1 -b copy -o dir/ "$targets/family" 3 2
  record -q -p 1 -b copy -o dir/ "$targets/family" 1 2
  newest=$((1104 * 1000))
  equal "$newest $((newest + 2 * 200000)) 2" "$(json_of dir)" 'the newest'
  matches '^heaptap: this is session 1 of 2, the newest; heaptap ls lists them, --session N or all chooses$' err
  equal "$kept $allocated 4" "$(json_of --session 2 dir)" 'the one before'
  equal "$((kept + newest)) $((allocated + newest + 2 * 200000)) 6" "$(json_of --session all dir/*)" 'all'
  equal $newest "$(folded_of dir)" 'export'
  equal 0 "$(status_of "$heaptap" report --fail-over $newest dir)"
  equal 1 "$(status_of "$heaptap" report --session 3 dir)"
  matches '^heaptap: --session 3: there are only 2 sessions$' err

  for number in 1 2; do
    "$heaptap" ls --session $number dir >ls
    equal "Session $number" "$(grep -o '^Session [0-9]*' ls)"
    equal "$number" "$("$heaptap" ls --session $number --json dir | grep -o '"session":[0-9]*' | cut -d : -f 2)"
  done
  equal 1 "$(status_of "$heaptap" ls --session 3 dir)"
  matches '^heaptap: --session 3: there are only 2 sessions$' err

  # diff: the last two sessions of a folder, folders, glob-less files.
  (cd dir && "$heaptap" diff --json) >diff.json 2>err
  python3 - $kept $newest <<'PYTHON'
import json, sys
total = json.load(open("diff.json"))["total"]
assert [total["base"], total["new"]] == [int(word) for word in sys.argv[1:]], total
PYTHON
  "$heaptap" diff dir >diff 2>err
  matches '^base  4 processes: family \(4\)$' diff
  matches '^new   2 processes: family \(2\)$' diff
  matches '^ *-[0-9.]+ KiB .*\(total\)' diff
  equal 0 "$(status_of "$heaptap" diff --fail-over 0 dir)"
  mkdir one two
  "$heaptap" ls --json dir >ls.json
  python3 - <<'PYTHON'
import json, shutil
for number, folder in ((1, "one"), (2, "two")):
    session = json.load(open("ls.json"))["sessions"][number - 1]
    assert session["session"] == number
    for process in session["processes"]:
        for file in process["files"]:
            shutil.copy(file["path"], folder)
PYTHON
  equal 3 "$(status_of "$heaptap" diff --fail-over $((kept - newest - 1)) one two)"
  equal 0 "$(status_of "$heaptap" diff --fail-over $((kept - newest)) one two)"
  equal 2 "$(status_of "$heaptap" diff "$(ls one/*.exit.pb.gz | head -1)")"
  equal 1 "$(status_of "$heaptap" diff one)"
  equal 'heaptap: diff needs BASE and NEW, or a folder with two sessions: here is one' "$(cat err)"
  # Files that are named are merged, whatever their session is; a folder is its newest session.
  "$heaptap" merge -o merged.pb.gz dir/*.pb.gz 2>err
  matches '^heaptap: 2 sessions added up$' err
  equal $((kept + newest)) "$(total_of merged.pb.gz inuse_space)" 'merged files'
  "$heaptap" merge -o merged.pb.gz dir 2>err
  equal $newest "$(total_of merged.pb.gz inuse_space)" 'merged folder'
}

# One process with snapshots, deltas, peak and exit: the screen that was 8.7 times too much.
test_deltas_of_one_process() {
  record -q -p 1 -b copy --delta -i 200ms -o dir/ "$targets/family" 0 0 3 &
  deltas() { ls dir 2>/dev/null | grep -c -e -delta || :; }
  # The second delta from now on, and the snapshot beside it, were taken after the step before.
  for step in 0 1 2; do
    wait_for 30 test -e done.$step
    more=$(($(deltas) + 2))
    wait_for 30 eval "[ \$(deltas) -ge $more ]"
    [ $step != 0 ] || first=$(ls dir/*.[0-9][0-9][0-9][0-9].pb.gz | tail -1)
    : >go.$step
  done
  wait $!
  truth=$((1300 * 1000))
  ever=$((1500 * 1000))
  for operands in dir 'dir/*.pb.gz'; do
    # shellcheck disable=SC2086
    equal "$truth $ever 1" "$(json_of $operands)" "report $operands"
    # shellcheck disable=SC2086
    equal $truth "$(folded_of $operands)" "export $operands"
    # shellcheck disable=SC2086
    equal 0 "$(status_of "$heaptap" report --fail-over $truth $operands)"
  done
  "$heaptap" report dir >report
  matches '^  the last of [0-9]+ snapshots of this process, and its peak$' report
  # What the deltas say together is what was allocated until the last of them: the last step may be behind it.
  sum=$(for file in dir/*-delta.pb.gz; do total_of "$file" alloc_space; done | awk '{ sum += $1 } END { printf "%d\n", sum }')
  for options in '--state delta dir' 'dir/*-delta.pb.gz'; do
    # shellcheck disable=SC2086
    equal "$sum" "$(json_of $options | cut -d ' ' -f 2)" "deltas: $options"
  done
  [ "$sum" = $((1400 * 1000)) ] || [ "$sum" = $ever ] || fail "deltas of $sum bytes"
  # Each has its own samples, here one for each object.
  "$heaptap" report --json --state delta dir >delta.json
  python3 -c '
import json
report = json.load(open("delta.json"))
assert report["samples"].startswith("%d taken, " % report["totals"]["alloc_objects"]["all"]), report["samples"]'
  "$heaptap" merge --state delta -o deltas.pb.gz dir 2>err
  "$heaptap" report -v deltas.pb.gz >report
  matches "^  samples: $(total_of deltas.pb.gz alloc_objects) taken, [0-9]+ lost stacks$" report
  "$heaptap" report --state delta dir >report
  matches '^  [0-9]+ deltas added up: what was allocated in these intervals$' report
  # From the first to the last: operands of diff are files as well.
  "$heaptap" diff --json "$first" dir/*.exit.pb.gz >diff.json
  python3 -c '
import json
diff = json.load(open("diff.json"))
assert diff["same_process"] and diff["total"]["base"] == 1000000 and diff["total"]["new"] == 1300000, diff["total"]'
  "$heaptap" export -f massif dir -o massif.out
  equal "$(ls dir/*.[0-9][0-9][0-9][0-9].pb.gz dir/*.exit.pb.gz | wc -l)" "$(grep -c '^snapshot=' massif.out)" 'snapshots'
}

test_nginx_workers() {
  command -v nginx >/dev/null || skip 'no nginx'
  mkdir www
  chmod 777 . www
  cat >nginx.conf <<CONF
daemon off; worker_processes 2; pid $PWD/www/pid; error_log $PWD/www/error.log;
events {}
http { access_log off; client_body_temp_path www/1; proxy_temp_path www/2; fastcgi_temp_path www/3;
uwsgi_temp_path www/4; scgi_temp_path www/5; server { listen unix:$PWD/www/socket; return 200 hello; } }
CONF
  record -q -p 1 -i 200ms -o dir/ nginx -p "$PWD" -c "$PWD/nginx.conf" 2>nginx.err &
  wait_for 30 curl -s -o reply --unix-socket www/socket http://localhost/
  wait_for 30 eval '[ $(ls dir/*.0002.pb.gz 2>/dev/null | wc -l) -ge 3 ]'
  kill -QUIT "$(cat www/pid)"
  wait $!
  equal 3 "$(ls dir/*.exit.pb.gz | wc -l)" 'processes'
  for type in inuse alloc; do
    for file in dir/*.exit.pb.gz; do total_of "$file" ${type}_space; done | awk '{ sum += $1 } END { print sum }'
  done | xargs >truth
  equal "$(cat truth) 3" "$(json_of dir/*.pb.gz)" 'report'
  equal "$(cut -d ' ' -f 1 truth)" "$(folded_of dir)" 'export'
  equal 0 "$(status_of "$heaptap" report --fail-over "$(cut -d ' ' -f 1 truth)" dir)"
  COLUMNS=80 "$heaptap" report dir >report
  equal 0 "$(awk 'length > 80' report | wc -l)" 'lines wider than 80 columns'
  matches '^3 processes: nginx \(3\)' report
  everything=$(for file in dir/*.pb.gz; do total_of "$file" inuse_space; done | awk '{ sum += $1 } END { print sum }')
  echo "in use, allocated: $(cat truth); all files added up: $everything in use"
}

# heaptap ls: sessions, processes and files, the newest first.
test_ls() {
  record -q -p 1 -b copy -o dir/ "$targets/family" 2 1
  status=0
  record -q -p 1 -b copy -o dir/ sh -c 'kill -9 $$' || status=$?
  equal 137 $status
  echo hello >dir/notes.txt
  "$heaptap" ls dir >ls 2>err
  matches '^Session 1  20[0-9-]+ [0-9:]+ .*: 1 process, [0-9]+ profiles?$' ls
  matches '^Session 2  20.*: 3 processes, 9 profiles$' ls
  awk '/^Session 1/ { one = NR } /^Session 2/ { two = NR } END { exit !(one < two) }' ls || fail 'not the newest first'
  matches '^ +[0-9]+  [0-9:]{8}  977\.5 KiB    1\.1 MiB     3  family   exited with status 0$' ls
  matches '  98\.6 KiB  293\.0 KiB     3  family  ' ls
  # With a short name all of it has room on the usual terminal.
  equal 0 "$(COLUMNS=80 "$heaptap" ls dir | grep -c '\.\.')" 'cut words'
  matches '  sh  +was killed by SIGKILL' ls
  equal '' "$(cat err)" 'words about a folder with other files'
  (cd dir && "$heaptap" ls -v) >ls 2>err
  equal "$(ls dir/*.pb.gz | wc -l)" "$(grep -cE '^ +[0-9.]+ (B|KiB|MiB)  (heap|peak) +heaptap\..*\.pb\.gz$' ls)" 'files'
  "$heaptap" ls --json dir >ls.json
  python3 - <<'PYTHON'
import json
one, two = json.load(open("ls.json"))["sessions"]
assert one["start_ns"] > two["start_ns"]
sizes = sorted((p["inuse_bytes"], p["peak_bytes"], len(p["files"])) for p in two["processes"])
assert sizes == [(101000, 300000, 3), (201000, 400000, 3), (1001000, 1200000, 3)], sizes
assert all(p["ended"] and p["program"] == "family" for p in two["processes"])
PYTHON
  mkdir empty
  equal 1 "$(status_of "$heaptap" ls empty)"
  matches '^heaptap: cannot read empty: no profile in it' err
  equal 2 "$(cd empty && status_of "$heaptap" ls)"
  matches '^heaptap: no PROFILE given, and none in this folder' empty/err
}

# In the folder of a recording that has written nothing yet: what runs, when there will be something, and what helps now.
test_the_folder_of_a_running_recording() {
  mkdir out other
  mkfifo gate
  "$heaptap" record -q -p 1K -i 60s -o out/ "$targets/snapshot_signal" wait <gate >ready 2>&1 &
  front=$!
  exec 9>gate
  wait_for 20 grep -q ready ready
  pid=$(child_of "$front" snapshot_signal)
  for command in report ls diff; do
    equal 1 "$(cd out && status_of "$heaptap" $command)" "$command"
    matches "^heaptap: snapshot_signal \(pid $pid\) is being recorded here, next snapshot in [1-6]?[0-9] s; heaptap snapshot $pid writes a profile now$" out/err
    rm out/out out/err
  done
  ! "$heaptap" report out 2>said || fail 'a report of nothing'
  matches "pid $pid\) is being recorded here" said
  (cd other && status_of "$heaptap" report >/dev/null)
  matches 'no PROFILE given, and none in this folder' other/err
  "$heaptap" snapshot "$pid" >/dev/null
  (cd out && "$heaptap" report) >table
  matches '^snapshot_signal.*  pid' table
  exec 9>&-
  wait $front
}

