/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's pure parts: its own load, the session's identity, lines of maps that may be offers. */
#include "proto/region_layout.h"
#include "sampler/cmd/daemon/account_share.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/load_limiter.h"
#include "sampler/cmd/daemon/periods.h"
#include "sampler/cmd/daemon/process_facts.h"
#include "sampler/intake/region_offer.h"
#include "sampler/intake/target_plan.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t second = 1000000000;

static void test_samples_per_hour(void **state)
{
	struct periods_rate rate = {100 * second, 0};

	(void)state;
	/* 60 an hour: of none in 10 s nothing follows */
	assert_true(periods_factor(&rate, 0, 110 * second, 60) == 0);
	assert_true(periods_factor(&rate, 3, 130 * second, 60) == 0);
	assert_int_equal(rate.since_ns, 100 * second);
	/* but of 100 in a minute */
	assert_true(periods_factor(&rate, 100, 160 * second, 60) == PERIODS_RATE_STEP);
	assert_int_equal(rate.samples, 100);
	/* too few: known when so many should have come */
	assert_true(periods_factor(&rate, 101, 900 * second, 60) == 0);
	assert_true(periods_factor(&rate, 102, (160 + 16 * 60) * second, 60) == 1.0 / PERIODS_RATE_STEP);
	/* as wanted */
	assert_true(periods_factor(&rate, 202, (160 + 116 * 60) * second, 60) == 1);
	/* a process with 200 samples has ended */
	assert_true(periods_factor(&rate, 2, (160 + 117 * 60) * second, 60) == 0);
	assert_true(periods_factor(&rate, 102, (160 + 118 * 60) * second, 60) == PERIODS_RATE_STEP);
}

static bool load_after(struct load_limiter *load, uint64_t seconds, double cpu_share, uint64_t bytes)
{
	const struct load_limiter_limits limits = {5, 100 << 20};
	const struct load_limiter_reading reading = {
	    load->cpu_ns + (uint64_t)((double)(seconds * second) * cpu_share), bytes};

	return load_limiter_look(load, &limits, &reading, load->looked_ns + seconds * second);
}

static void test_own_load(void **state)
{
	struct load_limiter load = {.looked_ns = 1 * second};

	(void)state;
	assert_false(load_after(&load, 5, 1, 0)); /* too early */
	for (int i = 0; i < 60; i++)              /* 4.5 % in the mean, but often above the limit */
		assert_false(load_after(&load, 10, i % 2 ? 0.03 : 0.06, 0));
	for (int i = 2; i < LOAD_LIMITER_MEAN_LOOKS; i++)
		if (load_after(&load, 10, 0.06, 0))
			break;
	assert_int_equal(load.raised, 1);
	assert_false(load.by_memory);
	for (int i = 1; i < LOAD_LIMITER_MEAN_LOOKS; i++)
		assert_false(load_after(&load, 10, i % 2 ? 0.03 : 0.02, 0)); /* it has helped */
	assert_true(load_after(&load, 10, 0, 101 << 20));
	assert_int_equal(load.raised, 2);
	assert_true(load.by_memory);
	for (int i = 2; i < LOAD_LIMITER_CALM_LOOKS; i++)
		assert_false(load_after(&load, 10, 0.01, 1 << 20));
	for (int i = 0; i < LOAD_LIMITER_MEAN_LOOKS; i++)
		if (load_after(&load, 10, 0.045, 1 << 20))
			break; /* one busy look in a calm time is none */
	assert_int_equal(load.raised, 1);
	for (int i = 0; i < 30; i++)
		load_after(&load, 10, 0, 101 << 20);
	assert_int_equal(load.raised, LOAD_LIMITER_RAISED_MAX);
}

/* So many looks, of which only the last changes anything. */
static void changes_after(struct load_limiter *load, int looks, double cpu_share)
{
	for (int i = 1; i < looks; i++)
		assert_false(load_after(load, 10, cpu_share, 0));
	assert_true(load_after(load, 10, cpu_share, 0));
}

/* Larger periods go on as long as they help; what no period makes less costs no samples. */
static void test_own_load_of_other_work(void **state)
{
	struct load_limiter load = {.looked_ns = 1 * second};
	double share = 1;

	(void)state;
	for (uint32_t raised = 1; raised <= 3; raised++) {
		changes_after(&load, raised == 1 ? 1 : LOAD_LIMITER_MEAN_LOOKS, share);
		assert_int_equal(load.raised, raised);
		share *= 0.6;
	}
	changes_after(&load, LOAD_LIMITER_MEAN_LOOKS, 0.6 * 0.6); /* the third did not help */
	assert_int_equal(load.raised, 2);
	changes_after(&load, LOAD_LIMITER_REST_LOOKS + 1, share); /* tried again */
	assert_int_equal(load.raised, 3);
	changes_after(&load, LOAD_LIMITER_MEAN_LOOKS, share);
	assert_int_equal(load.raised, 2);
}

