/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/crash_guard.h"

#include "pprof/codec/file.h"
#include "pprof/table/array.h"
#include "sampler/inject/preload_library.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DEATHS_KEPT = 256,
	REASON_BYTES = 128,
	/* The longest line that we write: a byte of the path may take three, and time, library and user
	 * take less than 128. */
	LINE_BYTES = 3 * PATH_MAX + REASON_BYTES + 128,
	FILE_BYTES_MAX = 16 << 20,
};
_Static_assert((CRASH_GUARD_DENIED_MAX + 1) * LINE_BYTES < FILE_BYTES_MAX, "the file is read again");

static const uint64_t second_ns = UINT64_C(1000000000);

struct death {
	char *exe;
	char library[CRASH_GUARD_LIBRARY_BYTES];
	uid_t uid;
	uint64_t at_ns;
};

struct crash_guard {
	struct death deaths[DEATHS_KEPT]; /* oldest first */
	size_t death_count;
	struct crash_guard_denied *denied; /* oldest first */
	size_t count, room;
	bool changed; /* since the file was written */
	uint64_t saved_ns;
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
	for (size_t i = 0; i < guard->death_count; i++)
		free(guard->deaths[i].exe);
	clear_denied(guard);
	free(guard->denied);
	free(guard);
}

/* The row to forget: the oldest of the user who has the most rows. There are `count` rows of row_bytes,
 * the oldest first, each with a uid_t at uid_offset. */
static size_t one_to_forget(const void *rows, size_t count, size_t row_bytes, size_t uid_offset)
{
	const char *uids = (const char *)rows + uid_offset;
	size_t found = 0, most = 0;

	for (size_t i = 0; i < count && most < count - i; i++) {
		size_t same = 0;

		for (size_t j = i; j < count; j++)
			same += memcmp(uids + i * row_bytes, uids + j * row_bytes, sizeof(uid_t)) == 0;
		if (same > most) {
			most = same;
			found = i;
		}
	}
	return found;
}

static void forget_denied(struct crash_guard *guard)
{
	const size_t at = one_to_forget(
	    guard->denied, guard->count, sizeof(guard->denied[0]), offsetof(struct crash_guard_denied, uid));

	free(guard->denied[at].exe);
	free(guard->denied[at].reason);
	guard->count--;
	memmove(&guard->denied[at], &guard->denied[at + 1], (guard->count - at) * sizeof(guard->denied[0]));
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
	if (guard->count == CRASH_GUARD_DENIED_MAX)
		forget_denied(guard);
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

	for (size_t i = 0; i < guard->death_count; i++) {
		const struct death *other = &guard->deaths[i];

		count += strcmp(other->exe, death->exe) == 0 && strcmp(other->library, death->library) == 0 &&
		    other->uid == death->uid &&
		    death->now_ns - other->at_ns <= CRASH_GUARD_WITHIN_S * second_ns;
	}
	return count;
}

/* False if there is no memory. */
static bool keep_death(struct crash_guard *guard, const struct crash_guard_death *death)
{
	char *exe = strdup(death->exe);

	if (!exe)
		return false;
	if (guard->death_count == DEATHS_KEPT) {
		const size_t at = one_to_forget(
		    guard->deaths, guard->death_count, sizeof(guard->deaths[0]), offsetof(struct death, uid));

		free(guard->deaths[at].exe);
		guard->death_count--;
		memmove(&guard->deaths[at], &guard->deaths[at + 1],
		    (guard->death_count - at) * sizeof(guard->deaths[0]));
	}
	struct death *entry = &guard->deaths[guard->death_count++];
	*entry = (struct death){.exe = exe, .uid = death->uid, .at_ns = death->now_ns};
	snprintf(entry->library, sizeof(entry->library), "%s", death->library);
	return true;
}

const struct crash_guard_denied *crash_guard_note(
    struct crash_guard *guard, const struct crash_guard_death *death)
{
	char reason[REASON_BYTES];
	const char *name = sigabbrev_np(death->signal);

