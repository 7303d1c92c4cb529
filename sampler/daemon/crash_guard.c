/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/crash_guard.h"

#include "pprof/codec/file.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEATHS_KEPT = 256, FILE_BYTES_MAX = 8 << 20 };

static const uint64_t second_ns = UINT64_C(1000000000);

struct death {
	char *exe; /* NULL: free */
	char library[CRASH_GUARD_LIBRARY_BYTES];
	uid_t uid;
	uint64_t at_ns;
};

struct crash_guard {
	struct death deaths[DEATHS_KEPT]; /* a ring: the oldest is overwritten */
	size_t next;
	struct crash_guard_denied *denied; /* oldest first */
	size_t count, room;
};

struct crash_guard *crash_guard_new(void)
{
	return calloc(1, sizeof(struct crash_guard));
}

static void clear_denied(struct crash_guard *guard)
{
	for (size_t i = 0; i < guard->count; i++) {
		free(guard->denied[i].exe);
		free(guard->denied[i].reason);
	}
	guard->count = 0;
}

void crash_guard_free(struct crash_guard *guard)
{
	if (!guard)
		return;
	for (size_t i = 0; i < DEATHS_KEPT; i++)
		free(guard->deaths[i].exe);
	clear_denied(guard);
	free(guard->denied);
	free(guard);
}

/* The texts are copied. */
static int deny(
    struct crash_guard *guard, const char *exe, const char *reason, struct crash_guard_denied denied)
{
	if (array_reserve(&guard->denied, &guard->room, guard->count + 1, sizeof(*guard->denied)) != 0)
		return -ENOMEM;
	denied.exe = strdup(exe);
	denied.reason = strdup(reason);
	if (!denied.exe || !denied.reason) {
		free(denied.exe);
		free(denied.reason);
		return -ENOMEM;
	}
	if (guard->count == CRASH_GUARD_DENIED_MAX) {
		free(guard->denied[0].exe);
		free(guard->denied[0].reason);
		memmove(&guard->denied[0], &guard->denied[1], --guard->count * sizeof(guard->denied[0]));
	}
	guard->denied[guard->count++] = denied;
	return 0;
}

static bool counts(int number)
{
	return number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGSYS;
}

static size_t recent_deaths(const struct crash_guard *guard, const struct crash_guard_death *death)
{
	size_t count = 0;
	for (size_t i = 0; i < DEATHS_KEPT; i++) {
		const struct death *other = &guard->deaths[i];
		count += other->exe && strcmp(other->exe, death->exe) == 0 &&
		    strcmp(other->library, death->library) == 0 && other->uid == death->uid &&
		    death->now_ns - other->at_ns <= CRASH_GUARD_WITHIN_S * second_ns;
	}
	return count;
}

const struct crash_guard_denied *crash_guard_note(
    struct crash_guard *guard, const struct crash_guard_death *death)
{
	char reason[128];
	const char *name = sigabbrev_np(death->signal);
	if (!counts(death->signal) || death->age_ns > CRASH_GUARD_AGE_S * second_ns ||
	    crash_guard_find(guard, death->exe, death->library, death->uid))
		return NULL;
	struct death *entry = &guard->deaths[guard->next++ % DEATHS_KEPT];
	free(entry->exe);
	*entry = (struct death){.exe = strdup(death->exe), .uid = death->uid, .at_ns = death->now_ns};
	snprintf(entry->library, sizeof(entry->library), "%s", death->library);
	if (recent_deaths(guard, death) < CRASH_GUARD_DEATHS)
		return NULL;
	snprintf(reason, sizeof(reason),
	    "%d deaths, the last by SIG%s, within %d s of the hand-over, in %d minutes, as user %u",
	    CRASH_GUARD_DEATHS, name ? name : "?", CRASH_GUARD_AGE_S, CRASH_GUARD_WITHIN_S / 60,
	    (unsigned int)death->uid);
	struct crash_guard_denied denied = {.uid = death->uid, .since_unix_ns = death->now_unix_ns};
	snprintf(denied.library, sizeof(denied.library), "%s", death->library);
	return deny(guard, death->exe, reason, denied) == 0 ? &guard->denied[guard->count - 1] : NULL;
}