/* Much too much, all of it by samples: the periods are as large as they must be within minutes, stay
 * so, also when there is a quarter more to do, and are as before when there is nothing. */
static void test_own_load_of_samples(void **state)
{
	struct load_limiter load = {.looked_ns = 1 * second};

	(void)state;
	for (int i = 0; i < 60; i++)
		load_after(&load, 10, 1.2 / (1 << load.raised), 0);
	assert_int_equal(load.raised, 5);
	for (int i = 0; i < 600; i++)
		load_after(&load, 10, 1.5 / (1 << load.raised), 0);
	assert_int_equal(load.raised, 5);
	for (int i = 0; i < 600; i++)
		load_after(&load, 10, 3.0 / (1 << load.raised), 0);
	assert_int_equal(load.raised, 6);
	for (int i = 0; i < 6 * (LOAD_LIMITER_CALM_LOOKS + LOAD_LIMITER_MEAN_LOOKS); i++)
		load_after(&load, 10, 0, 0);
	assert_int_equal(load.raised, 0);
}

/* A user whose processes keep the daemon busy has not everybody's samples made rare: neither by less work
 * at each look ... */
static void test_own_load_that_feigns_help(void **state)
{
	static const double shares[] = {20, 17.9, 16, 14.3, 12.8, 11.5, 10.3, 9.2, 8.2, 7.3};
	struct load_limiter load = {.looked_ns = 1 * second};

	(void)state;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		load_after(&load, 10, shares[i] * 0.05, 0);
	assert_in_range(load.raised, 0, 1);
	for (int i = 0; i < 10 * (LOAD_LIMITER_CALM_LOOKS + 1); i++) /* held by a look now and then */
		load_after(&load, 10, i % 29 ? 0 : 0.05, 0);
	assert_int_equal(load.raised, 0);
}

/* ... nor by pauses, for as long as it is judged. */
static void test_own_load_that_comes_and_goes(void **state)
{
	struct load_limiter load = {.looked_ns = 1 * second};
	uint32_t most = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		load_after(&load, 10, load.judge ? 0.036 : 0.09, 0);
		most = load.raised > most ? load.raised : most;
	}
	assert_in_range(most, 1, 2);
}

static void test_session(void **state)
{
	struct daemon_session first, second_one;
	char path[] = "/tmp/heaptap-session-XXXXXX";

	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(daemon_session_open(&first, path), 0);
	assert_int_equal(daemon_session_open(&second_one, path), 0);
	assert_memory_equal(&first, &second_one, sizeof(first));
	FILE *file = fopen(path, "w");
	fputs("00000000-0000-0000-0000-000000000000 5 6 7\n", file); /* of another boot */
	fclose(file);
	assert_int_equal(daemon_session_open(&second_one, path), 0);
	assert_int_not_equal(second_one.unix_ns, 5);
	unlink(path);
	assert_false(daemon_session_parse(&first, ""));
	assert_false(daemon_session_parse(&first, "x y z 1"));
	assert_false(daemon_session_parse(&first, "boot -5 1 1"));
	assert_true(daemon_session_parse(&first, "boot 5 6 7"));
	assert_int_equal(first.pid, 7);
}

static void test_lines_of_maps(void **state)
{
	struct region_offer_range range;
	struct region_offsets offsets;
	char line[256];

	(void)state;
	assert_true(region_offer_parse(
	    "7f00000000-7f10000000 rw-s 00000000 00:01 1234                      /memfd:heaptap (deleted)\n",
	    &range));
	assert_int_equal(range.start, 0x7f00000000);
	assert_int_equal(range.ino, 1234);
	assert_false(range.anonymous);
	static const char *const others[] = {
	    "7f00000000-7f10000000 r--s 00000000 00:01 1234 /memfd:heaptap (deleted)\n",
	    "7f00000000-7f10000000 rw-p 00000000 00:01 1234 /memfd:heaptap (deleted)\n",
	    "7f00000000-7f10000000 rw-s 00001000 00:01 1234 /memfd:heaptap (deleted)\n",
	    "7f00000000-7f10000000 rw-s 00000000 00:01 1234 /memfd:heaptap-ledger (deleted)\n",
	    "7f00000000-7f10000000 rw-s 00000000 00:01 1234 /x/memfd:heaptap (deleted)\n",
	    "7f10000000-7f00000000 rw-s 00000000 00:01 1234 /memfd:heaptap (deleted)\n",
	    "7f00000000-7f10000000 rw-s 00000000 00:01 1234 /dev/zero (deleted)\n",
	    "7f00000000-7f10000000 rw-s 00000000 00:01 1234\n",
	    "nonsense",
	    "",
	};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(region_offer_parse(others[i], &range));
	region_lay_out(&offsets, REGION_START_SEGMENTS_LEAST, REGION_OFFER_LARGE_BUFFERS);
	snprintf(line, sizeof(line), "%x-%" PRIx64 " rw-s 00000000 00:01 77 /dev/zero (deleted)", 0x10000,
	    0x10000 + offsets.buffers);
	assert_true(region_offer_parse(line, &range));
	assert_true(range.anonymous);
}

