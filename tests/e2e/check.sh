# SPDX-License-Identifier: Apache-2.0
# heaptap check: what it prints and returns for files that are profiles and for files that are not.
# timeout: 240

go_profile=$top/tests/readers/go_heap.pb.gz

# checked STATUS OPTIONS... FILE: ./out is what is printed; nothing goes to stderr
checked() {
  local wanted=$1
  shift
  equal "$wanted" "$(status_of "$heaptap" check "$@")" "status of check $*"
  equal '' "$(cat err)" 'standard error'
}

test_a_profile_of_ours_is_valid() {
  record -q -p 4K -o ours.pb.gz "$targets/leaky" 1000 64
  checked 0 --strict ours.pb.gz
  equal '' "$(cat out)"
  checked 0 --strict -v ours.pb.gz
  matches '^ours\.pb\.gz: valid$' out
}

test_a_profile_of_go_is_valid() {
  checked 0 "$go_profile"
  equal '' "$(cat out)"
  checked 0 -v - <"$go_profile"
  equal '-: valid' "$(cat out)"
}

# broken_is FAULT: what is printed of ./broken
broken_is() {
  checked 1 broken
  equal "broken: $1" "$(cat out)" 'the fault'
}

test_broken_files_have_a_line_each() {
  local bytes
  bytes=$(wc -c <"$go_profile")
  : >broken && broken_is 'the profile is empty'
  head -c $((bytes - 1)) "$go_profile" >broken && broken_is 'gzip: cut short'
  { cat "$go_profile"; printf x; } >broken && broken_is 'gzip: 1 bytes after its end'
  { head -c $((bytes - 8)) "$go_profile"; printf 'crc?size'; } >broken && broken_is 'gzip: damaged'
  printf hello >broken && checked 1 broken && matches '^broken: damaged protobuf at byte ' out
  { gunzip -c "$go_profile"; gunzip -c "$go_profile"; } | gzip >broken && checked 1 broken
  matches '^broken: time_nanos comes twice: concatenated profiles$' out
  checked 1 missing
  equal 'missing: cannot be read: No such file or directory' "$(cat out)"
  # A folder is its profiles.
  mkdir folder
  equal 1 "$(status_of "$heaptap" check folder)"
  matches '^heaptap: no profile in folder' err
  cp "$go_profile" folder/good.pb.gz
  cp "$go_profile" folder/notes
  checked 0 -v folder
  equal 'folder/good.pb.gz: valid' "$(cat out)"
  cp broken folder/bad.pb.gz
  checked 1 folder
  ! grep good out || fail 'a line about a valid file'
  matches '^folder/bad.pb.gz: ' out
}

test_strict_is_about_every_reader() {
  gunzip -c "$go_profile" >plain
  checked 0 plain
  checked 1 --strict plain
  matches '^plain: not compressed with gzip$' out
  { cat "$go_profile"; printf '' | gzip -c; } >two
  checked 0 two
  checked 0 -v two
  matches '^two: note: gzip: 2 members' out
  matches '^two: valid$' out
  checked 1 --strict two
  matches '^two: gzip: 2 members' out
}

test_one_fault_among_many_files_is_a_fault() {
  : >empty
  checked 1 -v "$go_profile" empty "$go_profile"
  equal 3 "$(wc -l <out)" lines
  equal 2 "$(grep -c ': valid$' out)" 'valid files'
}

test_names_do_not_move_the_cursor() {
  local name
  name=$(printf 'a\033[2Jb\302\233c')
  : >"$name"
  checked 1 "$name"
  equal 'a?[2Jb??c: the profile is empty' "$(cat out)"
}

test_usage() {
  equal 2 "$(status_of "$heaptap" check)"
  matches 'no PROFILE given; usage: heaptap check ' err
  equal 2 "$(status_of "$heaptap" check --nonsense x)"
}

# Small files that unpack to far more than there may be: refused, in one line, before that memory is taken.
test_bombs_take_no_more_memory_than_they_may() {
  local kind bomb=$top/tests/readers/bomb.py command
  for kind in labels samples locations strings functions deep product; do
    python3 "$bomb" $kind 8 >$kind.pb.gz
    for command in report 'export -f flamegraph' merge; do
      # shellcheck disable=SC2086
      python3 "$bomb" run 48 "$heaptap" $command -o out --max-memory 24M $kind.pb.gz >ran 2>err ||
        { cat err >&2; fail "$kind: $command takes too much memory"; }
      matches '^1 [0-9]+$' ran
      matches '^heaptap: .*more than 24\.0 MiB; allow more with --max-memory$|^heaptap: this takes more than 24\.0 MiB' err
      equal 1 "$(wc -l <err)" "lines for $kind, $command"
    done
    # One entry of the file may exceed it, which only `labels` does.
    python3 "$bomb" run 72 "$heaptap" check --max-memory 24M $kind.pb.gz >ran 2>err || { cat err >&2; fail "$kind: check"; }
  done
  python3 "$bomb" names 4 >names.pb.gz
  python3 "$bomb" run 100 "$heaptap" export -f folded --max-memory 64M names.pb.gz >ran 2>err || { cat err >&2; fail names; }
  matches '^heaptap: the output takes more memory than --max-memory allows' err
}

test_more_memory_may_be_allowed() {
  python3 "$top/tests/readers/bomb.py" samples 4 >samples.pb.gz
  equal 1 "$(status_of "$heaptap" report --max-memory 16M samples.pb.gz)"
  equal 0 "$(status_of "$heaptap" report --max-memory 256M samples.pb.gz)"
}
