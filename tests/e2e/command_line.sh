# SPDX-License-Identifier: Apache-2.0
# What is typed by habit or by mistake: each gets an answer that says what to type, and nothing is started that was not meant.

# Standard output if it was asked for; otherwise standard error, and status 2.
test_no_command() {
  equal 0 "$(status_of "$heaptap" --help)"
  cp out help
  equal 2 "$(status_of "$heaptap")"
  cmp err help
  [ ! -s out ] || fail 'a wrong command line prints to standard output'
  matches '^begin: heaptap record ./server .* heaptap report$' help
  at_most 24 "$(wc -l <help)" 'lines: a screen has 24'
  equal 0 "$(status_of "$heaptap" -h)"
  cmp out help
  equal 0 "$(awk 'length > 80' help | wc -l)" 'lines wider than 80 columns'
}

# Where profiles go, and how one is written now.
test_help_of_record_and_attach() {
  for command in record attach; do
    "$heaptap" $command --help >help
    matches ' name of profiles, default in the current folder$' help
    matches ' `heaptap snapshot PID` writes one now$' help
    equal 0 "$(awk 'length > 80' help | wc -l)" 'lines wider than 80 columns'
  done
}

test_every_command_has_help_with_examples() {
  local command
  for command in $(command_names); do
    equal 0 "$(status_of "$heaptap" "$command" -h)" "$command -h"
    cp out help
    equal 0 "$(status_of "$heaptap" "$command" --help)"
    cmp out help
    # Examples stand first.
    equal 'examples:' "$(grep -m 1 -o '^[a-z ]*:$' help)" "$command"
    [ "$(sed -n '/^examples:$/,/^$/p' help | grep -c "^  .*heaptap $command")" -ge 2 ] || fail "$command has no two examples"
    equal 0 "$(status_of "$heaptap" "$command" --help-all)"
    cp out all
    "$heaptap" help "$command" | cmp - all
    equal '--help --help-all --version' "$(grep -oE '^ +(-h, )?--[a-z-]+' all | tail -n 3 | sed 's/.* //' | xargs)" "the last options of $command"
    if grep -q -- '--help-all: all options' help; then
      at_most 10 "$(grep -cE '^ +(-[a-zA-Z], )?--[a-z]' help)" "options in the short help of $command"
      [ "$(wc -l <all)" -gt "$(wc -l <help)" ] || fail "the short help of $command is not shorter"
      [ "$(grep -c '^[a-z ]*:$' all)" -ge 4 ] || fail "$command --help-all has no groups"
      equal '' "$(grep '^[a-z ]*:$' all | sort | uniq -d)" "groups of $command --help-all that stand twice"
    else
      cmp help all
    fi
    ! cat help all | awk 'length > 80' | grep . || fail "$command: a line wider than 80 columns"
    # What looks like an option at the beginning of a line is the subject of that line.
    ! grep -E '^ {20,}-' all || fail "$command: a line begins with the name of another option"
  done
  "$heaptap" record -h >help
  equal '--output --period --labels --mmap --interval --on --keep --only --event --listen' \
    "$(grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' help | sed 's/.* //' | xargs)"
}

# Whatever is near to a command starts nothing, even where a program has that name.
test_mistyped_commands() {
  mkdir bin
  for name in recrod snap reprot; do
    printf '#!/bin/sh\ntouch started\n' >bin/$name
    chmod +x bin/$name
  done
  equal 2 "$(status_of "$heaptap" recrd true)"
  equal "heaptap: unknown command 'recrd'; did you mean record? ('heaptap --help' lists all)" "$(cat err)"
  equal 2 "$(status_of "$heaptap" snapsho 4711)"
  matches 'did you mean snapshot\?' err
  for name in recrod snap reprot; do
    PATH=$PWD/bin:$PATH
    equal 2 "$(status_of "$heaptap" $name 4711)" "$name"
    matches "'$name' is no command of heaptap; did you mean (record|snapshot|report).*heaptap record $name$" err
  done
  equal 2 "$(status_of "$heaptap" no-such-thing-at-all)"
  equal "heaptap: unknown command 'no-such-thing-at-all' ('heaptap --help' lists all)" "$(cat err)"
  equal 2 "$(status_of "$heaptap" help recrod)"
  matches 'did you mean record' err
  equal 2 "$(status_of "$heaptap" -p 4K ./x)"
  matches "options follow it: heaptap record -p" err
  [ ! -e started ] || fail 'a mistyped command started a program'
}

