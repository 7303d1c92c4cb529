# SPDX-License-Identifier: Apache-2.0
# What processes are called, so that those of one program are told apart: in every table, and in profiles.

python=/usr/bin/python3

# A program of two kinds of processes; "ready" when both are there. They hold memory until the input ends.
write_scripts() {
  mkdir -p api
  cat >api/serve.py <<'PY'
import os, sys
kept = [b"x" * 20000 for i in range(200)]
print("ready", flush=True)
sys.stdin.read()
PY
  cp api/serve.py worker.py
}

# serving: two processes of one interpreter, and heaptap before them; sets front
serving() {
  write_scripts
  mkfifo in
  "$heaptap" record -i 0 -p 4K -o p/ sh -c "exec 3<&0; $python api/serve.py shop:app --token=secret <&3 & $python worker.py -q secret; wait" <in >said 2>err &
  front=$!
  exec 7>in
  both() { [ "$(grep -c ready said)" = 2 ]; }
  wait_for 30 both
}

finish() {
  exec 7>&-
  wait "$front" || fail "record ended with $?: $(cat err)"
}

test_every_table_has_them() {
  serving
  "$heaptap" snapshot --all >paths 2>&1 || fail "$(cat paths)"
  "$heaptap" completion pids >/dev/null
  finish
  # record's end table
  matches ' python3[.0-9]* api/serve.py shop:app  ' err
  matches ' python3[.0-9]* worker.py  ' err
  # ls, and its JSON
  "$heaptap" ls p/ >list
  matches 'python3[.0-9]* worker.py ' list
  "$heaptap" ls --json p/ >list.json
  python3 -c 'import json
names = [p["name"] for s in json.load(open("list.json"))["sessions"] for p in s["processes"]]
assert any(n.endswith(" api/serve.py shop:app") for n in names), names' || fail 'ls --json'
  # report: a table by process, and the head of one
  "$heaptap" report --by process p/ >report
  matches 'python3[.0-9]* worker.py \([0-9]+\)' report
  for profile in p/*.exit.pb.gz; do
    "$heaptap" report "$profile" >>heads
    "$heaptap" report --json "$profile" >one.json
    python3 -c 'import json
one = json.load(open("one.json"))
assert one["name"].startswith(one["program"]), one' || fail 'report --json'
  done
  matches '^python3[.0-9]* api/serve.py shop:app  pid [0-9]+' heads
  # file names stay as they were
  only p/heaptap.sh.*.exit.pb.gz
  equal 2 "$(ls p/heaptap.python3*.exit.pb.gz | wc -l)" 'profiles of python'
  profile_check p/*.exit.pb.gz
  # nothing else of the command line
  ! gunzip -c p/*.pb.gz | grep -a secret || fail 'an argument is in a profile'
  ! grep secret err list list.json report heads || fail 'an argument is in a table'
}

test_comments_of_profiles() {
  serving
  finish
  for profile in p/heaptap.python3*.exit.pb.gz; do
    comment_of "$profile" >>comments
  done
  matches '^name: python3[.0-9]* api/serve.py shop:app$' comments
  matches '^name: python3[.0-9]* worker.py$' comments
  # A program that is enough of a name has none, and a sum is nobody's.
  comment_of "$(only p/heaptap.sh.*.exit.pb.gz)" >comments
  ! grep '^name:' comments || fail 'sh says all there is'
  "$heaptap" merge -o sum.pb.gz p/*.exit.pb.gz 2>/dev/null
  "$heaptap" report sum.pb.gz >report
  ! head -n 1 report | grep 'worker.py\|serve.py' || fail 'a sum has the name of one process'
  "$heaptap" merge --anonymize -o nobody.pb.gz p/heaptap.python3*.exit.pb.gz 2>/dev/null
  ! gunzip -c nobody.pb.gz | grep -a 'worker.py\|serve.py' || fail 'an anonymous profile has a name'
}

# A title that is set while it runs, as nginx' and postgres' workers do: that of the last look.
test_titles() {
  cat >title.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char *argv[])
{
	size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
	char line[16], *kept = calloc(1, 4 << 20);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		memset(argv[0], 0, room);
		snprintf(argv[0], room, "title: %s process", strtok(line, "\n"));
		puts("done");
		fflush(stdout);
	}
	return kept == NULL;
}
C
  gcc -o title title.c
  mkfifo in
  "$heaptap" record -i 0 -p 4K -o p/ ./title a-long-argument-for-room -x <in >said 2>err &
  front=$!
  exec 7>in
  wait_for 20 grep -q ready said
  pid=$(child_of "$front" title)
  "$heaptap" snapshot "$pid" >path
  comment_of "$(cat path)" >comments
  matches '^name: title a-long-argument-for-room$' comments
  echo worker >&7
  wait_for 20 grep -q done said
  "$heaptap" snapshot "$pid" >path
  comment_of "$(cat path)" >comments
  matches '^name: title: worker process$' comments
  exec 7>&-
  wait $front || fail "$(cat err)"
  comment_of "$(only p/heaptap.title.*.exit.pb.gz)" >comments
  matches '^name: title: worker process$' comments
}

# The page's list and its API, of a session that runs and of its files.
test_of_the_server() {
  serving
  "$heaptap" serve --listen unix:"$PWD/http" 2>serve.log &
  server=$!
  answers() { curl -s --unix-socket http http://localhost/api/v1/processes >list.json && grep -q worker.py list.json && grep -q serve.py list.json; }
  wait_for 30 answers
  python3 -c 'import json
names = {p["name"] for p in json.load(open("list.json"))["processes"]}
assert any(n.endswith(" worker.py") for n in names) and any(n.endswith(" api/serve.py shop:app") for n in names), names' ||
    fail "$(cat list.json)"
  kill $server
  wait $server || true
  finish
}
