/* SPDX-License-Identifier: Apache-2.0 */
/* Who may still add to the books: hogs get equal shares, a newcomer finds as much. */
#include "sampler/intake/memory_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MIB = 1 << 20, HOGS_MAX = 16 };

/* Each of them grows by that at a time while it may. */
static void fill(struct memory_bound *bound, struct memory_share *shares, unsigned int count, uint64_t step)
{
	bool grown = true;

	while (grown) {
		grown = false;
		for (unsigned int i = 0; i < count; i++)
			if (memory_bound_allows(bound, &shares[i])) {
				memory_share_note(&shares[i], bound, shares[i].held_bytes + step);
				grown = true;
			}
		assert_in_range(bound->held_bytes, 0, bound->max_bytes);
	}
}

static void hogs_share_and_leave_a_share(void **state)
{
	enum { STEP = 1024 };

	(void)state;
	for (unsigned int hogs = 1; hogs <= HOGS_MAX; hogs++) {
		struct memory_bound bound = {.max_bytes = 64 * MIB};
		struct memory_share own[HOGS_MAX + 1] = {0};
		const uint64_t share = 3 * bound.max_bytes / (3 * hogs + 5);

		for (unsigned int i = 0; i <= hogs; i++)
			own[i].account = i;
		fill(&bound, own, hogs, STEP);
		for (unsigned int i = 0; i < hogs; i++)
			assert_in_range(own[i].held_bytes, share - hogs * STEP, share + STEP);
		assert_true(memory_bound_allows(&bound, &own[hogs]));
		/* what goes is there for others again */
		memory_share_note(&own[0], &bound, 0);
		assert_true(hogs == 1 || memory_bound_allows(&bound, &own[1]));
	}
}

/* Any number of processes of one account leave a quarter, of which another's first one may have a good part;
 * and the account's own next one finds room too. */
static void an_account_has_a_share_however_many_its_processes_are(void **state)
{
	enum { STEP = 1024, CROWD = 200 };

	(void)state;
	for (unsigned int hogs = 1; hogs <= CROWD; hogs += hogs < 8 ? 1 : 64) {
		struct memory_bound bound = {.max_bytes = 64 * MIB};
		struct memory_share own[CROWD + 1] = {0}, other = {.account = 7};
		const uint64_t share = 3 * bound.max_bytes / (4 * hogs + 4);

		fill(&bound, own, hogs, STEP);
		for (unsigned int i = 0; i < hogs; i++)
			assert_in_range(own[i].held_bytes, share - hogs * STEP, share + STEP);
		assert_in_range(bound.held_bytes, 0, bound.max_bytes / 4 * 3 + hogs * STEP);
		assert_true(memory_bound_allows(&bound, &own[hogs]));
		assert_in_range(memory_bound_room(&bound, &own[hogs], 0), 1, share + hogs * STEP);
		const uint64_t room = memory_bound_room(&bound, &other, 0);
		assert_in_range(room, bound.max_bytes * 3 / 32 - hogs * STEP, bound.max_bytes / 4);
		fill(&bound, &other, 1, STEP);
		assert_in_range(other.held_bytes, room - STEP, room + STEP);
	}
}

static void a_share_may_become_anothers(void **state)
{
	struct memory_bound bound = {.max_bytes = 64 * MIB};
	struct memory_share hogs[8] = {0}, last = {0}, early = {.held_bytes = 0};

	(void)state;
	memory_share_note(&early, &bound, 3 * MIB);
	memory_share_belongs(&early, &bound, 5);
	for (int i = 0; i < 8; i++)
		memory_share_belongs(&hogs[i], &bound, 9);
	fill(&bound, hogs, 8, 1024);
	memory_share_note(&last, &bound, hogs[0].held_bytes);
	assert_true(memory_bound_allows(&bound, &last));
	assert_true(memory_bound_allows(&bound, &early));
	memory_share_belongs(&last, &bound, 9);
	assert_false(memory_bound_allows(&bound, &last));
	memory_share_belongs(&last, &bound, 5);
	assert_true(memory_bound_allows(&bound, &last));
	memory_share_note(&last, &bound, 0);
	memory_share_note(&early, &bound, 0);
	for (int i = 0; i < 8; i++)
		memory_share_note(&hogs[i], &bound, 0);
	assert_int_equal(bound.held_bytes, 0);
	for (int i = 0; i <= MEMORY_ACCOUNTS; i++)
		assert_int_equal(bound.accounts[i].shares | bound.accounts[i].held_bytes, 0);
}

