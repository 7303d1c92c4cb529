/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of memory cgroups. The kernel has the memory controller in version 1 or in version 2, never in both,
 * so here a folder with files as the kernel's stands for either; e2e/snapshot_threshold has the real one.
 */
#include "sampler/linux/memory_high.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

struct scene {
	char mount[64];
	struct memory_high *list;
	uint64_t now_ns;
};

static void put(const struct scene *s, const char *file, const char *text)
{
	char path[PATH_MAX];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", s->mount, file);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void put_number(const struct scene *s, const char *file, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)number);
	put(s, file, text);
}

static void put_events(const struct scene *s, const char *file, uint64_t high)
{
	char text[128];

	snprintf(
	    text, sizeof(text), "low 0\nhigh %llu\nmax 3\noom 0\noom_kill 0\n", (unsigned long long)high);
	put(s, file, text);
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	char path[PATH_MAX];

	strcpy(s->mount, "/tmp/heaptap-cgroup.XXXXXX");
	assert_non_null(mkdtemp(s->mount));
	s->now_ns = SECOND;
	for (const char *const *folder = (const char *const[]){"a", "a/b", "a/b/c", NULL}; *folder;
	     folder++) {
		snprintf(path, sizeof(path), "%s/%s", s->mount, *folder);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	*state = s;
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;
	char command[128];

	assert_null(s->list);
	snprintf(command, sizeof(command), "rm -r %s", s->mount);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

static struct memory_high *watch(struct scene *s, int version, const char *cgroup)
{
	return memory_high_get(&s->list, version, cgroup, s->mount, s->now_ns);
}

/* A look later: crossings since the last one. */
static uint64_t look(struct scene *s, struct memory_high *cgroup)
{
	uint64_t before = cgroup->crossings;

	memory_high_look(cgroup, s->now_ns += SECOND / 20);
	return cgroup->crossings - before;
}

static void put_version_2(const struct scene *s)
{
	put(s, "a/memory.high", "max\n");
	put(s, "a/b/memory.high", "1000000\n");
	put(s, "a/b/c/memory.high", "max\n");
	put_events(s, "a/b/memory.events.local", 7);
	put_events(s, "a/b/memory.events", 70);
	put_number(s, "a/b/memory.current", 500000);
}

static void version_2_counts(void **state)
{
	struct scene *s = *state;
	struct memory_high *cgroup;

	put_version_2(s);
	cgroup = watch(s, 2, "/a/b/c");
	assert_int_equal(cgroup->answer, MEMORY_HIGH_WATCHED);
	assert_string_equal(memory_high_name(memory_high_limited(cgroup)), "/a/b");
	assert_int_equal(look(s, cgroup), 0); /* what was before is not news */
	put_events(s, "a/b/memory.events.local", 9);
	put_number(s, "a/b/memory.current", 1000400);
	assert_int_equal(look(s, cgroup), 1);
	assert_true(cgroup->above);
	assert_int_equal(cgroup->crossed_bytes, 1000400);
	assert_int_equal(cgroup->crossed->limit_bytes, 1000000);
	put_events(s, "a/b/memory.events.local", 12);
	assert_int_equal(look(s, cgroup), 0); /* it is above all the time */
	put_number(s, "a/b/memory.current", 900000);
	look(s, cgroup);
	assert_true(cgroup->above);
	put_number(s, "a/b/memory.current", 899999);
	look(s, cgroup);
	assert_false(cgroup->above);
	put_events(s, "a/b/memory.events.local", 13); /* above and below again between two looks */
	assert_int_equal(look(s, cgroup), 1);
	memory_high_put(cgroup);
}

static void version_2_before_linux_5_2(void **state)
{
	struct scene *s = *state;
	struct memory_high *cgroup;
	char path[PATH_MAX];

	put_version_2(s);
	snprintf(path, sizeof(path), "%s/a/b/memory.events.local", s->mount);
	unlink(path);
	cgroup = watch(s, 2, "/a/b");
	put_events(s, "a/b/memory.events", 71);
	assert_int_equal(look(s, cgroup), 1);
	memory_high_put(cgroup);
}

static void version_1_compares(void **state)
{
	struct scene *s = *state;
	struct memory_high *cgroup;

	put_number(s, "a/memory.soft_limit_in_bytes", 9223372036854771712u);
	put_number(s, "a/b/memory.soft_limit_in_bytes", 1000);
	put_number(s, "a/b/memory.usage_in_bytes", 10);
	put_number(s, "a/b/memory.max_usage_in_bytes", 5000); /* long ago */
	cgroup = watch(s, 1, "/a/b");
	assert_int_equal(cgroup->answer, MEMORY_HIGH_WATCHED);
	assert_int_equal(look(s, cgroup), 0);
	put_number(s, "a/b/memory.usage_in_bytes", 1000);
	assert_int_equal(look(s, cgroup), 1);
	assert_int_equal(cgroup->crossed_bytes, 1000);
	put_number(s, "a/b/memory.usage_in_bytes", 950);
	assert_int_equal(look(s, cgroup), 0);
	put_number(s, "a/b/memory.usage_in_bytes", 1100);
	assert_int_equal(look(s, cgroup), 0);
	put_number(s, "a/b/memory.usage_in_bytes", 800);
	assert_int_equal(look(s, cgroup), 0);
	put_number(s, "a/b/memory.max_usage_in_bytes", 6000); /* between two looks */
	assert_int_equal(look(s, cgroup), 1);
	assert_int_equal(cgroup->crossed_bytes, 6000);
	assert_int_equal(look(s, cgroup), 0);
	put_number(s, "a/b/memory.usage_in_bytes", 1001);
	assert_int_equal(look(s, cgroup), 1);
	memory_high_put(cgroup);
}

/* Above its limit from the start: that was no crossing. */
static void version_1_above_from_the_start(void **state)
{
	struct scene *s = *state;
	struct memory_high *cgroup;

	put_number(s, "a/memory.soft_limit_in_bytes", 1000);
	put_number(s, "a/memory.usage_in_bytes", 2000);
	put_number(s, "a/memory.max_usage_in_bytes", 3000);
	cgroup = watch(s, 1, "/a");
	assert_int_equal(cgroup->crossings, 0);
	assert_true(cgroup->above);
	assert_int_equal(look(s, cgroup), 0);
	memory_high_put(cgroup);
}

static void limits_come_and_go(void **state)
{
	struct scene *s = *state;
	struct memory_high *cgroup;

	put_version_2(s);
	put(s, "a/b/memory.high", "max\n");
	put(s, "a/memory.max", "4096\n");
	put(s, "a/b/memory.max", "max\n");
	cgroup = watch(s, 2, "/a/b");
	assert_int_equal(cgroup->answer, MEMORY_HIGH_UNSET);
	assert_null(memory_high_limited(cgroup));
	assert_int_equal(memory_high_hard_limit(cgroup), 4096);
	put(s, "a/b/memory.high", "123\n");
	s->now_ns += SECOND;
	assert_int_equal(look(s, cgroup), 0);
	assert_int_equal(cgroup->answer, MEMORY_HIGH_WATCHED);
	put_events(s, "a/b/memory.events.local", 8);
	assert_int_equal(look(s, cgroup), 1);
	put(s, "a/b/memory.high", "max\n");
	s->now_ns += SECOND;
	assert_int_equal(look(s, cgroup), 0);
	assert_int_equal(cgroup->answer, MEMORY_HIGH_UNSET);
	assert_false(cgroup->above);
	memory_high_put(cgroup);
}

static void processes_of_a_cgroup_share_it(void **state)
{
	struct scene *s = *state;
	struct memory_high *one, *two, *other;

	put_version_2(s);
	one = watch(s, 2, "/a/b");
	other = watch(s, 2, "/a");
	two = watch(s, 2, "/a/b");
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, other);
	put_events(s, "a/b/memory.events.local", 8);
	assert_int_equal(look(s, one), 1);
	memory_high_look(two, s->now_ns);
	assert_int_equal(two->crossings, 1);
	memory_high_put(one);
	memory_high_put(other);
	memory_high_put(two);
	memory_high_put(NULL);
}

static void what_cannot_be_read(void **state)
{
	struct scene *s = *state;
	static const char *const names[] = {"/nowhere", "/", "", "//", "/../../etc", "/a/b/c"};
	char deep[3000] = "", longest[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct memory_high *cgroup = watch(s, (int)(i % 3), names[i]);

		assert_int_equal(cgroup->answer, MEMORY_HIGH_UNREADABLE);
		assert_int_equal(look(s, cgroup), 0);
		assert_int_equal(memory_high_hard_limit(cgroup), MEMORY_HIGH_NO_LIMIT);
		memory_high_put(cgroup);
	}
	while (strlen(deep) < sizeof(deep) - 3)
		strcat(deep, "/x");
	memory_high_put(watch(s, 2, deep));
	memset(longest, 'y', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	memory_high_put(watch(s, 1, longest));
	put_version_2(s);
	put(s, "a/b/memory.events.local", "nonsense");
	put(s, "a/b/memory.high", "12x\n");
	struct memory_high *cgroup = watch(s, 2, "/a/b");
	assert_int_equal(look(s, cgroup), 0);
	memory_high_put(cgroup);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(version_2_counts),
	    TEST(version_2_before_linux_5_2),
	    TEST(version_1_compares),
	    TEST(version_1_above_from_the_start),
	    TEST(limits_come_and_go),
	    TEST(processes_of_a_cgroup_share_it),
	    TEST(what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