	if (!counts(death->signal) || death->age_ns > CRASH_GUARD_AGE_S * second_ns ||
	    crash_guard_find(guard, death->exe, death->library, death->uid))
		return NULL;
	if (!keep_death(guard, death) || recent_deaths(guard, death) < CRASH_GUARD_DEATHS)
		return NULL;
	snprintf(reason, sizeof(reason),
	    "%d deaths, the last by SIG%s, within %d s of the start of profiling, in %d minutes, as user %u",
	    CRASH_GUARD_DEATHS, name ? name : "?", CRASH_GUARD_AGE_S, CRASH_GUARD_WITHIN_S / 60,
	    (unsigned int)death->uid);
	struct crash_guard_denied denied = {
	    .uid = death->uid, .since_unix_ns = death->now_unix_ns, .unsaved = true};
	snprintf(denied.library, sizeof(denied.library), "%s", death->library);
	if (deny(guard, death->exe, reason, denied) != 0)
		return NULL;
	guard->changed = true;
	return &guard->denied[guard->count - 1];
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

/* Moves what the file has not got into *kept, for free(). 0 or -ENOMEM. */
static int take_unsaved(struct crash_guard *guard, struct crash_guard_denied **kept, size_t *count)
{
	size_t left = 0;

	*count = 0;
	*kept = calloc(guard->count + 1, sizeof(**kept));
	if (!*kept)
		return -ENOMEM;
	for (size_t i = 0; i < guard->count; i++)
		if (guard->denied[i].unsaved)
			(*kept)[(*count)++] = guard->denied[i];
		else
			guard->denied[left++] = guard->denied[i];
	guard->count = left;
	return 0;
}

static int parse_and_keep(struct crash_guard *guard, const char *text)
{
	struct crash_guard_denied *kept;
	size_t count;
	int error = take_unsaved(guard, &kept, &count);

	if (error)
		return error;
	error = crash_guard_parse(guard, text);
	for (size_t i = 0; i < count; i++) {
		int refused = deny(guard, kept[i].exe, kept[i].reason, kept[i]);

		error = error ? error : refused;
		free(kept[i].exe);
		free(kept[i].reason);
	}
	free(kept);
	return error;
}

int crash_guard_load(struct crash_guard *guard, const char *path)
{
	uint8_t *bytes;
	size_t length;
	int error = file_read(path, FILE_BYTES_MAX, &bytes, &length);

	if (error)
		return error == -ENOENT ? parse_and_keep(guard, "") : error;
	char *text = strndup((const char *)bytes, length);
	free(bytes);
	error = text ? parse_and_keep(guard, text) : -ENOMEM;
	free(text);
	return error;
}

int crash_guard_save(struct crash_guard *guard, const char *path, uint64_t now_ns, bool last)
{
	size_t bytes;

	if (!guard->changed ||
	    (!last && guard->saved_ns && now_ns - guard->saved_ns < CRASH_GUARD_SAVE_S * second_ns))
		return 0;
	guard->saved_ns = now_ns;
	char *text = crash_guard_text(guard, &bytes);
	int error = text ? file_publish(path, text, bytes, 0640, FILE_MKDIR | FILE_FSYNC) : -ENOMEM;
	free(text);
	if (error)
		return error; /* it is tried again */
	guard->changed = false;
	for (size_t i = 0; i < guard->count; i++)
		guard->denied[i].unsaved = false;
	return 0;
}

/* ---- which library */

static bool is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, PRELOAD_LIBRARY_NAME, strlen(PRELOAD_LIBRARY_NAME)) == 0;
}

/* Finds the mapping at the beginning of the library's file: its name in /proc/PID/map_files. */
static bool find_mapping(pid_t pid, char name[64])
{
	char line[4352], path[4096];
	uint64_t start, end, offset;
	bool found = false;
	FILE *maps = proc_open_text(pid, "maps");

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		path[0] = '\0';
		if (!strstr(line, PRELOAD_LIBRARY_NAME))
			continue;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
		        &offset, path) != 4 ||
		    offset != 0 || !is_library(path))
			continue;
		snprintf(name, 64, "map_files/%" PRIx64 "-%" PRIx64, start, end);
		found = true;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void read_id(int fd, char id[CRASH_GUARD_LIBRARY_BYTES])
{
	const void *bytes;

	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &bytes) : -1;
	for (ssize_t i = 0; i < length && 2 * i + 2 < CRASH_GUARD_LIBRARY_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
	elf_end(elf);
}

/* The id that was found last is remembered, by file. */
void crash_guard_library(pid_t pid, char id[CRASH_GUARD_LIBRARY_BYTES])
{
	static struct stat last;
	static char last_id[CRASH_GUARD_LIBRARY_BYTES];
	char name[64], path[PROC_PATH_BYTES];
	struct stat status;

	id[0] = '\0';
	if (!find_mapping(pid, name))
		return;
	int fd = regular_file_open(AT_FDCWD, proc_path(path, pid, name), 0, &status);
	if (fd < 0)
		return;
	if (last_id[0] && status.st_dev == last.st_dev && status.st_ino == last.st_ino &&
	    status.st_mtim.tv_sec == last.st_mtim.tv_sec && status.st_mtim.tv_nsec == last.st_mtim.tv_nsec) {
		memcpy(id, last_id, CRASH_GUARD_LIBRARY_BYTES);
	} else {
		read_id(fd, id);
		last = status;
		memcpy(last_id, id, CRASH_GUARD_LIBRARY_BYTES);
	}
	close(fd);
}
