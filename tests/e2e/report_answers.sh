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
    equal "heaptap: $format is nothing to read on a terminal: use -o FILE, or redirect it" "$(tr -d '\r' <out)"
    "$heaptap" export -f $format a.pb >$format.out
    [ -s $format.out ] || fail "no $format in a file"
  done
  script -qec "'$heaptap' export -f folded a.pb" /dev/null </dev/null >out
  matches '^load 1000000' out
  ! script -qec "'$heaptap' merge a.pb a.pb" /dev/null </dev/null >out || fail 'a profile is written to a terminal'
  equal 'heaptap: a profile is binary, nothing for a terminal: use -o FILE, or redirect it' "$(tr -d '\r' <out)"
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
  matches 'few samples: record with a smaller period for more, such as -p 2K$' out
}