static void test_ended_that_may_wait(void **state)
{
	struct account_share_waiting room = {
	    .memory_bytes = 256 << 20, .descriptors = 1 << 20, .books_max_bytes = 128 << 20};

	(void)state;
	room.waiting = 511;
	assert_true(account_share_has_wait(&room));
	room.of_service = 384; /* a service leaves some for the others, unless it is killed */
	assert_false(account_share_has_wait(&room));
	room.killed = true;
	assert_true(account_share_has_wait(&room));
	room.of_account = 448; /* nor do many services of one account, whatever becomes of them */
	assert_false(account_share_has_wait(&room));
	room.of_service = 1;
	assert_false(account_share_has_wait(&room));
	room.of_account = 447;
	assert_true(account_share_has_wait(&room));
	room.waiting = 512;
	assert_false(account_share_has_wait(&room));
	room = (struct account_share_waiting){
	    .memory_bytes = UINT64_C(1) << 40, .descriptors = 1024, .waiting = 127};
	room.books_max_bytes = 1000;
	assert_true(account_share_has_wait(&room));
	room.waiting = 128; /* descriptors are short */
	assert_false(account_share_has_wait(&room));
	room.waiting = 20;
	assert_true(account_share_has_wait(&room));
	room.books_bytes = 751; /* memory is: the books of all take three quarters */
	assert_false(account_share_has_wait(&room));
	room = (struct account_share_waiting){.memory_bytes = 1 << 20, .descriptors = 64, .waiting = 11};
	assert_true(account_share_has_wait(&room));
}

/* A user with any number of processes has a share of the list, and all others theirs. */
static void test_shares_of_the_list(void **state)
{
	struct account_share_rows share = {.most_bytes = 1000};
	uint64_t rows = 0;

	(void)state;
	for (int i = 0; i < 5000; i++)
		if (account_share_has_row(&share, 1000)) {
			account_share_take_row(&share, 1000, 300);
			rows++;
		}
	assert_int_equal(rows, 4);
	assert_int_equal(share.left_out, 4996);
	assert_true(account_share_has_row(&share, 33));
	for (uid_t uid = 2000; uid < 4000; uid++)
		if (account_share_has_row(&share, uid)) {
			account_share_take_row(&share, uid, 300);
			rows++;
		}
	assert_in_range(rows, ACCOUNT_SHARE_USERS, ACCOUNT_SHARE_USERS + 8);
	assert_true(account_share_has_row(&share, 33));
}

/* Where an account has half of all program runs, another still has room, and root in a container is an
 * account. */
static void test_images_of_an_account(void **state)
{
	enum { MOST = 64 };
	static struct target_plan plan = {.uid = 0, .account = "container-abc"};
	static struct program_run runs[MOST];
	static struct daemon d;
	struct rules rules = {.daemon.memory_bytes = MOST * (128 << 10)};
	struct process_facts container = {.uid = 0, .cgroup.container_id = "abc"};
	struct process_facts unit = {.uid = 0, .cgroup.unit = "nginx.service"};

	(void)state;
	d.rules = &rules;
	for (int i = 0; i < MOST / 2; i++) {
		assert_true(account_share_has_run(&d, &container));
		runs[i].plan = &plan;
		assert_int_equal(table_add(&d.core.heap.intake.books.runs, (uint64_t)i, &runs[i]), 0);
	}
	assert_false(account_share_has_run(&d, &container));
	assert_true(account_share_has_run(&d, &unit));
	for (int i = MOST / 2; i < MOST; i++) {
		assert_true(account_share_has_run(&d, &unit));
		assert_int_equal(table_add(&d.core.heap.intake.books.runs, (uint64_t)i, &runs[i]), 0);
	}
	assert_false(account_share_has_run(&d, &unit));
	books_fini(&d.core.heap.intake.books);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ended_that_may_wait),
	    cmocka_unit_test(test_samples_per_hour),
	    cmocka_unit_test(test_images_of_an_account),
	    cmocka_unit_test(test_shares_of_the_list),
	    cmocka_unit_test(test_own_load),
	    cmocka_unit_test(test_own_load_of_other_work),
	    cmocka_unit_test(test_own_load_of_samples),
	    cmocka_unit_test(test_own_load_that_feigns_help),
	    cmocka_unit_test(test_own_load_that_comes_and_goes),
	    cmocka_unit_test(test_session),
	    cmocka_unit_test(test_lines_of_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
