# SPDX-License-Identifier: Apache-2.0
# What users see of the daemon's store, and of its configuration: SERVICE[@TIME], ls, --check. The profiles are real.

# dated FROM TO SECONDS: the profile as if it were of that time.
dated() {
  python3 - "$@" <<'PYTHON'
import gzip, sys
def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at
def encode(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])
data, at, out = gzip.open(sys.argv[1]).read(), 0, b""
while at < len(data):
    key, end = varint(data, at)
    length, end = varint(data, end)
    end += length if key & 7 == 2 else 0
    if key != 9 << 3: # time_nanos
        out += data[at:end]
    at = end
gzip.open(sys.argv[2], "wb").write(out + encode(9 << 3) + encode(int(sys.argv[3]) * 10**9))
PYTHON
}

# A store of one process that grows: five snapshots ten minutes apart, the peak and the exit; what is none of its names.
make_store() {
  cat >grow.c <<'C'
#include "heaptap.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[1000];
int main(void)
{
	char path[] = "recorded/0000.pb.gz";
	for (int i = 0; i < 1000; i++) {
		kept[i] = malloc(10000);
		if (i % 200 != 199)
			continue;
		heaptap_snapshot(""); /* those that come together are one */
		for (path[12]++; access(path, F_OK) != 0;)
			usleep(1000);
	}
}
C
  gcc -O1 -g -I"$top/proto" -o grow grow.c
  record -q -p 4K -b copy -i 0 -o 'recorded/%n.pb.gz' ./grow
  day=store/growing/2026-11-20
  mkdir -p $day store/growing/2026-11-21 store/other/2026-11-20 store/.state store/growing/notes
  local number=0 snapshot
  for snapshot in recorded/000*.pb.gz; do
    cp "$snapshot" "$day/10${number}000.4711.heap.pb.gz"
    number=$((number + 1))
  done
  dated recorded/peak.pb.gz $day/104001.4711.peak.pb.gz "$(date -u -d '2026-11-20 10:40:01' +%s)"
  cp recorded/exit.pb.gz $day/110000.4711.exit.pb.gz
  cp recorded/exit.pb.gz store/other/2026-11-20/110000.12.exit.pb.gz
  echo text >$day/100000.4711.other.jsonl
  echo text >$day/README
  ln -s $PWD/recorded store/growing/2026-11-22
  export TZ=UTC
}

inuse_of() {
  "$heaptap" report --json "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["totals"]["inuse_space"]["all"])'
}

test_report_of_a_service_at_a_time() {
  make_store
  for number in 0 1 2 3 4; do
    "$heaptap" report --store store "growing@2026-11-20T10:${number}5Z" >out
    equal "$("$heaptap" report "recorded/000$((number + 1)).pb.gz" | grep '^  in use')" "$(grep '^  in use' out)" "at 10:${number}5"
  done
  matches '^Growing, by more than chance' out
  "$heaptap" report --store store growing >out # the process has ended: its end counts
  matches '^  exit' out
  matches '^Growing, by more than chance' out
  matches 'Most in use at the peak' out
  "$heaptap" report --store store --state peak growing@2026-11-20T10:45 >out
  matches '^  peak' out
}

