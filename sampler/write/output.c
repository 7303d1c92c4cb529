/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names given out are kept as 64-bit hashes, each with the number for the next file of that name, so that
 * a run of a year takes little memory and the number for the n-th file is found at once. If two names have
 * the same hash, the second gets a needless `-2`, nothing worse.
 */
#include "sampler/write/output.h"

#include "pprof/codec/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAKEN_NAMES = 1000 }; /* names that are tried for one profile */

struct output_used {
	struct used_name {
		uint64_t hash; /* 0: free */
		uint64_t next; /* number for the next file of that name */
	} * names;
	size_t count, capacity; /* capacity is a power of two, never more than 3/4 full */
};

static int fail(char *error, size_t error_bytes, const char *what)
{
	if (error_bytes)
		snprintf(error, error_bytes, "%s; allowed: %s", what, OUTPUT_DIRECTIVES);
	return -EINVAL;
}

int output_check(const char *pattern, char *error, size_t error_bytes)
{
	if (!*pattern)
		return fail(error, error_bytes, "the name of the output is empty");
	for (const char *at = strchr(pattern, '%'); at; at = strchr(at + 2, '%')) {
		if (!at[1] || !strchr("epnht%", at[1]))
			return fail(error, error_bytes, "unknown % in the name of the output");
	}
	return 0;
}

struct text {
	char *start;
	size_t length, size;
};

/* Lengths are counted beyond the end, so that one check after the last put is enough. */
static void text_put(struct text *text, const char *bytes, size_t count)
{
	if (text->length < text->size) {
		size_t room = text->size - text->length;

		memcpy(text->start + text->length, bytes, count < room ? count : room);
	}
	text->length += count;
}

static int text_end(struct text *text)
{
	if (text->length >= text->size)
		return -ENAMETOOLONG;
	text->start[text->length] = '\0';
	return 0;
}

static bool is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	    byte == '.' || byte == '_' || byte == '+' || byte == '-';
}

/* A word that is not trusted: see output.h. */
static void text_put_word(struct text *text, const char *word)
{
	const char *slash = word ? strrchr(word, '/') : NULL;
	size_t length = 0;

	if (slash)
		word = slash + 1;
	if (!word || !*word)
		word = "unknown";
	for (; length < OUTPUT_WORD_BYTES && word[length]; length++) {
		char byte = word[length];
		/* A leading dot would hide the file, a leading dash make it look like an option to every
		 * tool. */
		bool fits = is_plain(byte) && (length > 0 || (byte != '.' && byte != '-'));

		text_put(text, fits ? &byte : "_", 1);
	}
}

static int put_directive(
    struct text *text, char directive, const struct output_facts *facts, const char *host)
{
	char number[24];

	switch (directive) {
	case 'e':
		text_put_word(text, facts->program);
		return 0;
	case 'n':
		text_put_word(text, facts->snapshot);
		return 0;
	case 'h':
		text_put_word(text, host);
		return 0;
	case 'p':
		if (facts->pid)
			snprintf(number, sizeof(number), "%ld", (long)facts->pid);
		text_put_word(text, facts->pid ? number : NULL);
		return 0;
	case 't':
		text_put(text, number,
		    (size_t)snprintf(number, sizeof(number), "%lld", (long long)facts->seconds));
		return 0;
	case '%':
		text_put(text, "%", 1);
		return 0;
	default:
		return -EINVAL;
	}
}

static int text_expand(
    struct text *text, const char *pattern, const struct output_facts *facts, const char *host)
{
	while (*pattern) {
		size_t plain = strcspn(pattern, "%");

		text_put(text, pattern, plain);
		pattern += plain;
		if (!*pattern)
			break;
		if (put_directive(text, pattern[1], facts, host))
			return -EINVAL;
		pattern += 2;
	}
	return 0;
}

int output_expand(
    const char *pattern, const struct output_facts *facts, const char *host, char *path, size_t path_bytes)
{
	struct text text = {.start = path, .size = path_bytes};
	size_t length = strlen(pattern);

	if (length == 0 || text_expand(&text, pattern, facts, host))
		return -EINVAL;
	if (pattern[length - 1] == '/' && text_expand(&text, OUTPUT_DEFAULT, facts, host))
		return -EINVAL;
	return text_end(&text);
}

/* Where the extension of the last component begins: ".pb.gz" as a whole, else the last dot that is not its
 * first. */
static size_t extension_find(const char *path)
{
	static const char profile[] = ".pb.gz";
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t length = strlen(path), suffix = sizeof(profile) - 1;

	if (strlen(name) > suffix && strcmp(path + length - suffix, profile) == 0)
		return length - suffix;
	return dot && dot != name ? (size_t)(dot - path) : length;
}