# said WORDS ARGUMENT...: heaptap refuses the arguments in exactly these words
said() {
  local words=$1
  shift
  equal 2 "$(status_of "$heaptap" "$@")" "status of heaptap $*"
  equal "heaptap: $words" "$(cat err)"
}

test_mistyped_options() {
  for word in --hlep -help --hel -hlep; do
    said "unknown option '$word'; did you mean --help? ('heaptap --help' lists the commands)" $word
  done
  said "unknown option '--verson'; did you mean --version? ('heaptap --help' lists the commands)" --verson
  said "unknown option '--report'; did you mean heaptap report?" --report
  said "unknown option '--sessoin'; did you mean --session? ('heaptap report --help-all' lists all)" report --sessoin 1
  said "unknown option '--sessoin'; did you mean --session? ('heaptap snapshot --help-all' lists all)" snapshot --sessoin 1
  said "unknown option '--sessoin' ('heaptap diff --help-all' lists all)" diff --sessoin 1
  said "--by: 'thred' is none of its values; did you mean thread? Give function, thread, process, size, age or lifetime" \
    report --by thred
  said "unknown option '--pid' ('heaptap report --help-all' lists all)" report --pid 4711
  said "unknown command '' ('heaptap --help' lists all)" ''
  for word in help version; do
    equal "$("$heaptap" help)" "$("$heaptap" help $word)" "help $word"
  done
  said 'snapshot needs PIDs, --session PID, --service NAME or --all' snapshot
  said "'0' is not a process id" snapshot 0
  said "'sleep' is not a process id; by name: heaptap snapshot \$(pidof sleep)" snapshot sleep
  for words in '--session 1 --all' '1 --all' '--session 1 2'; do
    # shellcheck disable=SC2086
    said 'PIDs, --session PID, --service NAME and --all each choose the processes: give only one of them' snapshot $words
  done
}

# What heaptap had: one line that names what to use.
test_what_is_gone() {
  said '--fsync is gone: use sync(1) after the recording' record --fsync true
  said '--symbols functions is gone: use --symbols full or --symbols raw' record --symbols functions true
  said '--labels rung is gone: use --labels backend' adopt --labels=rung 1
  said '--functions is gone: use no option for it: rows are functions unless --lines is given' report --functions
}

# Words of other tools, and of habit: the answer is what does that here.
test_words_of_other_tools() {
  said "unknown command 'web'; did you mean heaptap serve? ('heaptap --help' lists all)" web
  said "unknown command 'ui'; did you mean heaptap serve? ('heaptap --help' lists all)" ui
  for word in flamegraph html svg; do
    said "unknown command '$word'; did you mean heaptap export -f flamegraph? ('heaptap --help' lists all)" $word x.pb.gz
  done
  equal 2 "$(status_of "$heaptap" top)"
  matches "^heaptap: unknown command 'top'; did you mean heaptap report, or heaptap status for a daemon's processes\?" err
  said "unknown option '--port'; did you mean heaptap serve? ('heaptap --help' lists the commands)" --port 80
  said "unknown option '--port'; did you mean --listen 127.0.0.1:7337? ('heaptap serve --help-all' lists all)" serve --port 80
  said "unknown option '--top'; did you mean --rows N? ('heaptap report --help-all' lists all)" report --top 5
  said "unknown option '--growth'; did you mean heaptap report FOLDER, which needs no option for it: it says what grows? ('heaptap report --help-all' lists all)" \
    report --growth
  said "unknown option '--flamegraph'; did you mean heaptap export -f flamegraph? ('heaptap report --help-all' lists all)" report --flamegraph
  # What is near goes on to be found.
  said "unknown option '--rwos'; did you mean --rows? ('heaptap report --help-all' lists all)" report --rwos 5
  # Each of the commands and options that are named is there.
  for words in 'serve --listen' 'export --format' 'report --rows' 'report --leaks' 'report --tree' 'report --json'; do
    "$heaptap" "${words% *}" --help-all | grep -q -- "${words#* }" || fail "there is no $words"
  done
}

