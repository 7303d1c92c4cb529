# SPDX-License-Identifier: Apache-2.0
# `heaptap doctor` of what is no ELF file: a script is judged by its interpreter, anything else gets its own message.

# judged PROGRAM FILE: doctor says that it judges the program, and no word about the file but that
judged() {
  status_of "$heaptap" doctor "$2" >status
  matches "^ok    $1 is dynamically linked: its allocations are seen$" out
  ! grep -E "^(ok|note|bad) +$2 (is dynamically|is stripped|has)" out || fail "$2 is judged as an ELF file"
}

# program FILE LINE
script() {
  printf "$2" >"$1"
  chmod +x "$1"
}

test_scripts() {
  export PATH=/usr/bin:/bin
  script plain.sh '#!/bin/sh\necho\n'
  judged /bin/sh ./plain.sh
  matches '^ok +./plain.sh is a script for /bin/sh: that is judged below$' out
  script options.sh '#! /bin/sh -eu \necho\n'
  judged /bin/sh ./options.sh
  script env.py '#!/usr/bin/env python3\n'
  judged /usr/bin/python3 ./env.py
  matches '^ok +./env.py is a script for python3, which /usr/bin/env finds as /usr/bin/python3: that is judged below$' out
  script env-s.py '#!/usr/bin/env -S LC_ALL=C python3 -u\n'
  judged /usr/bin/python3 ./env-s.py
  # A script for a script.
  script outer "#!$PWD/plain.sh\n"
  judged /bin/sh ./outer
  matches "^ok +$PWD/plain.sh is a script for /bin/sh" out
  # As execvp and shells run it.
  script none 'echo\n'
  judged /bin/sh ./none
  matches '^note +./none is a script without a #! line: /bin/sh runs it' out
}

test_scripts_that_cannot_run() {
  script missing '#!/no/such/interpreter\n'
  equal 1 "$(status_of "$heaptap" doctor ./missing)"
  matches '^bad +./missing is a script for /no/such/interpreter: there is no such program$' out
  script env '#!/usr/bin/env no-such-program\n'
  equal 1 "$(status_of "$heaptap" doctor ./env)"
  matches '^bad +./env is a script for no-such-program: there is no such program$' out
  script dos '#!/bin/sh\r\necho\r\n'
  equal 1 "$(status_of "$heaptap" doctor ./dos)"
  matches '^bad +./dos is a script for /bin/sh\?, with a carriage return: there is no such program$' out
  matches '^ +fix: end its lines with LF' out
  script loop "#!$PWD/loop\n"
  equal 1 "$(status_of "$heaptap" doctor ./loop)"
  matches '^heaptap: ./loop cannot run' err
}

# complains WANTED FILE
complains() {
  equal 1 "$(status_of "$heaptap" doctor "$2")" "status for $2"
  equal "heaptap: $1" "$(cat err)"
  ! grep -E "^(ok|note|bad) .*$2" out || fail "$2 is judged"
}

test_what_is_no_program() {
  echo hello >text
  : >empty
  head -c 300 /dev/zero >zeros
  chmod +x zeros
  mkdir folder
  mkfifo pipe
  cp "$targets/leaky" leaky
  complains './text is no program: neither an ELF file nor a script with a #! line' ./text
  complains './zeros is no program: neither an ELF file nor a script with a #! line' ./zeros
  complains './empty is no program: the file is empty' ./empty
  complains './folder is a folder: name a program in it' ./folder
  complains './pipe is no file that can be executed: a device, a pipe or a socket' ./pipe
  complains 'there is no file ./missing' ./missing
  complains 'there is no program missing in PATH' missing
  complains 'there is no program leaky in PATH; the one here: heaptap doctor ./leaky' leaky
}

test_a_process_that_may_not_be_examined() {
  need_root
  stage
  equal 1 "$(status_of unprivileged "$heaptap" doctor $$)"
  matches "^heaptap: process $$ cannot be examined: Permission denied" err
}
