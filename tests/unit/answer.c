/* SPDX-License-Identifier: Apache-2.0 */
/* The answer's sentences, from series whose truth is known; and names in few columns. */
#include "pprof/export/answer.h"
#include "pprof/analysis/row_label.h"
#include "pprof/export/growth_text.h"
#include "pprof/model/profile.h"
#include "pprof/text/short_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NS  INT64_C(1000000000)
#define MIB (1 << 20)

enum { PERIOD = 4096, COLUMNS = 12, KEEP = 0, CHURN, UNNAMED, STACKS };

/* What a column holds of each stack, in samples, and what has been allocated there so far. */
struct moment {
	int64_t inuse[STACKS], allocated[STACKS];
};

static int64_t times_ns[COLUMNS], rss_bytes[COLUMNS];
static struct traces traces;
static struct growth growth;
static struct answer answer;

static struct profile *profile_of(const struct moment *moment, int64_t period)
{
	static const char *const stacks[STACKS][3] = {
	    {"std::make_shared<app::Row>", "app::Cache::keep<int>(int)", "main"}, {"strdup", "serve", "main"},
	    {"gateway+0x3a10", NULL, NULL}};
	struct profile *p = profile_new();

	profile_add_sample_type(p, "alloc_objects", "count");
	profile_add_sample_type(p, "alloc_space", "bytes");
	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	if (period)
		profile_set_period(p, "space", "bytes", period);
	for (int s = 0; s < STACKS; s++) {
		const int64_t values[] = {moment->allocated[s], moment->allocated[s] * PERIOD,
		    moment->inuse[s], moment->inuse[s] * PERIOD};
		uint32_t ids[3], depth = 0;

		for (; depth < 3 && stacks[s][depth]; depth++) {
			const struct profile_function function = {.name = stacks[s][depth]};
			const struct profile_line line = {.function = profile_add_function(p, &function)};
			const struct profile_location location = {
			    .address = (uintptr_t)stacks[s][depth], .lines = &line, .line_count = 1};

			ids[depth] = profile_add_location(p, &location);
		}
		assert_int_equal(profile_add_sample(p, ids, depth, values, NULL, 0), 0);
	}
	assert_int_equal(profile_error(p), 0);
	return p;
}