/* The same as output_number() for "-word", cleaned as %n is. */
static int output_word(const char *path, const char *word, char *worded, size_t worded_bytes)
{
	struct text text = {.start = worded, .size = worded_bytes};
	size_t extension = extension_find(path);

	text_put(&text, path, extension);
	text_put(&text, "-", 1);
	text_put_word(&text, word);
	text_put(&text, path + extension, strlen(path + extension));
	return text_end(&text);
}

int output_number(const char *path, unsigned int number, char *numbered, size_t numbered_bytes)
{
	char word[16];

	snprintf(word, sizeof(word), "%u", number);
	return output_word(path, word, numbered, numbered_bytes);
}

static bool has_directive(const char *pattern, char directive)
{
	for (const char *at = strchr(pattern, '%'); at && at[1]; at = strchr(at + 2, '%')) {
		if (at[1] == directive)
			return true;
	}
	/* the default is appended, which has all directives */
	return pattern[0] && pattern[strlen(pattern) - 1] == '/';
}

/* An existing directory is taken by its literal name, so that a '%' in it stays one. It is not empty. */
static char *directory_pattern(const char *directory)
{
	size_t length = strlen(directory);
	char *pattern = malloc(2 * length + 2), *end = pattern;

	if (!pattern)
		return NULL;
	for (; *directory; directory++) {
		if (*directory == '%')
			*end++ = '%';
		*end++ = *directory;
	}
	if (end[-1] != '/')
		*end++ = '/';
	*end = '\0';
	return pattern;
}

/* What comes before the first directive, up to the last '/' in it. */
static char *place_of(const char *pattern)
{
	char *place = malloc(strlen(pattern) + 1), *end = place;

	if (!place)
		return NULL;
	for (; *pattern && (*pattern != '%' || pattern[1] == '%'); pattern++) {
		*end++ = *pattern;
		pattern += *pattern == '%';
	}
	*end = '\0';
	end = strrchr(place, '/');
	*(end ? end + 1 : place) = '\0';
	return place;
}

static void open_base(struct output *output)
{
	if (output->base.fd < 0)
		folder_open(&output->base, NULL, *output->place ? output->place : ".", 0, 0);
}

int output_init(struct output *output, const char *argument)
{
	struct stat status;

	memset(output, 0, sizeof(*output));
	output->base.fd = -1;
	if (gethostname(output->host, sizeof(output->host) - 1) != 0)
		output->host[0] = '\0';
	output->used = calloc(1, sizeof(*output->used));
	if (!argument)
		output->pattern = strdup(OUTPUT_DEFAULT);
	else if (stat(argument, &status) == 0 && S_ISDIR(status.st_mode))
		output->pattern = directory_pattern(argument);
	else
		output->pattern = strdup(argument);
	output->place = output->pattern ? place_of(output->pattern) : NULL;
	if (!output->place || !output->used) {
		output_fini(output);
		return -ENOMEM;
	}
	open_base(output);
	return 0;
}

int output_place(const struct output *output, const char *working_folder, char *path, size_t path_bytes,
    unsigned int *depth)
{
	const bool is_absolute = output->place[0] == '/';
	const int length = snprintf(path, path_bytes, "%s%s%s", is_absolute ? "" : working_folder,
	    is_absolute ? "" : "/", output->place);

	*depth = 0;
	for (const char *rest = output->pattern + strlen(output->place); (rest = strchr(rest, '/')); rest++)
		++*depth;
	return length < (int)path_bytes ? 0 : -ENAMETOOLONG;
}

void output_fini(struct output *output)
{
	if (output->used)
		free(output->used->names);
	free(output->used);
	free(output->pattern);
	if (output->place)
		folder_close(&output->base);
	free(output->place);
	*output = (struct output){.base.fd = -1};
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo). Collisions made on purpose would gain nothing. */
static uint64_t name_hash(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}

static struct used_name *used_slot(const struct output_used *used, uint64_t hash)
{
	size_t at = hash & (used->capacity - 1);

	while (used->names[at].hash && used->names[at].hash != hash)
		at = (at + 1) & (used->capacity - 1);
	return &used->names[at];
}

static int used_grow(struct output_used *used)
{
	struct output_used larger = {
	    .count = used->count, .capacity = used->capacity ? 2 * used->capacity : 64};

	larger.names = calloc(larger.capacity, sizeof(*larger.names));
	if (!larger.names)
		return -ENOMEM;
	for (size_t i = 0; i < used->capacity; i++) {
		if (used->names[i].hash)
			*used_slot(&larger, used->names[i].hash) = used->names[i];
	}
	free(used->names);
	*used = larger;
	return 0;
}

