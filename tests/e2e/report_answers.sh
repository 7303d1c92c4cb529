# SPDX-License-Identifier: Apache-2.0
# The plain answers of the commands that read profiles: nothing matches, nothing changed, not for a terminal.

# heap FILE FUNCTION BYTES...: a heap profile of these functions
heap() {
  local file=$1 i=0
  shift
  {
    printf 'sample_type { type: 1 unit: 2 }\nsample_type { type: 3 unit: 4 }\nperiod_type { type: 5 unit: 4 }\nperiod: 4096\n'
    for word in '' inuse_objects count inuse_space bytes space; do
      printf 'string_table: "%s"\n' "$word"
    done
    while [ $# -gt 0 ]; do
      i=$((i + 1))
      printf 'string_table: "%s"\nfunction { id: %d name: %d }\nlocation { id: %d line { function_id: %d } }\n' "$1" $i $((i + 5)) $i $i
      printf 'sample { location_id: %d value: %d value: %d }\n' $i $(($2 / 100)) "$2"
      shift 2
    done
  } | protoc --proto_path="$top/proto" --encode=perftools.profiles.Profile profile.proto >"$file"
}

test_nothing_matches() {
  heap a.pb load 1000000 parse 200000
  equal 0 "$(status_of "$heaptap" report --focus nosuch a.pb)"
  matches "^Nothing matches --focus 'nosuch' \(a regular expression, in which case matters\)\.$" out
  ! grep -E '^Most|nothing$' out || fail 'tables of nothing'
  "$heaptap" report --focus load --ignore load --size 1K: --tree a.pb >out
  matches "^Nothing matches --focus 'load' with --ignore 'load' with --size " out
  # What others parse stays as it is.
  for command in 'report --json' 'export -f folded'; do
    # shellcheck disable=SC2086
    equal 0 "$(status_of "$heaptap" $command --focus nosuch a.pb)" "$command"
    matches "^heaptap: Nothing matches --focus 'nosuch'" err
    ! grep 'Nothing matches' out || fail "$command: the line is in the output"
  done
  "$heaptap" diff --focus nosuch a.pb a.pb >out
  matches "^Nothing matches --focus 'nosuch'" out
  equal 0 "$(status_of "$heaptap" report --focus LOAD a.pb)"
  matches 'in which case matters' out
  equal 0 "$(status_of "$heaptap" report --focus load a.pb)"
  ! grep 'Nothing matches' out err || fail 'something matches'
}

test_nothing_changed() {
  heap a.pb load 1000000 parse 200000
  heap b.pb load 1001000 parse 200000
  heap c.pb load 9000000 parse 900000
  "$heaptap" diff a.pb a.pb >out
  matches '^Nothing changed: every function has the same values in BASE and NEW\.$' out
  ! grep -E 'standard error|\* more' out || fail 'speaks of chance where nothing changed'
  "$heaptap" diff a.pb b.pb >out
  matches '^No function changed by more than chance \(5% for one row: [0-9.]+ standard errors\)\.' out
  "$heaptap" diff a.pb c.pb >out
  matches '^\* more than chance \(5% for all 2 rows together: [0-9.]+ standard errors\)\.' out
}

test_not_for_a_terminal() {
  command -v script >/dev/null || skip 'no script (Debian: bsdutils)'
  heap a.pb load 1000000 parse 200000
  for format in flamegraph speedscope; do
    ! script -qec "'$heaptap' export -f $format a.pb" /dev/null </dev/null >out || fail "$format is written to a terminal"
    equal "heaptap: $format is not for a terminal: use -o FILE, or redirect the output" "$(tr -d '\r' <out)"
    "$heaptap" export -f $format a.pb >$format.out
    [ -s $format.out ] || fail "no $format in a file"
  done
  script -qec "'$heaptap' export -f folded a.pb" /dev/null </dev/null >out
  matches '^load 1000000' out
  ! script -qec "'$heaptap' merge a.pb a.pb" /dev/null </dev/null >out || fail 'a profile is written to a terminal'
  equal 'heaptap: a profile is not for a terminal: use -o FILE, or redirect the output' "$(tr -d '\r' <out)"
}

test_the_advice_is_a_smaller_period() {
  printf '#include <stdlib.h>
    int main(void) { for (int i = 0; i < 100; i++) { void *volatile kept = malloc(6400); (void)kept; } }\n' >keep.c
  gcc -w -o keep keep.c
  for attempt in 1 2 3 4 5; do # one of some thousand has no sample, or thirty
    record -q -p 64K -o x.pb.gz ./keep
    "$heaptap" report x.pb.gz >out
    ! grep -q 'few samples' out || break
  done
  matches 'few samples of what is in use \([0-9]+\): record with a smaller period for more, such as -p 2K$' out
}

# Eight snapshots of ./p that keep() leaks in, or replaces its blocks in, in ./$1.
series() {
  cat >p.c <<'C'
#include "heaptap.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile kept[16000];
__attribute__((noinline)) static void keep(int i)
{
	free(kept[i]);
	kept[i] = malloc(1000);
}
int main(int argc, char **argv)
{
	char path[64];
	int leaks = !strcmp(argv[1], "leak"), i;
	for (int round = 1; round <= 8; round++) {
		for (i = 0; i < 2000; i++)
			keep(leaks ? (round - 1) * 2000 + i : i);
		heaptap_snapshot("");
		snprintf(path, sizeof(path), "%s/%04d.pb.gz", argv[1], round);
		while (access(path, F_OK) != 0)
			usleep(1000);
	}
	for (i = 0; i < 16000; i++)
		free(kept[i]);
	return argc > 9;
}
C
  [ -x p ] || gcc -O1 -g -I"$top/proto" -o p p.c
  record -q -p 4K -b copy -i 0 -o "$1/%n.pb.gz" ./p "$1"
}

answer_of() {
  "$heaptap" report --json "$@" | python3 -c '
import json, sys
answer = json.load(sys.stdin)["answer"]
print("\n".join(answer[name] for name in ("held", "grows", "unseen") if answer[name]))'
}

test_the_answer_comes_first() {
  series leak
  "$heaptap" report leak >out
  sed '/^$/q' out | sed '$d' >sentences
  matches '^Nothing sampled is in use at the end; 1[45]\.[0-9] MiB \+- [0-9.]+ KiB at the peak, all of it by keep\.$' sentences
  matches '^keep grows since [0-9:]{8}, by [0-9.]+ MiB a (second|minute) \+- [0-9.]+ %\.$' sentences
  equal "$(cat sentences)" "$(answer_of leak)" 'the same for programs'
  for options in '--tree' '--sort alloc' '--cum' '--lines'; do
    # shellcheck disable=SC2086
    equal "$(cat sentences)" "$("$heaptap" report $options leak | sed '/^$/q' | sed '$d')" "report $options"
  done
  # A single file, a peak, and too few of them.
  "$heaptap" report leak/0004.pb.gz >out
  matches '^What grows is not known yet: that takes 4 snapshots, and there is 1 \(give the folder of all; a longer run gives more\)\.$' out
  "$heaptap" report leak/0004.pb.gz leak/0005.pb.gz >out
  matches '^What grows is not known yet: that takes 4 snapshots, and there are 2 \(a longer run gives more\)\.$' out
  "$heaptap" report leak/peak.pb.gz --state peak >out
  matches '^1[45]\.[0-9] MiB \+- [0-9.]+ KiB in use at the peak, all of it by keep\.$' out
  ! grep -i 'grows' out || fail 'growth of a peak'
  # Two processes are one series.
  mv leak one
  series leak
  mv leak two
  "$heaptap" report one two >out
  matches '^keep grows since ' out
  # For a test.
  equal 3 "$(status_of "$heaptap" report --fail-on growth one)"
  matches '^heaptap: keep grows since ' err
  equal 1 "$(status_of "$heaptap" report --fail-on growth one/0001.pb.gz)"
  matches '^heaptap: --fail-on growth: What grows is not known yet' err
  series steady
  equal 0 "$(status_of "$heaptap" report --fail-on growth steady)"
  matches '^Nothing grows by more than chance, over 8 snapshots in [0-9]+ s\.$' out
  # What changed is said first, too.
  "$heaptap" diff one/0002.pb.gz one/0008.pb.gz | head -1 >out
  matches '^In use rose by 1[0-9.]+ MiB \+- [0-9.]+ %, more than chance: keep \+1[0-9.]+ MiB\.$' out
  equal "$(cat out)" "$("$heaptap" diff --json one/0002.pb.gz one/0008.pb.gz | python3 -c '
import json, sys; print(json.load(sys.stdin)["answer"]["grows"])')"
  "$heaptap" diff one two >out
  matches '^In use: no change in all\. These are the ends of the programs: --state peak compares their peaks\.$' out
  "$heaptap" diff --state peak one two >out
  ! grep 'compares their peaks' out || fail 'advice that was followed'
}

test_narrow_screens() {
  heap a.pb 'py::_run_forever_and_ever:/usr/lib/python3.12/site-packages/uvloop/asyncio/selector_events.py' 1000000 \
    'gateway::detail::connection::RouteCache::resolve_all_of_them_again' 500000
  COLUMNS=80 LC_ALL=C.UTF-8 "$heaptap" report a.pb >out
  matches '  py::_run_forever_and_ever:…/selector_events\.py$' out
  matches '  …connection::RouteCache::resolve_all_of_them_again$' out
  equal 0 "$(grep -c '.\{81\}' out)" 'lines wider than 80 columns'
  COLUMNS=80 LC_ALL=C "$heaptap" report a.pb >out
  matches '  py::_run_forever_and_ever:\.\.\./selector_events\.py$' out
  ! LC_ALL=C grep '[^ -~]' out || fail 'not ASCII'
  matches '^      flat     error  share  function > callee < callers$' out
  COLUMNS=120 "$heaptap" report a.pb >out
  matches '^      flat     error  share        cum  function > callee < callers$' out
}
