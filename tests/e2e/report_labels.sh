# SPDX-License-Identifier: Apache-2.0
# Tables by labels, and what "temporary" means.
# timeout: 240

# late() allocates in a thread what main frees long after it; churn() frees at once; both in blocks of their own size.
labelled_profile() {
  cat >late.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *block[1000];
__attribute__((noinline)) void *late(void *unused)
{
	for (int i = 0; i < 1000; i++)
		block[i] = memset(malloc(500), 1, 500);
	return unused;
}
__attribute__((noinline)) void churn(int count)
{
	while (count--) {
		char *volatile work = memset(malloc(1500), 1, 1500);
		free(work);
	}
}
__attribute__((noinline)) void keep(int count)
{
	while (count--) {
		char *volatile kept = memset(malloc(100), 1, 100);
		(void)kept;
	}
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, late, NULL);
	pthread_join(thread, NULL);
	for (int i = 0; i < 1000; i++)
		free(block[i]);
	churn(2000);
	keep(10);
	_exit(0);
}
C
  gcc -O1 -g -D_GNU_SOURCE -pthread -o late late.c
  # A block is temporary however long the machine is busy with something else meanwhile.
  record_whole labelled.pb.gz -p 1 --temporary 1h --labels thread,age,size,lifetime ./late
  record_whole plain.pb.gz -p 1 ./late
}

# row_of NAME: the first number of the row with this name in ./out
row_of() {
  sed -nE "s/^ +([0-9.]+( [KM]?i?B)?) .*  $1( .*)?$/\1/p" out | head -n 1
}

test_temporary_is_what_is_freed_by_its_own_thread() {
  labelled_profile
  "$heaptap" report --sort temporary labelled.pb.gz >out
  matches '^Most temporary \(objects freed soon, by the thread that allocated them\)$' out
  equal 2000 "$(row_of churn)"
  equal '' "$(row_of late)"
  "$heaptap" report --sort freed labelled.pb.gz >out
  matches '^Most freed \(objects\)$' out
  equal 2000 "$(row_of churn)"
  equal 1000 "$(row_of late)"
  "$heaptap" report --json labelled.pb.gz |
    python3 -c 'import json, sys; assert json.load(sys.stdin)["totals"]["temporary_objects"]["all"] == 2000'
  go tool pprof -top -sample_index=alloc_objects -tagfocus=lifetime=temporary labelled.pb.gz >top 2>/dev/null
  matches '2000 .*churn' top
  # Without the label nothing is called temporary.
  "$heaptap" report plain.pb.gz >out
  matches '^Most freed \(objects\)$' out
  ! grep -qi temporary out || fail 'temporary without the data for it'
  equal 1 "$(status_of "$heaptap" report --sort temporary plain.pb.gz)"
  matches '^heaptap: --sort temporary: .*record with --labels lifetime, or use --sort freed$' err
}

test_tables_by_label() {
  labelled_profile
  "$heaptap" report --by thread --sort objects labelled.pb.gz >out
  matches ' thread$' out
  # On a busy machine a thread is gone before its name is read: then its number names it.
  equal 2 "$(grep -cE '  (late \([0-9]+\)|thread [0-9]+)$' out)" 'threads'
  matches '^ +1000 .*  (late \([0-9]+\)|thread [0-9]+)$' out
  "$heaptap" report --by size --sort objects labelled.pb.gz >out
  matches ' size of a block$' out
  equal 2000 "$(row_of 'up to 2 KiB')"
  equal 10 "$(row_of 'up to 128 B')"
  "$heaptap" report --by age --sort objects labelled.pb.gz >out
  equal 3000 "$(row_of '\[freed\]')"
  "$heaptap" report --by process --sort objects labelled.pb.gz >out
  matches '100\.0% .*  late \([0-9]+\)$' out
  "$heaptap" report --by lifetime --sort objects labelled.pb.gz >out
  equal 2000 "$(row_of temporary)"
  matches ' lifetime$' out
  equal 2 "$(grep -c '%.*temporary' out)" 'lifetimes'
  at_least 1010 "$(row_of '\[not temporary\]')" 'blocks that were kept or freed late'
  "$heaptap" report --by lifetime --sort freed labelled.pb.gz >out
  equal '2000 1000' "$(row_of temporary) $(row_of '\[not temporary\]')" 'freed'
  "$heaptap" report --by lifetime --sort inuse labelled.pb.gz >out
  ! grep '% .*  temporary$' out || fail 'a temporary block is in use'
  for by in thread size age lifetime; do
    equal "$("$heaptap" report labelled.pb.gz | grep -E '^  (in use|allocated)')" \
      "$("$heaptap" report --by $by labelled.pb.gz | grep -E '^  (in use|allocated)')" "sums by $by"
    equal 1 "$(status_of "$heaptap" report --by $by plain.pb.gz)"
    matches "^heaptap: plain.pb.gz: no sample has the label $by; record with --labels $by$" err
  done
  # A process without ages is none of them; a session of such processes is refused.
  mkdir two
  cp labelled.pb.gz plain.pb.gz two/
  "$heaptap" report --session all --state all --by age two >out
  matches '  \[freed\]$' out
  "$heaptap" report --session all --state all --age 0s: two >out
  "$heaptap" report --by process plain.pb.gz >out
  equal 2 "$(status_of "$heaptap" report --by colour plain.pb.gz)"
  "$heaptap" diff --by thread --sort objects labelled.pb.gz labelled.pb.gz >out
  matches 'new +thread$' out
}
