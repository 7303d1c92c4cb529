/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/interval.h"

#include <stdio.h>

static const uint64_t second_ns = UINT64_C(1000000000);
static const uint64_t early_s[] = {5, 10, 20, 40};

enum { EARLY = sizeof(early_s) / sizeof(early_s[0]) };

static uint64_t regular_ns(uint64_t interval_ns)
{
	return interval_ns == INTERVAL_USUAL ? INTERVAL_USUAL_NS : interval_ns;
}

/* How many early snapshots were due up to that age. */
static uint64_t early_count(uint64_t interval_ns, uint64_t age_ns)
{
	uint64_t count = 0;

	while (interval_ns == INTERVAL_USUAL && count < EARLY && early_s[count] * second_ns <= age_ns)
		count++;
	return count;
}

uint64_t interval_due_ns(uint64_t interval_ns, uint64_t number)
{
	const uint64_t early = interval_ns == INTERVAL_USUAL ? EARLY : 0;

	if (!interval_ns)
		return UINT64_MAX;
	return number > early ? (number - early) * regular_ns(interval_ns) : early_s[number - 1] * second_ns;
}

uint64_t interval_count(uint64_t interval_ns, uint64_t age_ns)
{
	return interval_ns ? early_count(interval_ns, age_ns) + age_ns / regular_ns(interval_ns) : 0;
}

bool interval_is_early(uint64_t interval_ns, uint64_t age_ns)
{
	return interval_ns == INTERVAL_USUAL && age_ns < INTERVAL_USUAL_NS;
}

void interval_describe(uint64_t interval_ns, uint64_t age_ns, char *text, size_t text_bytes)
{
	if (interval_is_early(interval_ns, age_ns))
		snprintf(text, text_bytes, "after %g s", (double)age_ns / 1e9);
	else
		snprintf(text, text_bytes, "every %g s", (double)regular_ns(interval_ns) / 1e9);
}

/* ---- the clock of a process */

static uint64_t count_until(const struct interval_clock *periodic, uint64_t interval_ns, uint64_t now_ns)
{
	return now_ns > periodic->begin_ns ? interval_count(interval_ns, now_ns - periodic->begin_ns) : 0;
}

static uint64_t due_ns(const struct interval_clock *periodic, uint64_t interval_ns, uint64_t number)
{
	const uint64_t age_ns = interval_due_ns(interval_ns, number);

	return age_ns < UINT64_MAX - periodic->begin_ns ? periodic->begin_ns + age_ns : UINT64_MAX;
}

static void set_interval(struct interval_clock *periodic, uint64_t interval_ns, uint64_t now_ns)
{
	periodic->interval_ns = interval_ns;
	periodic->due_ns = due_ns(periodic, interval_ns, count_until(periodic, interval_ns, now_ns) + 1);
}

uint64_t interval_clock_begin(
    struct interval_clock *periodic, uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns)
{
	*periodic = (struct interval_clock){.begin_ns = begin_ns};
	set_interval(periodic, interval_ns, now_ns);
	return count_until(periodic, interval_ns, now_ns);
}

bool interval_clock_look(struct interval_clock *periodic, uint64_t interval_ns, uint64_t now_ns)
{
	if (interval_ns != periodic->interval_ns)
		set_interval(periodic, interval_ns, now_ns);
	if (!interval_ns || now_ns < periodic->due_ns)
		return false;
	const uint64_t until_now = count_until(periodic, interval_ns, now_ns);
	const uint64_t late = until_now - count_until(periodic, interval_ns, periodic->due_ns);
	periodic->skipped += late;
	if (late)
		periodic->due_ns = due_ns(periodic, interval_ns, until_now);
	return true;
}

void interval_clock_advance(struct interval_clock *periodic, uint64_t interval_ns, uint64_t now_ns)
{
	const uint64_t taken = count_until(periodic, interval_ns, periodic->due_ns);

	periodic->due_ns = due_ns(periodic, interval_ns, taken + 1);
	if (periodic->due_ns <= now_ns)
		(void)interval_clock_look(periodic, interval_ns, now_ns);
}
