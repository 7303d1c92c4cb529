# SPDX-License-Identifier: Apache-2.0
# Which files of a folder count: twins with names, copies, sums; and what cannot be read, or is no file at all.

# fact_of KEY OPERANDS...: a number of a report
fact_of() {
  local key=$1
  shift
  "$heaptap" report --json "$@" 2>err | python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["totals"]["inuse_space"]["all"] if sys.argv[1] == "bytes" else report[sys.argv[1]])' "$key"
}

# In use at the end of the two processes: of one, and of both.
one=1001000
both=1102000

# record_family OPTIONS...: two processes, each with a snapshot, the peak and the end
record_family() {
  record -q -p 1 -b copy "$@" -o dir/ "$targets/family" 1 1
  equal 6 "$(ls dir/*.pb.gz | wc -l)" 'profiles'
}

test_twins_with_names() {
  record_family --symbols raw
  first=$(ls dir/*.exit.pb.gz | head -1)
  "$heaptap" report "$first" >report
  matches "^  no function names in this profile: heaptap symbolize $first$" report
  "$heaptap" report dir >report
  matches '^  no function names in this profile: heaptap symbolize dir/' report
  "$heaptap" symbolize dir/*.pb.gz 2>err
  profile_check dir/*.symbolized
  for operands in dir dir/ 'dir/*' 'dir/*.symbolized' "$first dir"; do
    # shellcheck disable=SC2086
    "$heaptap" report $operands >report 2>err
    equal '' "$(cat err)" "words about $operands"
    matches ' keep < main' report
    ! grep 'no function names' report || fail "$operands: the hint stays"
    # shellcheck disable=SC2086
    equal "$both 4 2" "$(fact_of bytes $operands) $(fact_of profiles $operands) $(fact_of processes $operands)" "$operands"
  done
  (cd dir && "$heaptap" report) >report
  matches ' keep < main' report
  "$heaptap" report "$first" "$first.symbolized" >report
  ! grep 'snapshots of this process' report || fail 'two states of one'
  matches ' keep < main' report
  # The raw ones alone are what was asked for; then the names are not far.
  "$heaptap" report "$first" >report
  matches "^  no function names in this profile, but in its other file: heaptap report $first.symbolized$" report
  "$heaptap" ls dir >ls
  matches '^Session 1  .*: 2 processes, 6 profiles$' ls
  "$heaptap" ls -v dir >ls
  equal 6 "$(grep -c '  \(heap\|peak\)  .*\.pb\.gz\.symbolized$' ls)" 'with names'
  equal 6 "$(grep -c '  raw  .*\.pb\.gz$' ls)" 'raw'
  # Each side of a comparison has its own.
  "$heaptap" diff "$first" "$first.symbolized" >diff
  matches "^base  *family  pid" diff
  # Nothing found is no reason to look again.
  cp "$first" none.pb.gz.symbolized
  "$heaptap" report none.pb.gz.symbolized >report
  matches '^  no function names in this profile: heaptap symbolize found none on its machine$' report
}

test_copies() {
  record_family
  first=$(ls dir/*.exit.pb.gz | head -1)
  cp "$first" dir/copy.pb.gz
  equal "$both 2" "$(fact_of bytes dir) $(fact_of processes dir)" 'a copy'
  matches "^heaptap: counted once: $first is a copy of dir/copy.pb.gz$" err
  equal "$one 1 1" "$(fact_of bytes "$first" "$first") $(fact_of snapshots "$first" "$first") $(fact_of profiles "$first" "$first")"
  gunzip -c "$first" >dir/other.pb
  cp "$first" dir/copy2.pb.gz
  cp "$first" dir/copy3.pb.gz
  cp "$first" dir/copy4.pb.gz
  equal "$both 2" "$(fact_of bytes dir) $(fact_of processes dir)" 'copies'
  matches '^heaptap: counted once: 5 copies of other profiles, dir/copy2.pb.gz, dir/copy3.pb.gz, dir/copy4.pb.gz, \.\.\.$' err
  equal $((both)) "$("$heaptap" export -f folded dir 2>err | awk '{ sum += $NF } END { print sum }')" 'exported'
  "$heaptap" merge -o sum.pb.gz dir 2>err
  equal $both "$(total_of sum.pb.gz inuse_space)" 'merged'
  "$heaptap" ls -v dir >ls 2>err
  matches '^Session 1  .*: 2 processes, 6 profiles$' ls
  equal 5 "$(grep -c '  copy  ' ls)" 'listed'
  # The sum lies among what it is made of, and without one of them.
  rm dir/copy* dir/other.pb
  mv sum.pb.gz dir
  equal "$both 2" "$(fact_of bytes dir) $(fact_of processes dir)" 'with the sum'
  matches '^heaptap: left out: dir/sum.pb.gz, a sum of processes beside profiles of processes; ' err
  "$heaptap" ls dir >ls 2>err
  matches '^Session 1  .*: 2 processes, 7 profiles$' ls
  matches '^ {9}[0-9:]{8}    1\.1 MiB .*  merged: 2 profiles of 2 processes' ls
  equal "$both" "$(fact_of bytes dir/sum.pb.gz)" 'the sum alone'
  "$heaptap" report -v dir/sum.pb.gz >report
  ! grep 'samples: .* copied by the hook' report || fail "one part's samples are said to be the sum's"
  equal $((both + one)) "$(fact_of bytes dir/sum.pb.gz "$first")" 'the sum and one of two'
  matches '^heaptap: dir/sum.pb.gz is a sum of processes: a process in it that is here itself counts twice$' err
  # A copy is another state for nobody, but the other side of a comparison.
  cp "$first" copy.pb.gz
  "$heaptap" diff "$first" copy.pb.gz >diff 2>err
  matches '^Nothing changed' diff
}

test_what_cannot_be_read() {
  record_family
  set -- dir/*.exit.pb.gz
  : >dir/empty.pb.gz
  head -c 500 "$1" >dir/cut.pb.gz
  ln -s nowhere dir/link.pb.gz
  mkfifo dir/fifo.pb.gz
  equal 1 "$(status_of "$heaptap" ls dir)"
  matches '^Session 1  .*: 2 processes, 6 profiles$' out
  matches '^heaptap: cannot read dir/empty.pb.gz: the file is empty' err
  matches '^heaptap: cannot read dir/cut.pb.gz: the gzip data is cut short' err
  equal 2 "$(wc -l <err)" 'lines'
  equal 1 "$(status_of "$heaptap" report dir)"
  matches '^  INCOMPLETE: 2 that could not be read are not in these numbers$' out
  matches '^  in use     1\.1 MiB' out
  equal 2 "$(fact_of unread dir)"
  equal 3 "$(status_of "$heaptap" report --fail-over 1K dir)" 'what is there is too much'
  equal 1 "$(status_of "$heaptap" report --fail-over 1G dir)" 'who knows'
  equal 1 "$(status_of "$heaptap" report "$1" missing.pb.gz)"
  matches '^  INCOMPLETE: 1 that could not be read is' out
  equal 1 "$(status_of "$heaptap" ls missing.pb.gz)"
  equal 'heaptap: cannot read missing.pb.gz: No such file or directory' "$(cat err)"
  equal 1 "$(status_of "$heaptap" report 4711)"
  equal 'heaptap: cannot read 4711: No such file or directory; heaptap snapshot PID writes a profile of a running process' "$(cat err)"
  rm dir/empty.pb.gz dir/cut.pb.gz
  equal 0 "$(status_of "$heaptap" report dir)"
  ! grep 'INCOMPLETE' out || fail 'complete'
}

test_what_is_forbidden() {
  need_root
  stage leaky
  record -q -p 1 -b copy -o dir/ "$targets/leaky" 1 1
  record -q -p 1 -b copy -o dir/ "$targets/leaky" 1 1
  set -- dir/*.exit.pb.gz
  chmod 755 . dir
  chmod 644 dir/*
  chmod 600 "$1"
  equal 1 "$(status_of unprivileged "$heaptap" ls dir)"
  equal "heaptap: cannot read $1: Permission denied" "$(cat err)"
  matches "^ +${2//[^0-9]/} .* leaky " out
  mkdir no
  cp "$2" no
  for mode in 000 444; do # neither to be listed nor opened; listed only
    chmod $mode no
    equal 1 "$(status_of unprivileged "$heaptap" report no "$2")" "status for a folder of mode $mode"
    matches '^heaptap: cannot read no(/.*)?: Permission denied$' err
    matches '^leaky' out
    equal 1 "$(status_of unprivileged "$heaptap" report no)" "status for a folder alone"
    matches '^heaptap: cannot read no(/.*)?: Permission denied$' err
  done
}

test_what_is_no_file() {
  record -q -p 1 -b copy -o a.pb.gz "$targets/leaky" 1 1
  mkfifo fifo
  for command in report ls check symbolize 'export -f folded' 'merge -o x' 'diff a.pb.gz' 'report --leaks --suppressions'; do
    # shellcheck disable=SC2086
    equal 1 "$(status_of timeout $(seconds 60) "$heaptap" $command fifo)" "$command"
    cat out err >said
    matches 'fifo:? .*it is a FIFO' said
  done
  # What a shell opened is read to its end.
  for input in - /dev/stdin /dev/fd/0 /proc/self/fd/0; do
    "$heaptap" report $input <a.pb.gz >report
    matches '^leaky' report
    cat a.pb.gz | "$heaptap" report $input >report
    matches '^leaky' report
    cat a.pb.gz >fifo &
    "$heaptap" report $input <fifo >report
    matches '^leaky' report
    wait $!
  done
  "$heaptap" report <(cat a.pb.gz) >report
  matches '^leaky' report
  "$heaptap" diff <(cat a.pb.gz) <(gunzip -c a.pb.gz) >diff
  matches '^Nothing changed' diff
  "$heaptap" report --leaks --suppressions <(echo 'leak:nothing') a.pb.gz >report
  matches '^leaky' report
  equal 1 "$(status_of "$heaptap" report - <&-)" 'closed'
  matches '^heaptap: cannot read -: Bad file descriptor$' err
  command -v script >/dev/null || skip 'no script (Debian: bsdutils)'
  ! timeout $(seconds 60) script -qec "'$heaptap' report -" /dev/null </dev/null >out || fail 'waits for a terminal'
  matches 'cannot read -: it is a terminal; give a file or a pipe' out
}

# Names that are too long are cut between characters: one such profile must not spoil the list of all.
test_json_of_long_names() {
  record -q -p 1 -b copy -o a.pb.gz "$targets/leaky" 1 1
  python3 - <<'PYTHON'
import gzip
def field(number, data):
    length = len(data)
    return bytes([number << 3 | 2, length & 127 | 128, length >> 7]) + data
for odd in range(2):
    for kind in "merged: ", "snapshot: ", "snapshot: exit, the process ":
        long = b"x" * odd + "é".encode() * 700
        comments = [b"heaptap 0.1.0", b"pid=1 comm=" + long + b" host=box", kind.encode() + long]
        strings = [b"", b"inuse_space", b"bytes"] + comments
        data = b"\x0a\x04\x08\x01\x10\x02" + bytes([13 << 3, 3, 13 << 3, 4, 13 << 3, 5])
        data += b"".join(field(6, text) for text in strings)
        gzip.open(f"long.{odd}.{len(kind)}.pb.gz", "wb").write(data)
PYTHON
  "$heaptap" ls --json *.pb.gz >list
  for profile in *.pb.gz; do
    "$heaptap" report --json "$profile" >"$profile.json"
  done
  python3 -c 'import json, sys; [json.load(open(name, encoding="utf-8", errors="strict")) for name in sys.argv[1:]]' list *.json ||
    fail 'this is no JSON'
}

# To a pipe, a file, behind what is there; and no name of the machine's is replaced.
test_output_to_a_descriptor() {
  local before after
  record_family
  first=$(ls dir/*.exit.pb.gz | head -1)
  before=$(ls -l /dev/stdout)
  "$heaptap" merge -o merged.pb.gz "$first"
  "$heaptap" merge -o /dev/stdout "$first" >file.pb.gz
  "$heaptap" merge -o /dev/stdout "$first" | cat >pipe.pb.gz
  "$heaptap" merge -o /dev/fd/3 "$first" 3>three.pb.gz
  cmp merged.pb.gz file.pb.gz
  cmp merged.pb.gz pipe.pb.gz
  cmp merged.pb.gz three.pb.gz
  "$heaptap" report -o /dev/stderr "$first" 2>report
  matches '^  in use' report
  "$heaptap" record -q -o /dev/stdout true >recorded 2>err || equal 2 $? 'status where /dev is not writable'
  after=$(ls -l /dev/stdout)
  [ "$before" = "$after" ] || ln -sfn /proc/self/fd/1 /dev/stdout
  equal "$before" "$after" /dev/stdout
}

# The old file stays, and no temporary file.
test_output_beyond_a_limit_of_size() {
  record_family
  first=$(ls dir/*.exit.pb.gz | head -1)
  echo old >kept
  for words in 'merge' 'report' 'export --format speedscope'; do
    # shellcheck disable=SC2086
    equal 1 "$(status_of sh -c "ulimit -f 1; exec \"\$@\"" sh "$heaptap" $words -o kept dir/)" "status of $words"
    matches '^heaptap: cannot write kept: File too large$' err
    equal old "$(cat kept)"
  done
  equal 0 "$(ls -A | grep -c '\.tmp$' || :)" 'temporary files'
}