static void series(const struct moment *moments, size_t count, int64_t period)
{
	const struct traces_options options = {.names = FRAMES_SHORT, .fold = true};
	struct profile *profiles[COLUMNS];

	for (size_t i = 0; i < count; i++)
		profiles[i] = profile_of(&moments[i], period);
	assert_int_equal(traces_init(&traces, &options, profiles[0], count), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(traces_add(&traces, profiles[i], i), 0);
	assert_int_equal(traces_finish(&traces), 0);
	assert_int_equal(row_label_choose(&traces), 0);
	for (size_t i = 0; i < count; i++) {
		profile_free(profiles[i]);
		times_ns[i] = (1764246000 + 10 * (int64_t)i) * NS;
	}
}

/* Of the last column; the caller of series() then calls end(). */
static void answer_of(struct answer_facts facts, size_t count, bool with_growth)
{
	facts.traces = &traces;
	facts.times_ns = times_ns;
	facts.point_count = count;
	if (with_growth) {
		assert_int_equal(growth_make(&growth, &traces, 0, times_ns, count), 0);
		facts.growth = &growth;
	}
	assert_int_equal(answer_make(&answer, &facts), 0);
}

static void end(void)
{
	traces_fini(&traces);
	growth_fini(&growth);
}

static void a_leak_is_named_with_its_beginning_and_rate(void **unused)
{
	struct moment moments[COLUMNS];

	for (int i = 0; i < COLUMNS; i++)
		moments[i] = (struct moment){
		    .inuse = {100 * (i + 1), 50, 0}, .allocated = {100 * (i + 1), 50 + 1000 * i, 0}};
	series(moments, COLUMNS, PERIOD);
	answer_of((struct answer_facts){.column = COLUMNS - 1, .unseen = "the JS heap; node --heap-prof"},
	    COLUMNS, true);
	assert_string_equal(
	    answer.held, "4.9 MiB +- 107.9 KiB in use, 96 % of it by app::Cache::keep (> std::make_shared).");
	assert_string_equal(
	    answer.grows, "app::Cache::keep grows since 12:20:00, by 2.3 MiB a minute +- 2.3 %.");
	assert_string_equal(answer.unseen, "Not seen: the JS heap; node --heap-prof.");
	assert_string_equal(answer.held_function, "app::Cache::keep");
	assert_string_equal(answer.grows_function, "app::Cache::keep");
	end();
}

static void nothing_grows_and_a_step_has_its_time(void **unused)
{
	struct moment moments[COLUMNS];

	for (int i = 0; i < COLUMNS; i++)
		moments[i] =
		    (struct moment){.inuse = {100, 50 + i % 2, 0}, .allocated = {100, 50 + 1000 * i, 0}};
	series(moments, COLUMNS, PERIOD);
	answer_of((struct answer_facts){.column = COLUMNS - 1}, COLUMNS, true);
	assert_string_equal(answer.grows, "Nothing grows by more than chance, over 12 snapshots in 110 s.");
	assert_string_equal(answer.grows_function, "");
	end();

	for (int i = 4; i < COLUMNS; i++)
		moments[i].inuse[KEEP] = moments[i].allocated[KEEP] = 600;
	series(moments, COLUMNS, PERIOD);
	answer_of((struct answer_facts){.column = COLUMNS - 1}, COLUMNS, true);
	assert_string_equal(answer.grows,
	    "Nothing grows; app::Cache::keep rose by 2.0 MiB from 12:20:30 to 12:20:40 and is flat since.");
	assert_string_equal(answer.grows_function, "app::Cache::keep");
	end();
}

static void resident_memory_that_grows_alone_is_said_so(void **unused)
{
	struct moment moments[COLUMNS];
	const struct answer_facts facts = {.column = COLUMNS - 1, .rss_bytes = rss_bytes};

	for (int i = 0; i < COLUMNS; i++) {
		moments[i] = (struct moment){.inuse = {100, 50, 0}, .allocated = {100, 50 + 1000 * i, 0}};
		rss_bytes[i] = (20 + 8 * i) * (int64_t)MIB;
	}
	series(moments, COLUMNS, PERIOD);
	answer_of(facts, COLUMNS, true);
	assert_string_equal(answer.grows,
	    "Resident memory grows since 12:20:00, by 819.2 KiB a second, to 108.0 MiB; the sampled heap "
	    "does not (600.0 KiB in use).");
	growth_fini(&growth);
	rss_bytes[3] = -1; /* not read then */
	answer_of(facts, COLUMNS, true);
	assert_string_equal(answer.grows, "Nothing grows by more than chance, over 12 snapshots in 110 s.");
	growth_fini(&growth);
	for (int i = 0; i < COLUMNS; i++) /* it only warms up */
		rss_bytes[i] = (i < 3 ? 20 + 8 * i : 44) * (int64_t)MIB;
	answer_of(facts, COLUMNS, true);
	assert_string_equal(answer.grows, "Nothing grows by more than chance, over 12 snapshots in 110 s.");
	end();
	/* The heap goes up and down too much to be sure of it, but is above where it was. */
	for (int i = 0; i < COLUMNS; i++) {
		moments[i] = (struct moment){
		    .inuse = {i % 2 ? 3000 : 10, 50, 0}, .allocated = {3000 * (i + 1), 50, 0}};
		rss_bytes[i] = (20 + i) * (int64_t)MIB;
	}
	series(moments, COLUMNS, PERIOD);
	answer_of(facts, COLUMNS, true);
	assert_string_equal(answer.grows,
	    "Resident memory grows since 12:20:00, by 102.4 KiB a second, to 31.0 MiB; the sampled heap rose "
	    "by 11.7 MiB, but in no function by more than chance.");
	end();
}

static void what_is_missing_is_said(void **unused)
{
	const struct moment two[2] = {
	    {.inuse = {3, 0, 0}, .allocated = {3, 0, 0}}, {.inuse = {3, 0, 0}, .allocated = {3, 0, 0}}};

	series(two, 2, PERIOD);
	answer_of((struct answer_facts){.column = 1}, 2, true);
	assert_string_equal(answer.held,
	    "12.0 KiB in use (by 2 samples only: a hint), all of it by app::Cache::keep (> "
	    "std::make_shared).");
	assert_string_equal(answer.grows,
	    "What grows is not known yet: that takes 4 snapshots, and there are 2 (-i 10s gives more).");
	end();
	series(two, 1, PERIOD);
	answer_of((struct answer_facts){.is_attached = true, .is_alone = true}, 1, true);
	assert_string_equal(answer.grows,
	    "What grows is not known yet: that takes 4 snapshots, and there is 1 (give the folder of all; "
	    "-i 10s gives more).");
	assert_non_null(strstr(answer.held, " in use, of what was allocated since heaptap attached ("));
	end();
	series(two, 1, 0); /* another tool's, without a period: no errors, and nobody asks what grows */
	answer_of((struct answer_facts){0}, 1, false);
	assert_string_equal(
	    answer.held, "12.0 KiB in use, all of it by app::Cache::keep (> std::make_shared).");
	assert_string_equal(answer.grows, "");
	assert_string_equal(answer.unseen, "");
	end();
}

/* The advice is an interval that gives four snapshots in the time that there was. */
static void more_snapshots_of_a_time(void **unused)
{
	static const struct {
		int time_s, session_s;
		const char *advice;
	} cases[] = {{1015, 1000, "-i 2s gives more"}, {1004, 1000, "a longer run gives more"},
	    {1005, 1000, "-i 1s gives more"}, {1029, 900, "-i 5s gives more"},
	    {9999, 1000, "-i 10s gives more"}, {9999, 9988, "-i 2s gives more"},
	    {0, 1000, "-i 10s gives more"}};
	char text[ANSWER_MORE_BYTES];
	struct origin origin = {.ours = true, .start_ns = 1000 * (int64_t)NS};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		origin.time_ns = cases[i].time_s * (int64_t)NS;
		origin.session_ns = cases[i].session_s * (int64_t)NS;
		assert_string_equal(answer_more_snapshots(&origin, text), cases[i].advice);
	}
	origin.is_daemons = true;
	origin.time_ns = 1015 * (int64_t)NS;
	origin.session_ns = 1000 * (int64_t)NS;
	assert_string_equal(answer_more_snapshots(&origin, text), "interval = 2s in heaptap.conf gives more");
	assert_string_equal(answer_more_snapshots(NULL, text), "-i 10s gives more");
}

