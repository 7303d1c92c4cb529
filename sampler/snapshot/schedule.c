/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/schedule.h"

#include <stdio.h>

static const uint64_t second_ns = UINT64_C(1000000000);
static const uint64_t early_s[] = {5, 10, 20, 40};

enum { EARLY = sizeof(early_s) / sizeof(early_s[0]) };

static uint64_t regular_ns(uint64_t interval_ns)
{
	return interval_ns == SCHEDULE_USUAL ? SCHEDULE_USUAL_NS : interval_ns;
}

/* How many early snapshots were due up to that age. */
static uint64_t early_count(uint64_t interval_ns, uint64_t age_ns)
{
	uint64_t count = 0;

	while (interval_ns == SCHEDULE_USUAL && count < EARLY && early_s[count] * second_ns <= age_ns)
		count++;
	return count;
}

uint64_t schedule_due_ns(uint64_t interval_ns, uint64_t number)
{
	const uint64_t early = interval_ns == SCHEDULE_USUAL ? EARLY : 0;

	if (!interval_ns)
		return UINT64_MAX;
	return number > early ? (number - early) * regular_ns(interval_ns) : early_s[number - 1] * second_ns;
}

uint64_t schedule_count(uint64_t interval_ns, uint64_t age_ns)
{
	return interval_ns ? early_count(interval_ns, age_ns) + age_ns / regular_ns(interval_ns) : 0;
}

bool schedule_is_early(uint64_t interval_ns, uint64_t age_ns)
{
	return interval_ns == SCHEDULE_USUAL && age_ns < SCHEDULE_USUAL_NS;
}

void schedule_describe(uint64_t interval_ns, uint64_t age_ns, char *text, size_t text_bytes)
{
	if (schedule_is_early(interval_ns, age_ns))
		snprintf(text, text_bytes, "after %g s", (double)age_ns / 1e9);
	else
		snprintf(text, text_bytes, "every %g s", (double)regular_ns(interval_ns) / 1e9);
}

/* ---- the clock of a process */

static uint64_t count_until(const struct schedule *schedule, uint64_t interval_ns, uint64_t now_ns)
{
	return now_ns > schedule->begin_ns ? schedule_count(interval_ns, now_ns - schedule->begin_ns) : 0;
}

static uint64_t due_ns(const struct schedule *schedule, uint64_t interval_ns, uint64_t number)
{
	const uint64_t age_ns = schedule_due_ns(interval_ns, number);

	return age_ns < UINT64_MAX - schedule->begin_ns ? schedule->begin_ns + age_ns : UINT64_MAX;
}

static void set_interval(struct schedule *schedule, uint64_t interval_ns, uint64_t now_ns)
{
	schedule->interval_ns = interval_ns;
	schedule->due_ns = due_ns(schedule, interval_ns, count_until(schedule, interval_ns, now_ns) + 1);
}

uint64_t schedule_begin(struct schedule *schedule, uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns)
{
	*schedule = (struct schedule){.begin_ns = begin_ns};
	set_interval(schedule, interval_ns, now_ns);
	return count_until(schedule, interval_ns, now_ns);
}

bool schedule_look(struct schedule *schedule, uint64_t interval_ns, uint64_t now_ns)
{
	if (interval_ns != schedule->interval_ns)
		set_interval(schedule, interval_ns, now_ns);
	if (!interval_ns || now_ns < schedule->due_ns)
		return false;
	const uint64_t until_now = count_until(schedule, interval_ns, now_ns);
	const uint64_t late = until_now - count_until(schedule, interval_ns, schedule->due_ns);
	schedule->skipped += late;
	if (late)
		schedule->due_ns = due_ns(schedule, interval_ns, until_now);
	return true;
}

void schedule_advance(struct schedule *schedule, uint64_t interval_ns, uint64_t now_ns)
{
	const uint64_t taken = count_until(schedule, interval_ns, schedule->due_ns);

	schedule->due_ns = due_ns(schedule, interval_ns, taken + 1);
	if (schedule->due_ns <= now_ns)
		(void)schedule_look(schedule, interval_ns, now_ns);
}