/* The number for the next file called `name`: 1 for the first. NULL if out of memory. */
static uint64_t *used_next(struct output_used *used, const char *name)
{
	uint64_t hash = name_hash(name);
	struct used_name *slot = used->capacity ? used_slot(used, hash) : NULL;

	if (slot && slot->hash)
		return &slot->next;
	if (4 * (used->count + 1) > 3 * used->capacity && used_grow(used))
		return NULL;
	slot = used_slot(used, hash);
	*slot = (struct used_name){.hash = hash, .next = 1};
	used->count++;
	return &slot->next;
}

static bool is_taken_in(int folder_fd, const char *name)
{
	struct stat status, around;

	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISCHR(status.st_mode))
		return false;
	if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
		return true;
	if (geteuid() == 0 || status.st_uid == geteuid())
		return false;
	return fstat(folder_fd, &around) == 0 && (around.st_mode & S_ISVTX) && around.st_uid != geteuid();
}

/* Is something at the path that a profile cannot replace: a FIFO, or another user's file in a folder such as
 * /tmp? */
static bool is_taken(const struct output *output, const char *path)
{
	struct folder folder;
	const char *name;
	bool taken;

	if (output_open_folder(output, path, 0, &folder, &name))
		return false;
	taken = is_taken_in(folder.fd, name);
	folder_close(&folder);
	return taken;
}

/* The name itself, or the next number of it that this run has not given out. */
static int next_name(struct output_used *used, const char *plain, char *path, size_t path_bytes)
{
	for (;;) {
		uint64_t *next = used_next(used, plain);
		uint64_t number = next ? (*next)++ : 0;
		int ret;

		if (!next)
			return -ENOMEM;
		if (number == 1)
			return snprintf(path, path_bytes, "%s", plain) < (int)path_bytes ? 0 : -ENAMETOOLONG;
		ret = output_number(plain, (unsigned int)number, path, path_bytes);
		if (ret)
			return ret;
		/* "x-2" may have been given out under its own name. */
		next = used_next(used, path);
		if (!next)
			return -ENOMEM;
		if (*next == 1) {
			*next = 2;
			return 0;
		}
	}
}

/* /dev/null, for example. */
static bool is_device(const char *pattern)
{
	struct stat status;

	return !strchr(pattern, '%') && stat(pattern, &status) == 0 && S_ISCHR(status.st_mode);
}

int output_reserve(struct output *output, const struct output_facts *facts, char *path, size_t path_bytes)
{
	char plain[PATH_MAX], tagless[PATH_MAX];
	int ret;

	if (is_device(output->pattern))
		return snprintf(path, path_bytes, "%s", output->pattern) < (int)path_bytes ? 0
		                                                                           : -ENAMETOOLONG;
	ret = output_expand(output->pattern, facts, output->host, plain, sizeof(plain));
	/* `-o heap.pb.gz` means the exit profile; the others stand beside it. */
	if (!ret && strcmp(facts->snapshot, "exit") != 0 && strcmp(facts->snapshot, "detach") != 0 &&
	    !has_directive(output->pattern, 'n')) {
		memcpy(tagless, plain, strlen(plain) + 1);
		ret = output_word(tagless, facts->snapshot, plain, sizeof(plain));
	}

	open_base(output);
	for (int tries = 0; !ret; tries++) {
		ret = next_name(output->used, plain, path, path_bytes);
		if (ret || !is_taken(output, path))
			return ret;
		if (tries == TAKEN_NAMES) /* somebody took all these names, probably on purpose */
			ret = -EEXIST;
	}
	return ret;
}

/* Several directives side by side, or with a dot between them, become one star. */
static void text_put_stars(struct text *text, const char *pattern)
{
	bool star = false;

	for (; *pattern; pattern++) {
		bool directive = *pattern == '%' && pattern[1] != '%';

		if (star && *pattern == '.' && pattern[1] == '%' && pattern[2] != '%')
			continue;
		if (!directive || !star)
			text_put(text, directive ? "*" : pattern, 1);
		star = directive;
		pattern += *pattern == '%';
	}
}

int output_describe(const char *argument, char *files, size_t files_bytes)
{
	struct text text = {.start = files, .size = files_bytes};
	struct output output;
	int ret = output_init(&output, argument);

	if (ret)
		return ret;
	text_put_stars(&text, output.pattern);
	if (output.pattern[strlen(output.pattern) - 1] == '/')
		text_put_stars(&text, OUTPUT_DEFAULT);
	output_fini(&output);
	return text_end(&text);
}
