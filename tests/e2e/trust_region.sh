# SPDX-License-Identifier: Apache-2.0
# Root's programs take the memory that they share with a sampler from root alone, whatever $HEAPTAP says and whoever has the
# number in it (trust_lend.c is the attacker). Each attack REPEAT times.
# timeout: 60

prepare() {
  need_root
  stage trust_secret trust_lend
  lib=$PWD/bin/libheaptap.so
  # how an unprivileged user starts a program that has not loaded our library
  attacker="setpriv --reuid $other_user --regid 65534 --clear-groups --inh-caps=-all env -u LD_PRELOAD"
}

# rounds FUNCTION: each in a folder of its own, where the attacker may write
rounds() {
  local round
  for round in $(seq "${REPEAT:-1}"); do
    mkdir -m 1777 "round$round"
    (cd "round$round" && "$@") || fail "round $round of ${REPEAT:-1}"
    rm -rf "round$round"
  done
}

# inside NAMESPACES COMMAND...: in bash in these new namespaces, with what is known here
inside() {
  local namespaces=$1
  shift
  # shellcheck disable=SC2086
  unshare $namespaces true 2>/dev/null || skip "unshare $namespaces is refused"
  {
    echo set -eu
    declare -p heaptap targets lib attacker other_user factor readers
    declare -f
    echo "$*"
  } >inside.sh
  # shellcheck disable=SC2086
  ${recorder:-} unshare $namespaces bash inside.sh
}

# lends COMMAND...: starts the attacker in the background, as the next process that is made here; sets lender
lends() {
  "$@" 2>lender.err &
  lender=$!
}

lending() {
  wait_for 10 eval "test -e lends || ! kill -0 $lender 2>/dev/null"
  test -e lends || fail "the attacker: $(cat lender.err)"
}

# got_nothing [KIND]: the attacker, from root's program, which has ended
got_nothing() {
  touch end
  wait $lender || fail "the attacker ended with $?: $(cat lender.err)"
  equal nothing "$(cat lent)" "what the attacker has got${1:+, $1}"
  rm -f lends lent end
}

# ---- the variable is the attacker's

# Each kind of memory that is no sampler's, in a program that has the variable from an attacker.
foreign_memory() {
  local kind
  for kind in region offsets unsealed; do
    lends $attacker "$targets/trust_lend" 13 0123456789abcdef $kind
    lending
    LD_PRELOAD=$lib HEAPTAP=/proc/$lender/fd/13:0123456789abcdef "$targets/trust_secret" || fail "$kind: status $?"
    got_nothing $kind
  done
}

test_the_variable_is_an_attackers() {
  prepare
  rounds foreign_memory
}

own_etc() {
  mkdir -p etc
  mount --make-rprivate /
  mount -t tmpfs none etc
  cp -a /etc/. etc
  echo "$lib" >etc/ld.so.preload
  mount --bind etc /etc
}

# A program with the setuid bit, which becomes root for good and executes another, on a machine with /etc/ld.so.preload.
become_root() {
  lends $attacker "$targets/trust_lend" 13 0123456789abcdef region
  lending
  $attacker HEAPTAP=/proc/$lender/fd/13:0123456789abcdef LD_PRELOAD="$lib" \
    ../bin/become become "$targets/trust_secret" || fail "status $?"
  got_nothing
}

test_a_setuid_program_becomes_root() {
  prepare
  findmnt -no OPTIONS -T . | grep -q nosuid && skip 'the file system ignores setuid'
  cp bin/trust_secret bin/become
  chmod 4755 bin/become
  inside --mount 'own_etc; rounds become_root'
}

# Who has lost LD_PRELOAD on the way is in nobody's session, not even a genuine one; who has both is in it, once.
alone_and_both() {
  "$heaptap" record -q -p 1 -b copy -o alone/ env -u LD_PRELOAD "$targets/trust_secret"
  equal '' "$(find alone -name '*trust_secret*')" 'profiles of the program without LD_PRELOAD'
  "$heaptap" record -q -p 1 -b copy -o both/ "$targets/trust_secret"
  reached_exactly "$(only both/heaptap.trust_secret.*.exit.pb.gz)" take_secretly 'alloc_objects 1000'
}

