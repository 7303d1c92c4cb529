/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_moment.h"

#include "pprof/text/quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	DAY_S = 24 * 3600,
	SILENCE_S = 3600, /* a process that is silent for less lives */
	TOGETHER_S = 60,  /* ends within that time belong together */
	LATE_S = 5,       /* a last peak may be named so long after the end of its process */
};

/* ---- times */

static int ago(const char *text, int64_t now_s, int64_t *time_s)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', DAY_S}};
	const char *suffix;
	uint64_t number;

	if (quantity_number(text, &number, &suffix) || number > INT32_MAX || !suffix[0] || suffix[1])
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].unit != *suffix)
			continue;
		*time_s = now_s - (int64_t)number * units[i].seconds;
		return 0;
	}
	return -EINVAL;
}

struct form {
	const char *format;
	bool has_day, has_clock, has_seconds;
};

/* Sets the fields of *tm that the text has. *utc: a Z follows. False if the text has another form. */
static bool form_read(const struct form *form, const char *text, struct tm *tm, bool *utc)
{
	const char *end;

	/* strptime() would take spaces and signs. */
	if (text[0] < '0' || text[0] > '9')
		return false;
	end = strptime(text, form->format, tm);
	if (!end)
		return false;
	*utc = *end == 'Z';
	return !end[*utc];
}

static int64_t seconds_of(struct tm *tm, bool utc)
{
	tm->tm_isdst = -1;
	return utc ? timegm(tm) : mktime(tm);
}

/* The day of now. */
static bool today(int64_t now_s, bool utc, struct tm *tm)
{
	time_t now = (time_t)now_s;

	return utc ? gmtime_r(&now, tm) != NULL : localtime_r(&now, tm) != NULL;
}

static int of_calendar(const char *text, int64_t now_s, int64_t *time_s)
{
	static const struct form forms[] = {
	    {"%Y-%m-%dT%H:%M:%S", true, true, true},
	    {"%Y-%m-%d %H:%M:%S", true, true, true},
	    {"%Y-%m-%dT%H:%M", true, true, false},
	    {"%Y-%m-%d %H:%M", true, true, false},
	    {"%Y-%m-%d", true, false, false},
	    {"%H:%M:%S", false, true, true},
	    {"%H:%M", false, true, false},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = {0}, day;
		bool utc;

		if (!form_read(&forms[i], text, &tm, &utc))
			continue;
		if (!forms[i].has_day) {
			if (!today(now_s, utc, &day))
				return -EINVAL;
			tm.tm_year = day.tm_year, tm.tm_mon = day.tm_mon, tm.tm_mday = day.tm_mday;
		}
		if (!forms[i].has_clock)
			tm.tm_hour = 23, tm.tm_min = 59;
		if (!forms[i].has_seconds)
			tm.tm_sec = 59;
		*time_s = seconds_of(&tm, utc);
		if (!forms[i].has_day && *time_s - (forms[i].has_seconds ? 0 : 59) > now_s) {
			tm.tm_mday--;
			*time_s = seconds_of(&tm, utc);
		}
		return *time_s < 0 ? -EINVAL : 0;
	}
	return -EINVAL;
}

int store_moment_time(const char *text, int64_t now_s, int64_t *time_s)
{
	const char *suffix;
	uint64_t number;

	if (strcmp(text, "now") == 0) {
		*time_s = now_s;
		return 0;
	}
	if (*text == '@') {
		if (quantity_number(text + 1, &number, &suffix) || *suffix || number > INT64_MAX)
			return -EINVAL;
		*time_s = (int64_t)number;
		return 0;
	}
	return ago(text, now_s, time_s) == 0 ? 0 : of_calendar(text, now_s, time_s);
}

/* Is the text behind that '@' a time? */
static bool is_time(const char *at, int64_t now_s, int64_t *time_s)
{
	return at && store_moment_time(at + 1, now_s, time_s) == 0;
}

bool store_moment_split(
    const char *text, int64_t now_s, char service[SERVICE_NAME_BYTES], int64_t *time_s, bool *has_time)
{
	const char *at = strrchr(text, '@');
	size_t length = strlen(text);

	*time_s = now_s;
	*has_time = is_time(at, now_s, time_s);
	if (!*has_time && at && at > text && at[-1] == '@') /* "redis@@1795348560" */
		*has_time = is_time(--at, now_s, time_s);
	if (*has_time)
		length = (size_t)(at - text);
	if (length >= SERVICE_NAME_BYTES)
		return false;
	memcpy(service, text, length);
	service[length] = '\0';
	return service_name_is_good(service);
}

/* ---- processes */

/* One process, from its first file to its end. Its files are [first, first + count) of the order by pid. */
struct life {
	size_t first, count;
	size_t state, peak;        /* numbers of files; SIZE_MAX: none */
	int64_t state_s, before_s; /* of the newest state, and of the one before it */
	bool ended, chosen;
};

static bool is_end(const struct store_file *file)
{
	return file->class == STORE_EXIT || file->class == STORE_OOM;
}

static bool is_state(const struct store_file *file)
{
	return file->class == STORE_HEAP || file->class == STORE_HEAP_CAUSE || is_end(file);
}

static int compare_by_pid(const void *a, const void *b, void *context)
{
	const struct store_list *list = context;
	const struct store_file *x = &list->files[*(const size_t *)a], *y = &list->files[*(const size_t *)b];

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? -1 : 1;
	return x->class < y->class ? -1 : x->class > y->class;
}

