# SPDX-License-Identifier: Apache-2.0
# What end-to-end tests share; sourced by tests/run with `set -eu`, in an empty folder of the test's own.

top=$HEAPTAP_TOP
heaptap=$HEAPTAP_PROGRAMS/heaptap
targets=$HEAPTAP_BUILD/tests/targets
readers=$HEAPTAP_BUILD/tests/readers
# Debian's own programs, whatever else a developer has in front of them.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export PPROF_TMPDIR=$PWD PPROF_BINARY_PATH=$PWD GOCACHE=$HEAPTAP_BUILD/gocache XDG_CACHE_HOME=$PWD/cache
unset DEBUGINFOD_URLS

fail() {
  echo "fail: $*" >&2
  exit 1
}

skip() {
  echo "skip: $*" >&2
  exit 77
}

need_root() {
  [ "$(id -u)" = 0 ] || skip 'needs root'
}

# need_x86_64 WHAT: that is for x86-64 only
need_x86_64() {
  [ "$(uname -m)" = x86_64 ] || skip "$1 is for x86-64 only"
}

# equal WANTED GOT [WHAT]
equal() {
  [ "$1" = "$2" ] || fail "${3:-value}: wanted '$1', got '$2'"
}

# matches REGEX FILE: the file has such a line
matches() {
  grep -qE -- "$1" "$2" || { echo "--- $2:" >&2; cat "$2" >&2; fail "no line of $2 matches '$1'"; }
}

# preload_heaptap LIBRARY: $heaptap becomes one whose own processes have the library. They leave to COMMAND what LD_PRELOAD
# names, unless they were executed for that already (sampler/inject/foreign_preload.h).
preload_heaptap() {
  printf '#!/bin/sh\nexec env LD.AUDIT= LD_PRELOAD=%q %q "$@"\n' "$1" "$heaptap" >preloaded
  chmod 755 preloaded
  heaptap=$PWD/preloaded
}

# status_of COMMAND...: prints its exit status; stdout goes to ./out, stderr to ./err
status_of() {
  local status=0
  "$@" >out 2>err || status=$?
  echo $status
}

# command_names: of all commands
command_names() {
  "$heaptap" --help | sed -n '4,$s/^.\{11\}\([a-z]*\) .*/\1/p'
}

# record OPTIONS... COMMAND...: without early snapshots, whose number would depend on how loaded the machine is
record() {
  "$heaptap" record -i 60s "$@"
}

# record_whole FILE OPTIONS... COMMAND...: into FILE, again if stacks were lost, for tests of exact values. By the copy
# backend: the rings overflow when a program does nothing but allocate and the machine is loaded.
record_whole() {
  local file=$1 attempt
  shift
  for attempt in $(seq 20); do
    record -q -b copy -o "$file" "$@"
    comment_of "$file" | grep -qE '^samples: [0-9]+ taken, 0 lost stacks(,|$)' && return
  done
  comment_of "$file" >&2
  fail "stacks were lost in $attempt runs"
}

# Deadlines are for hangs, not for speed: all of them are so many times as long as they say (tests/run).
factor=${TEST_TIME_FACTOR:-5}

# seconds N: N seconds of a quiet machine
seconds() {
  echo $(($1 * factor))
}

# wait_for SECONDS COMMAND...: until the command succeeds
wait_for() {
  local deadline=$((SECONDS + $1 * factor))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || fail "waited in vain for: $*"
    sleep 0.02
  done
}

# Runs a command without root's rights. A checkout may lie where nobody else can read, so heaptap is copied here. What a
# user may lock in memory is one account for all of the user's processes: a test beside this one has another user.
other_user=${HEAPTAP_TEST_UID:-65534}
unprivileged() {
  if [ "$(id -u)" != 0 ]; then
    "$@"
    return
  fi
  setpriv --reuid "$other_user" --regid 65534 --clear-groups --inh-caps=-all "$@"
}

# Makes ./bin with heaptap, its library and test programs, readable by everyone; use "$heaptap" and "$targets" after.
stage() {
  mkdir -p bin
  cp "$heaptap" "$HEAPTAP_PROGRAMS"/libheaptap*.so bin/
  for target; do
    cp "$targets/$target" bin/
  done
  chmod -R a+rX bin
  heaptap=$PWD/bin/heaptap
  targets=$PWD/bin
}

# memory_cgroup FILE_V1 FILE_V2: makes one, for who calls to remove; sets cgroup, its folder, and limit, that file in it
memory_cgroup() {
  need_root
  cgroup=/sys/fs/cgroup/memory/heaptap-test.$$
  limit=$cgroup/$1
  if ! mkdir "$cgroup" 2>/dev/null; then
    cgroup=/sys/fs/cgroup/heaptap-test.$$
    limit=$cgroup/$2
    mkdir "$cgroup" 2>/dev/null || skip 'no memory cgroup can be made'
  fi
  echo 64M >"$limit" && [ "$(cat "$limit")" = 67108864 ] || { rmdir "$cgroup"; skip "$limit cannot be set"; }
}

