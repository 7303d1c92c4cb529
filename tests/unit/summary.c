/* SPDX-License-Identifier: Apache-2.0 */
/* What the user reads when a process has ended. */
#include "sampler/snapshot/summary.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"

static void an_end_as_a_phrase(void **state)
{
	const struct {
		enum target_end end;
		int status;
		const char *text;
	} ends[] = {{TARGET_EXITED, 0, "exited with status 0"},
	    {TARGET_EXITED, 255 << 8, "exited with status 255"},
	    {TARGET_EXITED, SIGKILL, "was killed by SIGKILL"},
	    {TARGET_EXITED, SIGSEGV | WCOREFLAG, "was killed by SIGSEGV"},
	    {TARGET_EXITED, 40, "was killed by SIG?"}, /* a real-time signal has no name */
	    {TARGET_EXEC, 0, "executed another program"},
	    {TARGET_GONE, 7 << 8, "has ended; how is not known (not a child of heaptap)"},
	    {TARGET_UNSEEN, 0, "had ended before heaptap saw it; how is not known"},
	    {TARGET_ALIVE, 0, "is running"}};
	char text[96];
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const struct target target = {.end = ends[i].end, .status = ends[i].status};
		summary_end(&target, text, sizeof(text));
		assert_string_equal(text, ends[i].text);
	}
	memset(text, 'x', sizeof(text));
	const struct target target = {.end = TARGET_EXITED};
	summary_end(&target, text, 7);
	assert_string_equal(text, "exited");
	assert_int_equal(text[7], 'x');
	const struct target unseen = {
	    .end = TARGET_EXEC, .unseen = "executed /bin/sudo, which is not profiled"};
	summary_end(&unseen, text, sizeof(text));
	assert_string_equal(text, unseen.unseen);
}

/* ---- the block of lines */

struct scene {
	struct image *image;
	struct process process;
	struct heap_snapshot snapshot;
	char text[8192]; /* what was printed last */
};

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));
	*state = s;
	fixture_open(region, 1024);
	s->image = image_new(region, 1);
	s->process.image = s->image;
	s->process.target.pid = 4711;
	s->process.target.end = TARGET_EXITED;
	strcpy(s->process.target.title, "serve");
	s->snapshot.process = &s->process;
	s->snapshot.view.inuse = (struct heap_estimate){
	    .bytes = 1.5 * (1 << 20), .bytes_variance = 1024.0 * 1024, .objects = 30, .objects_variance = 4};
	s->snapshot.view.allocated.samples = 100;
	strcpy(s->snapshot.path, "/tmp/serve.4711.exit.pb.gz");
	return 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;
	image_free(s->image);
	free(s);
	return 0;
}

static const char *print(struct scene *s, int error)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	summary_print(&s->snapshot, error);
	dup2(saved, STDERR_FILENO);
	ssize_t bytes = pread(fd, s->text, sizeof(s->text) - 1, 0);
	s->text[bytes < 0 ? 0 : bytes] = '\0';
	close(fd);
	close(saved);
	return s->text;
}

static void all_is_well(void **state)
{
	struct scene *s = *state;
	assert_string_equal(print(s, 0),
	    "heaptap: serve (pid 4711) exited with status 0\n"
	    "heaptap:   at end  1.5 MiB +- 1.0 KiB in 30 +- 2 objects\n"
	    "heaptap:   samples 100 taken, 0 without a stack\n"
	    "heaptap:   profile /tmp/serve.4711.exit.pb.gz\n"
	    "heaptap:   show it: heaptap report /tmp/serve.4711.exit.pb.gz\n"
	    "heaptap:   or: go tool pprof -http=: /tmp/serve.4711.exit.pb.gz\n");
}

/* The errors are square roots of what the region has of them, each in its own unit. */
static void the_peak(void **state)
{
	struct scene *s = *state;
	struct region_place *place = region_place(s->image->region, 0);
	atomic_store(&place->peak_bytes_q8, (uint64_t)(3 << 20) << WEIGHT_BYTES_SHIFT);
	atomic_store(&place->peak_objects_q16, (uint64_t)500 << WEIGHT_OBJECTS_SHIFT);
	atomic_store(&place->peak_variance, (uint64_t)2048 * 2048);
	atomic_store(&place->peak_objects_variance, (uint64_t)7 * 7 << WEIGHT_OBJECTS_VARIANCE_SHIFT);
	assert_null(strstr(print(s, 0), "  peak ")); /* none was ever */
	atomic_store(&place->peak_order, 1);
	assert_non_null(strstr(
	    print(s, 0), "heaptap:   peak    3.0 MiB +- 2.0 KiB in 500 +- 7 objects\nheaptap:   at end"));
}