/* More accounts than are told apart: the others share, and nothing is lost of the sum. */
static void accounts_without_end(void **state)
{
	enum { MANY = 3 * MEMORY_ACCOUNTS };
	static struct memory_share shares[MANY];
	struct memory_bound bound = {.max_bytes = 64 * MIB};

	(void)state;
	for (uint64_t i = 0; i < MANY; i++) {
		memory_share_belongs(&shares[i], &bound, i);
		memory_share_note(&shares[i], &bound, 1000);
	}
	assert_int_equal(bound.held_bytes, MANY * 1000);
	assert_int_equal(bound.accounts[MEMORY_ACCOUNTS].held_bytes, (MANY - MEMORY_ACCOUNTS) * 1000);
	for (uint64_t i = 0; i < MANY; i++)
		memory_share_note(&shares[i], &bound, 0);
	assert_int_equal(bound.held_bytes, 0);
	assert_int_equal(bound.accounts[MEMORY_ACCOUNTS].held_bytes, 0);
	memory_share_note(&shares[MANY - 1], &bound, 1000);
	assert_int_equal(bound.accounts[MEMORY_ACCOUNTS].held_bytes, 0); /* there is a row again */
}

/* And room is left for whoever comes next, of another account; of the same one for a few. */
static void the_sum_stays_below_where_tables_double(void **state)
{
	enum { MANY = 64 };

	(void)state;
	for (unsigned int accounts = 1; accounts <= 8; accounts++)
		for (unsigned int first = 0; first <= 1; first++) {
			struct memory_bound bound = {.max_bytes = 64 * MIB};
			struct memory_share own[MANY] = {0};

			for (unsigned int i = 0; i < MANY; i++) {
				own[i].account = i % accounts;
				assert_true(
				    accounts > 1 || i >= MANY / 8 || memory_bound_allows(&bound, &own[i]));
				for (int round = 0; round < 64; round++)
					for (unsigned int j = first ? i : 0; j <= i; j++)
						if (memory_bound_allows(&bound, &own[j]))
							memory_share_note(&own[j], &bound,
							    own[j].held_bytes ? 2 * own[j].held_bytes : 10);
			}
			assert_true(bound.held_bytes < bound.max_bytes);
			assert_true(memory_bound_allows(&bound, &(struct memory_share){.account = 99}));
			bound.held_bytes = 2 * bound.max_bytes;
			assert_false(memory_bound_allows(&bound, &(struct memory_share){0}));
		}
}

static void from_the_limit_or_the_machine(void **state)
{
	(void)state;
	assert_int_equal(memory_bound_bytes(100 * MIB), 50 * MIB);
	assert_in_range(memory_bound_bytes(0), 1, UINT64_C(1) << 30);
	struct memory_bound none = {.held_bytes = UINT64_C(1) << 60};
	assert_true(memory_bound_allows(&none, &(struct memory_share){.held_bytes = UINT64_C(1) << 60}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hogs_share_and_leave_a_share),
	    cmocka_unit_test(an_account_has_a_share_however_many_its_processes_are),
	    cmocka_unit_test(a_share_may_become_anothers),
	    cmocka_unit_test(accounts_without_end),
	    cmocka_unit_test(the_sum_stays_below_where_tables_double),
	    cmocka_unit_test(from_the_limit_or_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