# The one file that matches a pattern.
only() {
  local files=("$@")
  [ ${#files[@]} = 1 ] && [ -e "${files[0]}" ] || fail "wanted one file, got: $* (in $(ls | tr '\n' ' '))"
  echo "${files[0]}"
}

# Every profile that a test writes is shown to all readers.
profile_check() {
  local profile
  for profile; do
    [ -s "$profile" ] || fail "no profile $profile"
    if [ -x "$readers/check_profile" ]; then
      "$readers/check_profile" "$profile" >check.log 2>&1 || { cat check.log >&2; fail "$profile is not valid"; }
    fi
    if [ -x "$readers/oracle" ]; then
      "$readers/oracle" "$profile" >check.log 2>&1 || { cat check.log >&2; fail "pprof's library refuses $profile"; }
    fi
    go tool pprof -top "$profile" >check.log 2>&1 || { cat check.log >&2; fail "go tool pprof refuses $profile"; }
    gunzip -c "$profile" |
      protoc --proto_path="$top/proto" --decode=perftools.profiles.Profile profile.proto >check.txt 2>check.log ||
      { cat check.log >&2; fail "protoc cannot decode $profile"; }
    rm -f check.log check.txt
  done
}

# pprof_top PROFILE [OPTION...]
pprof_top() {
  local profile=$1
  shift
  go tool pprof -top "$@" "$profile" 2>/dev/null
}

# share_of REGEX PROFILE [SAMPLE_TYPE]: percentage of the total in stacks that have a function matching REGEX
share_of() {
  "$readers/oracle" -reach "$1" "$2" | awk -F '\t' -v type="${3:-alloc_space}" \
    '$1 == "reach" && index($2, type) == 1 { print $5 + 0 }'
}

# total_of PROFILE SAMPLE_TYPE
total_of() {
  "$readers/oracle" "$1" | awk -F '\t' -v type="$2" '$1 == "total" && index($2, type "/") == 1 { print $3 }'
}

# sums TYPE FILE...: the total of the sample type over all files
sums() {
  local type=$1 sum=0 profile
  shift
  for profile; do
    sum=$((sum + $(total_of "$profile" "$type")))
  done
  echo $sum
}

# missed_programs FILE: how many programs found no region or did not finish attaching, by what FILE says
missed_programs() {
  grep -oE '[0-9]+ programs? (without a free region|that did not finish)' "$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

# comment_of PROFILE: its comments, one per line
comment_of() {
  go tool pprof -comments "$1" 2>/dev/null
}

# at_least WANTED GOT WHAT: numbers, fractions too
at_least() {
  awk -v wanted="$1" -v got="$2" 'BEGIN { exit !(got + 0 >= wanted + 0) }' || fail "$3: wanted at least $1, got $2"
}

# at_most WANTED GOT WHAT: likewise
at_most() {
  awk -v wanted="$1" -v got="$2" 'BEGIN { exit !(got + 0 <= wanted + 0) }' || fail "$3: wanted at most $1, got $2"
}

# reached_exactly PROFILE FUNCTION "TYPE VALUE"...: that many objects or bytes are in stacks with the function, at period 1.
# On a busy machine some stacks are lost: these are counted, and each may be the function's or another's.
reached_exactly() {
  local profile=$1 function=$2
  shift 2
  {
    "$readers/oracle" -reach "^$function\$" "$profile"
    "$readers/oracle" -reach '^\[lost stack\]$' "$profile" | sed 's/^reach/lost/'
  } | awk -F '\t' '$1 == "reach" || $1 == "lost" { print $1, $2, $3 }' >reached
  printf '%s\n' "$@" | awk '
    FILENAME == "reached" { value[$1, $2] = $3; next }
    { got = value["reach", $1] + 0; lost = value["lost", $1] + 0
      if (got > $2 || got + lost < $2 || ($2 && !got)) { printf "%s: wanted %d, got %d, and %d are lost\n", $1, $2, got, lost; bad = 1 } }
    END { exit bad }' reached - >&2 || { profile_show "$profile" >&2; fail "$profile: $function"; }
}

# profile_show PROFILE: what it says of itself, and its largest stacks: for the log of a test that failed
profile_show() {
  comment_of "$1"
  "$heaptap" export -f folded "$1" | sort -k2 -n -r | head -5
}

# snapshot_all_here: `heaptap snapshot --all` without the sessions of tests beside this one in sight, which root's would
# ask too: with a /tmp in which there is nothing but our folders
snapshot_all_here() {
  unshare -m true 2>/dev/null || { "$heaptap" snapshot --all; return; }
  "$HEAPTAP_TOP/tests/empty_tmp" "$HEAPTAP_TOP" "$PWD" "$XDG_RUNTIME_DIR" -- "$heaptap" snapshot --all
}

# child_of PID NAME: the pids of its children that have this name; COMMAND is a front's, too
child_of() {
  ps -e -o pid=,ppid=,comm= | awk -v pid="$1" -v name="$2" '
    { parent[$1] = $2; called[$1] = $3 }
    END { for (each in parent) {
      above = parent[each]
      if (called[above] == "heaptap-parent") above = parent[above]
      if (above == pid && called[each] == name) print each } }' | sort -n
}

# sampler_of FRONT: its sampler's pid
sampler_of() {
  child_of "$1" heaptap-sampler
}

# Three snapshots and the exit of one process that allocates between them; a period of 1, so that sums are exact.
snapshots() {
  local attempt
  # A snapshot that a starved sampler has not answered in time is not made.
  for attempt in $(seq 20); do
    rm -f p.*.pb.gz
    record -q -b copy -p 1 -o 'p.%n.pb.gz' "$targets/snapshot_api" \
      hold 1000 snap a hold 500 snap b drop hold 700 snap c hold 10 >snaps
    rm -f p.peak.pb.gz
    [ "$(ls p.*.pb.gz | wc -l)" != 4 ] || break
  done
  ls p.*.pb.gz
}