# The name of a program where its number belongs.
test_names_in_place_of_pids() {
  said "--pid: 'redis-server' is not a process id; by name: heaptap attach \$(pidof redis-server)" record -P redis-server
  said "--pid: '4711 4712' is not possible; give process ids of running processes, separated by commas; at most 64" record -P '4711 4712'
  said "'redis-server' is not a process id; by name: heaptap attach \$(pidof redis-server)" attach redis-server
  said "'./server' is not a process id; to start it: heaptap record ./server" attach ./server
  said "'4711;' is not a process id" attach '4711;'
  said 'no PID given; usage: heaptap attach [OPTIONS] PID...' attach
  said '--duration, --force and --children are for --pid' record --children=no true
}

# In groups, so that what is rarely needed stands behind what is used each day.
test_commands_stand_in_groups() {
  "$heaptap" --help >help
  equal 'use|look|always on|files|repair' "$(sed -n '4,$s/^\([a-z ]\{10\}\) .*/\1/p' help | sed 's/ *$//; /^$/d' | paste -sd '|')"
  equal 'doctor adopt detach completion' "$(sed -n '/^repair /,$s/^.\{11\}\([a-z]*\) .*/\1/p' help | xargs)"
  equal 'record attach snapshot events' "$(sed -n '/^use /,/^look /s/^.\{11\}\([a-z]*\) .*/\1/p' help | head -n -1 | xargs)"
}

# A word without a slash is never started: a later heaptap may have a command of that name.
test_a_program_in_place_of_a_command() {
  equal 2 "$(status_of "$heaptap" sleep 1)"
  equal "heaptap: 'sleep' is no command of heaptap; to profile the program of that name: heaptap record sleep" "$(cat err)"
  equal 7 "$(status_of "$heaptap" /bin/sh -c 'exit 7')"
  cp "$targets/leaky" .
  equal 0 "$(status_of "$heaptap" ./leaky 3000 64)"
  profile_check heaptap.leaky.*.exit.pb.gz
  equal 127 "$(status_of "$heaptap" ./no-such-file)"
  matches '^heaptap: cannot run ./no-such-file: No such file' err
}

test_a_profile_in_place_of_a_command() {
  cp "$top/tests/readers/go_heap.pb.gz" .
  chmod -x go_heap.pb.gz
  for name in go_heap.pb.gz ./go_heap.pb.gz; do
    equal 2 "$(status_of "$heaptap" $name)"
    equal "heaptap: '$name' is a profile, no command; to see it: heaptap report $name" "$(cat err)"
  done
}

# What did not reach standard output is no success, for whoever prints.
test_output_that_cannot_be_written() {
  for command in --help --version 'report --help' doctor 'completion bash' events; do
    # shellcheck disable=SC2086
    status=0
    # shellcheck disable=SC2086
    "$heaptap" $command >/dev/full 2>err || status=$?
    equal 1 $status "$command"
    matches '^heaptap: cannot write standard output: No space left on device$' err
    equal 1 "$(wc -l <err)" "lines of $command"
  done
  status=0
  "$heaptap" --version >&- 2>err || status=$?
  equal 1 $status
}
