/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/store_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PID_MOST = 1 << 22, YEAR_MOST = 9999 };

static const char ending[] = ".pb.gz";

/* ---- kinds */

static const struct {
	const char *word;
	enum store_class class;
} words[] = {
    {"heap", STORE_HEAP},
    {"delta", STORE_DELTA},
    {"event", STORE_EVENT},
    {"peak", STORE_PEAK},
    {"exit", STORE_EXIT},
    {"oom", STORE_OOM},
};

static bool is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_plain(char byte)
{
	return is_letter(byte) || is_digit(byte) || (byte && strchr("._@+-", byte));
}

/* Sets the class by the first word. "heap-2" is the second file of one second; "heap-rss" has a cause. */
static void classify(struct store_name *name)
{
	size_t length = strcspn(name->kind, "-");
	const char *rest = name->kind + length;

	name->class = STORE_OTHER;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) == length && strncmp(words[i].word, name->kind, length) == 0)
			name->class = words[i].class;
	}
	if (name->class == STORE_HEAP && *rest && rest[1 + strspn(rest + 1, "0123456789")])
		name->class = STORE_HEAP_CAUSE;
}

/* Appends, cleaned and cut. */
static void put_kind(struct store_name *name, const char *text, size_t length)
{
	size_t at = strlen(name->kind);

	for (size_t i = 0; i < length && at < sizeof(name->kind) - 1; i++)
		name->kind[at++] = is_plain(text[i]) ? text[i] : '_';
	name->kind[at] = '\0';
}

/* The scheduler's number: four digits or more, and the end or a dash. Returns its length, or 0. */
static size_t number_length(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits >= 4 && (!text[digits] || text[digits] == '-') ? digits : 0;
}

void store_name_of_snapshot(const char *snapshot, bool oom, struct store_name *name)
{
	size_t digits = number_length(snapshot), length = strlen(snapshot);
	const char *at = snapshot;

	name->kind[0] = '\0';
	if (strcmp(snapshot, "exit") == 0)
		snprintf(name->kind, sizeof(name->kind), "%s", oom ? "oom" : "exit");
	else if (strcmp(snapshot, "peak") == 0)
		snprintf(name->kind, sizeof(name->kind), "peak");
	if (digits && strcmp(snapshot + digits, "-delta") == 0) {
		put_kind(name, "delta", strlen("delta"));
	} else if (digits) {
		put_kind(name, "heap", strlen("heap"));
		put_kind(name, snapshot + digits, length - digits);
	} else if (!*name->kind) {
		put_kind(name, "event-", strlen("event-"));
		while ((at = strchr(at, '-')) && !number_length(at + 1))
			at++;
		put_kind(name, snapshot, at ? (size_t)(at - snapshot) : length);
		if (at)
			put_kind(
			    name, at + 1 + number_length(at + 1), strlen(at + 1 + number_length(at + 1)));
	}
	classify(name);
}

/* ---- times */

/* So many digits; -1: they are not. */
static int number_of(const char *text, size_t digits)
{
	int number = 0;

	for (size_t i = 0; i < digits; i++) {
		if (!is_digit(text[i]))
			return -1;
		number = number * 10 + text[i] - '0';
	}
	return number;
}

bool store_name_day(const char *day, int64_t *time_s)
{
	struct tm tm = {0}, back;
	time_t seconds;

	if (strlen(day) != STORE_NAME_DAY_BYTES - 1 || day[4] != '-' || day[7] != '-')
		return false;
	tm.tm_year = number_of(day, 4) - 1900;
	tm.tm_mon = number_of(day + 5, 2) - 1;
	tm.tm_mday = number_of(day + 8, 2);
	if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1)
		return false;
	seconds = timegm(&tm);
	/* February 30 would have become March 2. */
	if (!gmtime_r(&seconds, &back) || back.tm_mday != number_of(day + 8, 2))
		return false;
	*time_s = seconds;
	return true;
}

static bool clock_parse(const char *file, int64_t *time_s)
{
	int hour = number_of(file, 2), minute = hour < 0 ? -1 : number_of(file + 2, 2),
	    second = minute < 0 ? -1 : number_of(file + 4, 2);

	if (second < 0 || hour > 23 || minute > 59 || second > 59 || file[6] != '.')
		return false;
	*time_s = hour * 3600 + minute * 60 + second;
	return true;
}

/* ---- names */

static bool kind_parse(const char *text, struct store_name *name)
{
	size_t length = strlen(text);

	if (length <= strlen(ending) || strcmp(text + length - strlen(ending), ending) != 0)
		return false;
	length -= strlen(ending);
	if (length >= sizeof(name->kind) || !is_letter(*text))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!is_plain(text[i]))
			return false;
	memcpy(name->kind, text, length);
	name->kind[length] = '\0';
	classify(name);
	return true;
}

bool store_name_parse(const char *day, const char *file, struct store_name *name)
{
	int64_t day_s, clock_s;
	size_t digits;

	if (!store_name_day(day, &day_s) || !clock_parse(file, &clock_s))
		return false;
	file += sizeof("HHMMSS.") - 1;
	digits = strspn(file, "0123456789");
	if (*file == '0' || digits < 1 || digits > 7 || file[digits] != '.' || atoi(file) > PID_MOST)
		return false;
	name->pid = (pid_t)atoi(file);
	name->time_s = day_s + clock_s;
	return kind_parse(file + digits + 1, name);
}

int store_name_format(
    const struct store_name *name, char day[STORE_NAME_DAY_BYTES], char file[STORE_NAME_FILE_BYTES])
{
	time_t seconds = (time_t)name->time_s;
	struct store_name same;
	struct tm tm;

	if (name->time_s < 0 || name->pid < 1 || name->pid > PID_MOST || !gmtime_r(&seconds, &tm) ||
	    tm.tm_year + 1900 > YEAR_MOST)
		return -EINVAL;
	strftime(day, STORE_NAME_DAY_BYTES, "%Y-%m-%d", &tm);
	snprintf(file, STORE_NAME_FILE_BYTES, "%02d%02d%02d.%d.%s%s", tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)name->pid, name->kind, ending);
	return store_name_parse(day, file, &same) ? 0 : -EINVAL;
}

/* ---- services */

void service_name_clean(const char *text, char name[SERVICE_NAME_BYTES])
{
	size_t length = 0;

	if (!*text)
		text = "unknown";
	for (; length < SERVICE_NAME_BYTES - 1 && text[length]; length++)
		name[length] =
		    is_plain(text[length]) && text[length] != '+' && (length || !strchr(".-", *text))
		    ? text[length]
		    : '_';
	name[length] = '\0';
}

bool service_name_is_good(const char *name)
{
	char clean[SERVICE_NAME_BYTES];

	if (!*name)
		return false;
	service_name_clean(name, clean);
	return strcmp(name, clean) == 0;
}