static void every_loss_by_its_cause(void **state)
{
	struct scene *s = *state;
	struct region_place *place = region_place(s->image->region, 0);
	char expected[256];
	s->snapshot.view.lost_alloc.samples = 12;
	s->process.counters.outcome[UNWIND_COMPLETE] = 70;
	s->process.counters.outcome[UNWIND_TRUNCATED] = 13;
	s->process.counters.outcome[UNWIND_NO_CFI] = 5;
	s->process.counters.no_room = 2;
	s->process.counters.inherited_no_room = 1;
	s->snapshot.view.lost_inherited = 4;
	s->process.counters.before_restart = 6;
	atomic_store(&place->lost[REGION_LOSS_NO_BUFFER].samples, 9);
	snprintf(expected, sizeof(expected),
	    "heaptap:   samples 100 taken, 18 without a stack; inherited without a stack: 4; sampled before "
	    "restart: "
	    "6; %s: 9; %s: 13; %s: 5; no memory for: 3\n",
	    region_loss_name(REGION_LOSS_NO_BUFFER), unwind_outcome_name(UNWIND_TRUNCATED),
	    unwind_outcome_name(UNWIND_NO_CFI));
	assert_non_null(strstr(print(s, 0), expected));
	/* All of them, as high as a hostile target makes them: one line, cut short at worst. */
	for (uint32_t i = 0; i < REGION_LOSS_COUNT; i++)
		atomic_store(&place->lost[i].samples, UINT64_MAX);
	for (uint32_t i = 0; i < UNWIND_OUTCOMES; i++)
		s->process.counters.outcome[i] = UINT64_MAX;
	s->snapshot.view.lost_alloc.samples = s->snapshot.view.allocated.samples = UINT64_MAX;
	s->process.counters.before_restart = s->snapshot.view.lost_inherited = 0;
	const char *line = strstr(print(s, 0), "heaptap:   samples 18446744073709551615 taken");
	assert_non_null(line);
	assert_true(strchr(line, '\n') - line < 600);
	assert_int_equal(strncmp(strchr(line, '\n'), "\nheaptap:   profile ", 20), 0);
}

static void children_without_a_place_are_told_of_by_the_image(void **state)
{
	struct scene *s = *state;
	atomic_store(&region_header(s->image->region)->places_exhausted, 3);
	assert_non_null(
	    strstr(print(s, 0), "\nheaptap:   not profiled: 3 forked children without a free place\n"));
	atomic_store(&region_header(s->image->region)->not_cut_off, 2);
	assert_non_null(strstr(print(s, 0),
	    "\nheaptap:   not profiled since they changed their user id: 2 forked children that"));
	s->process.place = 1; /* a child's own summary does not tell of it once more */
	assert_null(strstr(print(s, 0), "not profiled"));
}

static void what_the_hook_cannot_see(void **state)
{
	struct scene *s = *state;
	region_header(s->image->region)->unseen = REGION_UNSEEN_MALLOC;
	assert_non_null(strstr(print(s, 0), region_unseen_text(s->image->region)));
}

static void a_profile_that_was_not_written_is_not_shown(void **state)
{
	struct scene *s = *state;
	print(s, -ENOSPC);
	assert_non_null(strstr(s->text,
	    "\nheaptap:   profile not written: /tmp/serve.4711.exit.pb.gz: No space left on device\n"));
	assert_null(strstr(s->text, "show it"));
	assert_null(strstr(s->text, "pprof"));
}

/* The title is the target's word. */
static void a_title_adds_no_lines(void **state)
{
	struct scene *s = *state;
	strcpy(s->process.target.title, "a\nheaptap: b\x1b[2J");
	assert_ptr_equal(strstr(print(s, 0), "heaptap: a?heaptap: b?[2J (pid 4711) exited"), s->text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_end_as_a_phrase),
	    TEST(all_is_well),
	    TEST(the_peak),
	    TEST(every_loss_by_its_cause),
	    TEST(children_without_a_place_are_told_of_by_the_image),
	    TEST(what_the_hook_cannot_see),
	    TEST(a_profile_that_was_not_written_is_not_shown),
	    TEST(a_title_adds_no_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