test_the_variable_alone_is_nothing() {
  prepare
  inside --mount 'own_etc; rounds alone_and_both'
}

# Nothing is opened but what has an owner that is trusted, not even to look at it: to open a named pipe lets its writer go.
opens_nothing() {
  local path writer
  $attacker mkfifo place
  lends $attacker "$targets/trust_lend" 13 0123456789abcdef place
  lending
  $attacker dd of=place if=/dev/null 2>/dev/null &
  writer=$!
  wait_for 10 grep -q wait_for_partner "/proc/$writer/wchan"
  for path in "$PWD/place" /proc/self/cwd/place "/proc/$lender/cwd/place" "/proc/$lender/fd/13" "/proc/$lender/fd/13/" \
    "/proc/$lender/fd/../fd/13"; do
    LD_PRELOAD=$lib HEAPTAP=$path:0123456789abcdef "$targets/trust_secret" || fail "$path: status $?"
    kill -0 $writer 2>/dev/null || fail "$path was opened"
  done
  touch end
  wait $lender
  : <place # so it is opened
  wait $writer
}

test_no_other_path_is_opened() {
  prepare
  rounds opens_nothing
}

# ---- the number is the attacker's

# place_of VALUE: sets pid, fd, pool and cookie, of /proc/PID/fd/FD:COOKIE,...
place_of() {
  pool=${1%%:*} cookie=${1##*:}
  cookie=${cookie%%,*}
  pid=${pool#/proc/}
  pid=${pid%%/*} fd=${pool##*/}
}

# lends_as PID COMMAND...: with that number, in a pid namespace of our own; once nobody else has it
lends_as() {
  local wanted=$1
  shift
  has_it() {
    echo $((wanted - 1)) >/proc/sys/kernel/ns_last_pid
    lends "$@"
    [ $lender != "$wanted" ] || return 0
    kill -KILL $lender
    { wait $lender; } 2>/dev/null || return 1
  }
  wait_for 10 has_it "$@"
}

# In a pid namespace the sampler's number is free. Even root's memory may have been in the attacker's hands: he is in root's
# session, so he has regions; and root copies files, and makes named pipes for everybody.
in_a_pid_namespace() {
  local kind pid fd pool cookie
  place_of "$HEAPTAP"
  for kind in region offsets unsealed borrowed copied; do
    rm -f tickets written page
    mkfifo -m 666 tickets
    lends_as "$pid" $attacker "$targets/trust_lend" "$fd" "$cookie" $kind "$pool"
    if [ $kind = copied ]; then
      wait_for 10 test -s written
      cp written page.new
      mv page.new page
    fi
    lending
    "$targets/trust_secret" || fail "$kind: status $?"
    got_nothing $kind
  done
}

test_the_number_is_taken_in_a_pid_namespace() {
  prepare
  recorder="$heaptap record -q -p 1 -b copy --only trust_secret -o out/"
  inside '--pid --fork --mount-proc' 'rounds in_a_pid_namespace'
  # They were given their regions by root's sampler, at its socket.
  reached_exactly "$(find out -name 'heaptap.trust_secret.*.exit.pb.gz' | head -n 1)" take_secretly 'alloc_objects 1000'
}

# COMMAND outlives the sampler, and somebody else has its number.
after_the_sampler() {
  local kind pid fd pool cookie
  for kind in region offsets unsealed; do
    rm -f value go
    mkfifo go
    "$heaptap" record -q -p 1 -b copy -o out/ \
      bash -c 'echo "$HEAPTAP" >value.new; mv value.new value; read -r line <go; "$1"' sh "$targets/trust_secret" 2>/dev/null &
    front=$!
    wait_for 10 test -e value
    place_of "$(cat value)"
    kill -KILL "$pid"
    gone() { ! kill -0 "$pid" 2>/dev/null; }
    wait_for 10 gone
    lends_as "$pid" $attacker "$targets/trust_lend" "$fd" "$cookie" $kind
    lending
    echo >go
    wait $front || fail "$kind: COMMAND ended with $?"
    got_nothing $kind
  done
}

test_the_number_is_taken_after_the_sampler() {
  prepare
  inside '--pid --fork --mount-proc' 'rounds after_the_sampler'
}