const struct crash_guard_denied *crash_guard_find(
    const struct crash_guard *guard, const char *exe, const char *library, uid_t uid)
{
	for (size_t i = 0; i < guard->count; i++)
		if (strcmp(guard->denied[i].exe, exe) == 0 &&
		    strcmp(guard->denied[i].library, library) == 0 && guard->denied[i].uid == uid)
			return &guard->denied[i];
	return NULL;
}

size_t crash_guard_count(const struct crash_guard *guard)
{
	return guard->count;
}

const struct crash_guard_denied *crash_guard_at(const struct crash_guard *guard, size_t index)
{
	return &guard->denied[index];
}

/* ---- the file: "UNIX_NS BUILD_ID UID REASON<tab>EXE", bytes of EXE that could end a line as %XX */

static const char header[] = "# Executables that heaptap daemon leaves alone because they died soon after it "
                             "had begun to profile them.\n"
                             "# Delete a line and reload the daemon (SIGHUP) to try that one again.\n";

char *crash_guard_text(const struct crash_guard *guard, size_t *bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);
	if (!out)
		return NULL;
	fputs(header, out);
	for (size_t i = 0; i < guard->count; i++) {
		const struct crash_guard_denied *denied = &guard->denied[i];
		fprintf(out, "%" PRId64 " %s %u %s\t", denied->since_unix_ns,
		    denied->library[0] ? denied->library : "-", (unsigned int)denied->uid, denied->reason);
		for (const char *c = denied->exe; *c; c++)
			if ((unsigned char)*c < ' ' || *c == '%' || *c == 0x7f)
				fprintf(out, "%%%02X", (unsigned char)*c);
			else
				fputc(*c, out);
		fputc('\n', out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void unescape(char *text)
{
	char *to = text;
	for (; *text; text++)
		if (text[0] == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			*to++ = (char)(hex(text[1]) << 4 | hex(text[2]));
			text += 2;
		} else {
			*to++ = *text;
		}
	*to = '\0';
}

static int parse_line(struct crash_guard *guard, char *line)
{
	char *end, *tab = strchr(line, '\t'), *user, *reason;
	struct crash_guard_denied denied = {.since_unix_ns = strtoll(line, &end, 10)};
	if (line[0] == '#' || !tab || !tab[1] || end == line || *end != ' ')
		return 0;
	char *library = end + 1;
	*tab = '\0';
	user = strchr(library, ' ');
	if (!user)
		return 0;
	*user++ = '\0';
	denied.uid = (uid_t)strtoul(user, &reason, 10);
	if (strlen(library) >= CRASH_GUARD_LIBRARY_BYTES || reason == user || *reason != ' ')
		return 0;
	snprintf(denied.library, sizeof(denied.library), "%s", strcmp(library, "-") == 0 ? "" : library);
	unescape(tab + 1);
	return deny(guard, tab + 1, reason + 1, denied);
}

int crash_guard_parse(struct crash_guard *guard, const char *text)
{
	char *copy = strdup(text), *rest = copy, *line;
	int error = copy ? 0 : -ENOMEM;
	clear_denied(guard);
	while (!error && (line = strsep(&rest, "\n")))
		error = parse_line(guard, line);
	free(copy);
	return error;
}

int crash_guard_load(struct crash_guard *guard, const char *path)
{
	uint8_t *bytes;
	size_t length;
	int error = file_read(path, FILE_BYTES_MAX, &bytes, &length);
	if (error)
		return error == -ENOENT ? crash_guard_parse(guard, "") : error;
	char *text = strndup((const char *)bytes, length);
	free(bytes);
	error = text ? crash_guard_parse(guard, text) : -ENOMEM;
	free(text);
	return error;
}

int crash_guard_save(const struct crash_guard *guard, const char *path)
{
	size_t bytes;
	char *text = crash_guard_text(guard, &bytes);
	int error = text ? file_publish(path, text, bytes, 0640, FILE_MKDIR | FILE_FSYNC) : -ENOMEM;
	free(text);
	return error;
}