static void nothing_sampled_is_not_nothing(void **unused)
{
	const struct moment none[] = {{{0}, {0}}};

	series(none, 1, PERIOD);
	answer_of((struct answer_facts){.has_ended = true}, 1, true);
	assert_string_equal(answer.held, "No allocation was sampled.");
	end();
}

static void the_peak_answers_for_a_clean_end(void **unused)
{
	const struct moment end_and_peak[2] = {{.inuse = {0, 0, 0}, .allocated = {300, 100, 0}},
	    {.inuse = {300, 100, 0}, .allocated = {300, 100, 0}}};

	series(end_and_peak, 2, PERIOD);
	answer_of((struct answer_facts){.has_ended = true, .has_peak = true, .peak = 1}, 0, false);
	assert_string_equal(answer.held,
	    "Nothing sampled is in use at the end; 1.6 MiB +- 61.0 KiB at the peak, 75 % of it by "
	    "app::Cache::keep (> std::make_shared).");
	answer_of((struct answer_facts){.column = 1, .is_peak = true}, 0, false);
	assert_non_null(strstr(answer.held, " in use at the peak, 75 % of it by app::Cache::keep"));
	end();
}

static void code_without_a_name_is_no_function(void **unused)
{
	const struct moment moment = {.inuse = {100, 0, 300}, .allocated = {100, 0, 300}};

	series(&moment, 1, PERIOD);
	answer_of((struct answer_facts){0}, 0, false);
	assert_string_equal(answer.held,
	    "1.6 MiB +- 61.0 KiB in use, 75 % of it by code without a function's name (gateway+0x3a10), 25 "
	    "% "
	    "by app::Cache::keep (> std::make_shared).");
	assert_string_equal(answer.held_function, "app::Cache::keep");
	end();
}

