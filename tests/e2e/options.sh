# SPDX-License-Identifier: Apache-2.0
# Wrong options: one line that says what to give instead, status 2, and COMMAND never starts.

refused() {
  local wanted=$1
  shift
  equal 2 "$(status_of record "$@" touch started)" "status of: $*"
  equal 1 "$(wc -l <err)" "lines for: $*"
  matches "$wanted" err
  [ ! -e started ] || fail "COMMAND was started in spite of: $*"
}

test_unknown_options() {
  refused '^heaptap: unknown option .--perod=4K.; did you mean --period\? ' --perod=4K
  refused "^heaptap: unknown option '-z' \('heaptap record --help-all' lists all\)$" -z
  refused "^heaptap: unknown option '-z'" -qz
}

test_impossible_periods() {
  for value in 0 -1 x '' 4Q 4KK 1025G 99999999999999999999 1.5M ' 4'; do
    refused '--period.* give 1 to 1024G, for example 512K' --period="$value"
  done
}

test_impossible_backends() {
  refused 'auto, uprobe, breakpoint, copy or walk' -b ptrace
  refused 'auto, uprobe, breakpoint, copy or walk' --backend=
}

test_impossible_stack_sizes() {
  for value in 0 65K 65537 1M 255; do
    refused '256 to 64K' -s $value
  done
}

test_impossible_intervals() {
  for value in 5 5x -1s 1001h; do
    refused '500ms, 10s, 5m, 1h' --interval=$value
  done
}

test_impossible_patterns() {
  refused '%e %p %n %h %t %%' -o 'heap.%x.pb.gz'
  refused '%e %p %n %h %t %%' -o 'heap.%'
  refused '%e %p %n %h %t %%' -o ''
}

test_values_where_none_belong() {
  refused 'takes no value' --quiet=yes
}

test_missing_values_and_commands() {
  for words in -p --period 'record -o'; do
    # shellcheck disable=SC2086
    equal 2 "$(status_of "$heaptap" record ${words#record })" "$words"
    matches 'needs a value' err
  done
  equal 2 "$(status_of record)"
  matches 'no COMMAND given; usage: heaptap record' err
  equal 2 "$(status_of record -p 4K --)"
  equal 2 "$(status_of record -p 31366)"
  matches 'no COMMAND given.*-p is the period in bytes; the pid of a process that runs already goes to -P' err
  equal 2 "$(status_of record --pid 31366,x)"
  matches 'process ids of running processes, separated by commas' err
}

test_every_form_of_a_value() {
  for words in '-p4K' '-p 4k' '--period=4096' '--period 4K' '-qp4K' '-s 64K' '-s 1000' '-i 0' '-i 500ms' '-b copy' '-vv -q'; do
    # shellcheck disable=SC2086
    equal 6 "$(status_of record $words -q sh -c 'exit 6')" "$words"
    equal '' "$(cat err)" "stderr of $words"
  done
}

test_help_and_version() {
  equal 0 "$(status_of "$heaptap" --version)"
  matches '^heaptap [0-9]+\.[0-9]+\.[0-9]+( \([0-9a-f]{12}(, changed)?\))?$' out
  equal 0 "$(status_of "$heaptap" --help)"
  matches '^use +record ' out
  equal 0 "$(status_of "$heaptap" help record)"
  cp out help
  equal 0 "$(status_of record --help-all)"
  cmp out help
  for option in --period --output --backend --stack-bytes --quiet --verbose --interval --symbols; do
    matches "$option" help
  done
  equal 0 "$(awk 'length > 80' help | wc -l)" 'lines of help wider than 80 columns'
  equal 'usage: examples: -o -p -P -e -b --help' "$(grep -oE '^(usage:|examples:)|^  -[pobeP]|--help ' help | xargs)" 'order of help'
  "$heaptap" report --help-all >help
  matches '^  -h, --help +print examples, and the options that people use$' help
  "$heaptap" snapshot --help | tr -s '\n ' ' ' >words
  matches "all processes of all your sessions \\(as root: of every user's\\)" words
  matches '--session PID all processes of the session that profiles PID' words
}