static int compare_numbers(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

/* Is the file of that process, not of a later one with its pid? A last peak may be named after the end. */
static bool belongs(const struct life *life, const struct store_file *last, const struct store_file *file)
{
	return last->pid == file->pid &&
	    (!life->ended || (!is_state(file) && file->time_s <= life->state_s + LATE_S));
}

static void note(struct life *life, const struct store_file *file, size_t number)
{
	life->count++;
	if (file->class == STORE_PEAK)
		life->peak = number;
	if (!is_state(file))
		return;
	life->before_s = life->state == SIZE_MAX ? file->time_s : life->state_s;
	life->state = number;
	life->state_s = file->time_s;
	life->ended = is_end(file);
}

/* order: numbers of files by pid. Returns the number of lives. A life may have no state. */
static size_t lives_find(const struct store_list *list, const size_t *order, size_t count, struct life *lives)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct store_file *file = &list->files[order[i]];

		if (!i || !belongs(&lives[found - 1], &list->files[order[i - 1]], file))
			lives[found++] = (struct life){.first = i, .state = SIZE_MAX, .peak = SIZE_MAX};
		note(&lives[found - 1], file, order[i]);
	}
	return found;
}

/* The newest life that has ended, or has not ended. NULL if there is none. */
static const struct life *newest(const struct life *lives, size_t count, bool ended)
{
	const struct life *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (lives[i].state != SIZE_MAX && lives[i].ended == ended &&
		    (!found || lives[i].state_s > found->state_s))
			found = &lives[i];
	return found;
}

/* Marks the lives that count. Returns how many. */
static size_t lives_choose(struct life *lives, size_t count)
{
	const struct life *living = newest(lives, count, false), *ended = newest(lives, count, true);
	int64_t silence_s = SILENCE_S, since_s;
	bool want_ended;
	size_t chosen = 0;

	if (!living && !ended)
		return 0;
	if (living && (living->state_s - living->before_s) * 3 / 2 > silence_s)
		silence_s = (living->state_s - living->before_s) * 3 / 2;
	want_ended = !living || (ended && ended->state_s > living->state_s + silence_s);
	since_s = want_ended ? ended->state_s - TOGETHER_S : living->state_s - silence_s;
	for (size_t i = 0; i < count; i++) {
		lives[i].chosen =
		    lives[i].state != SIZE_MAX && lives[i].ended == want_ended && lives[i].state_s >= since_s;
		chosen += lives[i].chosen;
	}
	return chosen;
}

/* ---- files */

/* The states of the life's last second. Names have whole seconds: which of these files is the newest, only
 * the profiles say. */
static size_t take_last(
    const struct store_list *list, const size_t *order, const struct life *life, size_t *chosen)
{
	size_t count = 0;

	for (size_t i = life->first; i < life->first + life->count; i++)
		if (is_state(&list->files[order[i]]) && list->files[order[i]].time_s == life->state_s)
			chosen[count++] = order[i];
	return count;
}

/* States of a life at regular times, and those of its last second. */
static size_t take_series(
    const struct store_list *list, const size_t *order, const struct life *life, size_t *chosen)
{
	size_t count = 0;
	int64_t begin_s = list->files[order[life->first]].time_s, span_s = life->state_s - begin_s;

	for (size_t i = life->first; i < life->first + life->count; i++) {
		const struct store_file *file = &list->files[order[i]];
		int64_t next_s = begin_s + span_s * (int64_t)count / (STORE_MOMENT_SERIES_MOST - 1);

		if (!is_state(file) || file->time_s == life->state_s)
			continue;
		if (file->time_s >= next_s && count < STORE_MOMENT_SERIES_MOST - 1)
			chosen[count++] = order[i];
	}
	return count + take_last(list, order, life, chosen + count);
}

static size_t take_life(const struct store_list *list, const size_t *order, const struct life *life,
    enum store_moment_wanted wanted, size_t *chosen)
{
	size_t count = 0;

	if (wanted == STORE_MOMENT_ALL) {
		for (size_t i = life->first; i < life->first + life->count; i++)
			if (list->files[order[i]].class != STORE_EVENT)
				chosen[count++] = order[i];
		return count;
	}
	if (wanted == STORE_MOMENT_SERIES)
		count = take_series(list, order, life, chosen);
	else
		count = take_last(list, order, life, chosen);
	if (life->peak != SIZE_MAX)
		chosen[count++] = life->peak;
	return count;
}

int store_moment_choose(const struct store_list *list, size_t first, size_t count, int64_t time_s,
    enum store_moment_wanted wanted, size_t *chosen, size_t *chosen_count)
{
	size_t *order = calloc(count + 1, sizeof(*order)), known = 0, found = 0, lives_chosen = 0;
	struct life *lives = calloc(count + 1, sizeof(*lives));

	*chosen_count = 0;
	if (!order || !lives) {
		free(order);
		free(lives);
		return -ENOMEM;
	}
	for (size_t i = first; i < first + count && list->files[i].time_s <= time_s; i++)
		order[known++] = i;
	if (wanted == STORE_MOMENT_EVERYTHING) {
		memcpy(chosen, order, known * sizeof(*order));
		*chosen_count = known;
	} else {
		qsort_r(order, known, sizeof(*order), compare_by_pid, (void *)list);
		found = lives_find(list, order, known, lives);
		lives_chosen = lives_choose(lives, found);
	}
	if (wanted == STORE_MOMENT_SERIES && lives_chosen != 1)
		wanted = STORE_MOMENT_STATES;
	for (size_t i = 0; i < found; i++)
		if (lives[i].chosen)
			*chosen_count += take_life(list, order, &lives[i], wanted, chosen + *chosen_count);
	qsort(chosen, *chosen_count, sizeof(*chosen), compare_numbers);
	free(order);
	free(lives);
	return 0;
}