# Names have whole seconds: of several snapshots of one second, time_nanos says which one is the newest.
test_the_newest_of_one_second() {
  local order snapshot number
  make_store
  mv recorded first
  record -q -p 4K -b copy -i 0 -o 'recorded/%n.pb.gz' ./grow
  wanted=$(inuse_of --session all first/0005.pb.gz recorded/0005.pb.gz)
  rm -r store/growing/2026-11-22
  for order in '1 5 3' '5 1 3' '3 1 5' '5 3 1'; do
    rm $day/*
    number=
    for snapshot in $order; do
      cp first/000$snapshot.pb.gz $day/100000.4711.heap$number.pb.gz
      cp recorded/000$snapshot.pb.gz $day/100000.4712.heap$number.pb.gz
      number=$((number - 1 - (number == 0)))
    done
    equal "$wanted" "$(inuse_of --session all --store store growing)" "of $order"
  done
}

# In 80 columns, of the states that are in the store.
test_a_timeline() {
  make_store
  "$heaptap" report --timeline --store store growing >out
  matches '^In use \(.*\) and resident \(\.\) over 6 snapshots$' out
  matches '^most in use: [0-9.]+ MiB at 20' out
  equal 10 "$(grep -c '^ .* |' out)" 'rows of the picture'
  equal '' "$(grep ' |' out | LC_ALL=C sed 's/[^ -~]../#/g' | awk 'length > 80')" 'rows of more than 80 columns'
  "$heaptap" report --timeline --json --store store growing@2026-11-20T10:45 | python3 -c '
import json, sys
points = json.load(sys.stdin)["timeline"]
assert len(points) == 5, points
assert [p["time_ns"] for p in points] == sorted(p["time_ns"] for p in points)
rss = [p["rss_bytes"] for p in points]
assert rss == sorted(rss) and rss[0] > 1 << 20 and rss[-1] > rss[0], points
print(*[p["inuse_bytes"] for p in points])' >got
  for number in 1 2 3 4 5; do inuse_of recorded/000$number.pb.gz; done | xargs >wanted
  equal "$(cat wanted)" "$(cat got)" 'in use at each snapshot'
  # The picture climbs from left to right, from a fifth of its height to all of it.
  python3 - out <<'PYTHON'
import sys
rows = [line.rstrip("\n").split(" |", 1)[1] for line in open(sys.argv[1]) if " |" in line]
assert len(rows) == 10 and len(set(map(len, rows))) == 1, rows
columns = ["".join(column) for column in zip(*rows)]
heights = [sum(cell not in " ." for cell in column) for column in columns]
assert heights == sorted(heights), heights
assert 1 <= heights[0] <= 4 and heights[-1] == 10 and len(set(heights)) >= 4, heights
assert any("." in row for row in rows), rows
assert not any(column.lstrip(" .").count(" ") for column in columns), columns
PYTHON
  equal 1 "$(status_of "$heaptap" report --timeline --state peak --store store growing)"
  matches '^heaptap: --timeline shows what was in use at each snapshot: --state does not go with it$' err
  "$heaptap" report --timeline recorded/0001.pb.gz >out
  matches '^a timeline takes two snapshots, and there is one' out
}

# The name is that of the first peak; what is in the file is the last.
test_a_peak_that_came_later() {
  make_store
  dated recorded/peak.pb.gz $day/104001.4711.peak.pb.gz "$(date -u -d '2026-11-20 10:55:00' +%s)"
  dated recorded/0005.pb.gz $day/104000.4711.heap.pb.gz "$(date -u -d '2026-11-20 10:40:00' +%s)"
  "$heaptap" report --store store growing@2026-11-20T10:54:59 >out 2>err
  matches '^heaptap: left out: store/growing/2026-11-20/104001.4711.peak.pb.gz, the peak came later$' err
  equal 0 "$(grep -c 'and its peak' out)" 'the peak'
  "$heaptap" report --store store --state peak growing@2026-11-20T10:45 >out 2>err
  matches 'the largest of 5 snapshots of this process; it has no peak profile' out
  "$heaptap" report --store store growing@2026-11-20T10:55:00 >out 2>err
  equal 0 "$(grep -c 'left out' err)" 'a peak of that second'
  matches 'and its peak' out
  "$heaptap" report --store store growing >out 2>err
  matches 'Most in use at the peak' out
  "$heaptap" diff --store store --state peak growing@2026-11-20T10:25 growing >out 2>err
  matches '1 process has no peak profile: the newest profile counts instead' err
  ! grep -q 'Nothing changed' out || fail 'a peak was compared with itself'
}

test_diff_of_two_times() {
  make_store
  "$heaptap" diff --store store growing@2026-11-20T10:05 growing@2026-11-20T10:45 >out
  "$heaptap" diff recorded/0001.pb.gz recorded/0005.pb.gz >wanted
  equal "$(cat wanted)" "$(cat out)" 'diff'
  matches 'Both are of one process' out
  "$heaptap" diff --store store growing@10m growing >out
}

test_other_readers() {
  make_store
  "$heaptap" export -f folded --store store growing@2026-11-20T10:05 >out
  "$heaptap" export -f folded recorded/0001.pb.gz >wanted
  cmp wanted out
  equal 0 "$(status_of "$heaptap" check --store store growing other)"
  "$heaptap" merge -o sum.pb.gz --store store growing@2026-11-20T10:05 other
  profile_check sum.pb.gz
  "$heaptap" ls --store store growing >out
  matches '1 process, 7 profiles$' out
}

test_ls_of_a_store() {
  make_store
  "$heaptap" ls store >out
  matches '^Store store$' out
  matches '^growing +1 +7 +[0-9.]+ .*  2026-11-20 10:00:00  2026-11-20 11:00:00$' out
  matches '^other +1 +1 ' out
  equal 4 "$(wc -l <out)" 'lines'
  equal "$(cat out)" "$("$heaptap" ls --store store)" '--store'
  "$heaptap" ls --json --store store >ls.json
  python3 - <<'PYTHON'
import json
services = json.load(open("ls.json"))["services"]
assert [(s["service"], s["processes"], s["profiles"]) for s in services] == [("growing", 1, 7), ("other", 1, 1)], services
PYTHON
  # the user's own store, where there is nothing else to list
  if [ "$(id -u)" != 0 ]; then
    mkdir -p state/heaptap empty
    cp -r store state/heaptap/
  (cd empty && XDG_STATE_HOME=$OLDPWD/state "$heaptap" ls | grep -q '^growing ') || fail 'the default store is not listed'
  fi
}

test_what_is_not_there_is_said() {
  make_store
  equal 1 "$(status_of "$heaptap" report --store store growing@2026-11-20T09:00)"
  matches "store has nothing of growing at or before 2026-11-20 09:00:59 UTC: its first profile is of 2026-11-20 10:00:00 UTC" err
  equal 1 "$(status_of "$heaptap" report --store store growing@noon)"
  matches "'noon' is no time: now, 10m \(ago\), 14:30, 2026-11-22" err
  equal 1 "$(status_of "$heaptap" report --store store growin)"
  matches "store has no service 'growin'; did you mean growing\?" err
  equal 1 "$(status_of "$heaptap" report --store store gro)" # "redis" for "redis-server"
  matches "store has no service 'gro'; did you mean growing\?" err
  equal 1 "$(status_of "$heaptap" report --store nowhere growing)"
  equal "heaptap: cannot read growing: No such file or directory; and no store has a service of that name: nowhere (No such file or directory)" "$(cat err)"
  mkdir none
  equal 1 "$(status_of "$heaptap" report --store none growing)"
  matches 'cannot read growing: .*; and no store has a service of that name: none \(no profile in it\)$' err
  # a store in place of a service
  equal 1 "$(status_of "$heaptap" report ./store)"
  equal "heaptap: ./store is a daemon's store: heaptap report --store ./store SERVICE; its services: heaptap ls ./store" "$(cat err)"
  mkdir one
  cp -r store/growing one/
  equal 1 "$(status_of "$heaptap" report one)"
  equal "heaptap: one is a daemon's store: heaptap report --store one growing" "$(cat err)"
  "$heaptap" report --store one growing >out
  # a file goes before a service
  cp recorded/0001.pb.gz growing
  "$heaptap" report --store store growing >out
  equal 0 "$(grep -c Growing out)" 'series'
}

# A user's daemon, its store where the user's configuration says.
test_the_configuration_names_the_store() {
  make_store
  stage
  mkdir -p config/heaptap
  printf '[daemon]\nstore = %s/store\n' "$PWD" >config/heaptap/heaptap.conf
  chmod -R a+rX store config recorded .
  unprivileged env XDG_CONFIG_HOME="$PWD/config" XDG_STATE_HOME="$PWD" HOME="$PWD" "$heaptap" report growing@2026-11-20T10:05 >out
  matches '^  in use' out
}

check_config() {
  status_of "$heaptap" daemon --check --config heaptap.conf
}

test_check_of_a_configuration() {
  "$heaptap" daemon --help >out 2>&1 && grep -q -- --check out || skip 'this build has no daemon'
  cat >heaptap.conf <<'INI'
[daemon]
disk = 2G
[service redis]
match.exe = */redis-server
samples-per-hour = 3600
label.team = data
[deny]
user = nobody
INI
  equal 0 "$(check_config)"
  equal ok "$(cat out)"
  printf '[daemon]\n\ndisk = 10K\n' >heaptap.conf
  equal 2 "$(check_config)"
  equal "heaptap.conf:3: disk '10K' is not 1M or more, for example 500M or 2G" "$(cat out)"
  printf '[service x]\nperiod = 1K\nsamples-per-hour = 10\n' >heaptap.conf
  equal 2 "$(check_config)"
  equal 'heaptap.conf:3: period and samples-per-hour exclude each other: give one of them' "$(cat out)"
  rm heaptap.conf
  equal 2 "$(check_config)"
  equal 'cannot read heaptap.conf: No such file or directory' "$(cat out)"
}