static void a_change_is_one_sentence(void **unused)
{
	struct moment moments[2] = {{.inuse = {100, 50, 0}, .allocated = {100, 50, 0}},
	    {.inuse = {900, 52, 0}, .allocated = {900, 52, 0}}};
	const struct column_diff_options options = {.after = 1, .kind = MEASURE_INUSE};
	char text[CHANGE_TEXT_BYTES];
	struct column_diff compared;
	const char *function;

	series(moments, 2, PERIOD);
	assert_int_equal(column_diff_make(&compared, &traces, &options), 0);
	change_text(text, &function, &traces, MEASURE_INUSE, &compared);
	assert_string_equal(
	    text, "In use rose by 3.1 MiB +- 3.2 %, more than chance: app::Cache::keep +3.1 MiB.");
	assert_string_equal(function, "app::Cache::keep");
	column_diff_fini(&compared);
	end();
	moments[1] = (struct moment){.inuse = {95, 50, 0}, .allocated = {100, 50, 0}};
	series(moments, 2, PERIOD);
	assert_int_equal(column_diff_make(&compared, &traces, &options), 0);
	change_text(text, &function, &traces, MEASURE_INUSE, &compared);
	assert_string_equal(text, "In use fell by 20.0 KiB +- 262 %, no more than chance.");
	assert_string_equal(function, "");
	column_diff_fini(&compared);
	end();
	series(moments, 2, 0); /* nobody knows what is chance */
	assert_int_equal(column_diff_make(&compared, &traces, &options), 0);
	change_text(text, &function, &traces, MEASURE_INUSE, &compared);
	assert_string_equal(text, "In use fell by 20.0 KiB: app::Cache::keep -20.0 KiB.");
	column_diff_fini(&compared);
	end();
}

static void names_lose_folders_and_scopes_first(void **unused)
{
	static const struct {
		const char *name;
		size_t columns;
		const char *text;
	} cases[] = {
	    {"main", 4, "main"},
	    {"py::_call_soon:/usr/lib/python3.12/asyncio/events.py", 36,
	        "py::_call_soon:.../asyncio/events.py"},
	    {"py::_call_soon:/usr/lib/python3.12/asyncio/events.py", 28, "py::_call_soon:.../events.py"},
	    {"py::_call_soon:/usr/lib/python3.12/asyncio/events.py", 24, "py::_call_soon:...nts.py"},
	    {"py::_call_with_frames:<frozen importlib._bootstrap>", 36,
	        "py::_call_with_frames:..._bootstrap>"},
	    {"keepUpload /srv/app/dist/store.js:18:20", 30, "keepUpload .../store.js:18:20"},
	    {"gw::detail::RouteCache::resolve", 24, "...RouteCache::resolve"},
	    {"a_function_of_c_that_is_long", 15, "a_func...s_long"},
	    {"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 5, "\xc3\xa4...\xc3\xa4"},
	    {"abcdef", 2, "ab"},
	};
	char text[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		short_name_fit(cases[i].name, cases[i].columns, "...", text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
	short_name_fit("gw::RouteCache::resolve", 20, "\xe2\x80\xa6", text, sizeof(text));
	assert_string_equal(text, "\xe2\x80\xa6RouteCache::resolve");
	short_name_fit("\xc3\xa4\xc3\xa4", 2, "...", text, 4); /* no character is cut in two */
	assert_string_equal(text, "\xc3\xa4");
}

static void rates_and_spans_have_readable_units(void **unused)
{
	char text[GROWTH_TEXT_BYTES];

	assert_string_equal(growth_text_rate(4.7 * MIB, text), "4.7 MiB a second");
	assert_string_equal(growth_text_rate(1.5 * MIB / 60, text), "1.5 MiB a minute");
	assert_string_equal(growth_text_rate(1.5 * MIB / 3600, text), "1.5 MiB an hour");
	assert_string_equal(growth_text_rate(10, text), "843.8 KiB a day");
	assert_string_equal(growth_text_span(90, text), "90 s");
	assert_string_equal(growth_text_span(600, text), "10 min");
	assert_string_equal(growth_text_span(7200, text), "2 h");
	assert_string_equal(growth_text_error(100, 4, text), " +- 2.0 %");
	assert_string_equal(growth_text_error(100, 10000, text), " +- 100 %");
	assert_string_equal(growth_text_error(100, 0, text), "");
	assert_string_equal(growth_text_clock(1764246000 * NS, 3600, text), "12:20:00");
	assert_string_equal(growth_text_clock(1764246000 * NS, 90000, text), "2025-11-27 12:20");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_leak_is_named_with_its_beginning_and_rate),
	    cmocka_unit_test(nothing_grows_and_a_step_has_its_time),
	    cmocka_unit_test(resident_memory_that_grows_alone_is_said_so),
	    cmocka_unit_test(what_is_missing_is_said),
	    cmocka_unit_test(more_snapshots_of_a_time),
	    cmocka_unit_test(nothing_sampled_is_not_nothing),
	    cmocka_unit_test(the_peak_answers_for_a_clean_end),
	    cmocka_unit_test(code_without_a_name_is_no_function),
	    cmocka_unit_test(a_change_is_one_sentence),
	    cmocka_unit_test(names_lose_folders_and_scopes_first),
	    cmocka_unit_test(rates_and_spans_have_readable_units),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
