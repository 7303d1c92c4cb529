/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptap symbolize: looks up the names that a profile lacks (record --symbols raw), on this machine and now.
 *
 * A file's code is looked up only if the file still has the profile's build id, or if the profile has none.
 * Files are hostile: a child with limits looks up each profile. If that child is killed, another child looks
 * up less.
 */
#include "pprof/codec/decode.h"
#include "pprof/codec/file.h"
#include "pprof/model/profile.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/report/operands.h"
#include "sampler/cmd/report/profile_files.h"
#include "sampler/symbol/symbol.h"
#include "sampler/unwind/module_file.h"
#include "sampler/write/symbolizer.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_SECONDS = 300, MEMORY_FACTOR = 4 }; /* limits of a child; MEMORY_FACTOR times --max-memory */

struct naming {
	struct profile *profile;
	struct symbols *symbols;
	uint32_t *locations; /* without lines, by mapping: starts[id] .. starts[id + 1] */
	size_t *starts;
	uint64_t *addresses; /* in the file's own terms */
	struct symbol_result *results;
	uint32_t wanted, named; /* locations of all mappings */
};

/* ---- one file of a process */

/* Hex to bytes. Returns the length, 0 if the text is not hex. */
static uint8_t build_id_parse(const char *text, uint8_t id[MODULE_BUILD_ID_BYTES])
{
	size_t length = strlen(text) / 2;

	if (!length || length > MODULE_BUILD_ID_BYTES || strspn(text, "0123456789abcdef") != 2 * length)
		return 0;
	for (size_t i = 0; i < length; i++) {
		const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

		id[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return (uint8_t)length;
}

/* Gives a location the frames that were found, innermost first. */
static int name_location(struct naming *n, uint32_t id, const struct symbol_result *result)
{
	struct profile_line *lines = calloc((size_t)result->frame_count + 1, sizeof(*lines));
	int err = lines ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < result->frame_count && !err; i++) {
		const struct symbol_frame *frame = &result->frames[i];
		const struct profile_function function = {.name = frame->name,
		    .system_name = frame->system_name,
		    .filename = frame->file ? frame->file : "",
		    .start_line = frame->start_line};

		lines[i].function = profile_add_function(n->profile, &function);
		lines[i].line = frame->line;
		err = lines[i].function ? 0 : profile_error(n->profile);
	}
	if (!err)
		err = profile_name_location(n->profile, id, lines, result->frame_count);
	n->named += !err && result->known;
	free(lines);
	return err;
}

static int name_file(struct naming *n, const struct profile_mapping *mapping, struct module_file *file,
    uint32_t *locations, size_t count)
{
	const struct symbol_file source = {.fd = file->fd,
	    .path = mapping->filename,
	    .build_id = file->build_id_len ? file->build_id : NULL,
	    .build_id_bytes = file->build_id_len};
	struct symbol_facts facts;
	size_t known = 0;
	int err;

	/* An address outside all segments is not of this file, whatever the profile says. */
	for (size_t i = 0; i < count; i++) {
		uint64_t offset = profile_location(n->profile, locations[i]).address - mapping->start +
		    mapping->file_offset;

		if (module_file_vaddr(file, offset, true, &n->addresses[known]))
			locations[known++] = locations[i];
	}
	err = symbols_resolve(n->symbols, &source, n->addresses, known, n->results, &facts);
	for (size_t i = 0; i < known && !err; i++)
		err = name_location(n, locations[i], &n->results[i]);
	return err;
}

static int name_mapping(struct naming *n, uint32_t id)
{
	const struct profile_mapping mapping = profile_mapping(n->profile, id);
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	const struct module_request request = {.path = mapping.filename,
	    .build_id = build_id,
	    .build_id_len = build_id_parse(mapping.build_id, build_id)};
	struct module_file file;
	size_t count = n->starts[id + 1] - n->starts[id];
	int err;

	if (!count || *mapping.filename != '/')
		return 0;
	n->wanted += (uint32_t)count;
	err = module_file_open(&request, &file);
	if (err) {
		log_line("%s: %s; its code stays without names", mapping.filename,
		    err == -ESTALE ? "another build is there than the one that was recorded"
		                   : strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	err = name_file(n, &mapping, &file, n->locations + n->starts[id], count);
	module_file_close(&file);
	return err;
}

/* ---- one profile */

/* Sorts the locations by mapping: a hostile profile has a million of each. */
static void sort_locations(struct naming *n)
{
	uint32_t mappings = profile_mapping_count(n->profile);

	for (uint32_t i = 1; i <= profile_location_count(n->profile); i++)
		if (!profile_location(n->profile, i).line_count)
			n->starts[profile_location(n->profile, i).mapping + 2]++;
	for (uint32_t id = 1; id <= mappings + 1; id++)
		n->starts[id + 1] += n->starts[id];
	for (uint32_t i = 1; i <= profile_location_count(n->profile); i++)
		if (!profile_location(n->profile, i).line_count)
			n->locations[n->starts[profile_location(n->profile, i).mapping + 1]++] = i;
}

static int name_all(struct naming *n)
{
	size_t room = (size_t)profile_location_count(n->profile) + 1;
	int err;

	n->starts = calloc((size_t)profile_mapping_count(n->profile) + 3, sizeof(*n->starts));
	n->locations = calloc(room, sizeof(*n->locations));
	n->addresses = calloc(room, sizeof(*n->addresses));
	n->results = calloc(room, sizeof(*n->results));
	err = n->symbols && n->starts && n->locations && n->addresses && n->results ? 0 : -ENOMEM;
	if (!err)
		sort_locations(n);
	for (uint32_t id = 1; id <= profile_mapping_count(n->profile) && !err; id++)
		err = name_mapping(n, id);
	free(n->starts);
	free(n->locations);
	free(n->addresses);
	free(n->results);
	return err;
}

/* Runs in the child. Returns the exit status. */
static int symbolize(
    const char *path, const char *output, const struct options *options, enum symbol_detail detail)
{
	struct naming n = {.symbols = symbolizer_symbols(detail, options->read.debuginfod)};
	char error[1024], limit[AMOUNT_BYTES];
	int err = decode_file(path, (size_t)options->read.memory_max_bytes, &n.profile, error, sizeof(error));

	if (err) {
		if (err == -EFBIG)
			log_line("%s: more than %s; allow more with --max-memory", error,
			    amount_bytes((double)options->read.memory_max_bytes, limit));
		else
			log_line("%s", error);
		return 1;
	}
	err = name_all(&n);
	if (err) {
		log_line("%s: %s", path, strerror(-err));
	} else if (!n.wanted) {
		log_line("%s: nothing to look up, all code of files has names", path);
	} else {
		profile_compute_mapping_flags(n.profile);
		/* The folder's owner may have put a link to a device in place of the output. */
		err = profile_files_write(n.profile, output, options->output ? FILE_FOLLOW : 0);
	}
	if (!err && n.wanted)
		log_line(
		    "%s: %" PRIu32 " of %" PRIu32 " addresses have names now", output, n.named, n.wanted);
	profile_free(n.profile);
	symbols_free(n.symbols);
	return err ? 1 : 0;
}

static void child_limit(const struct options *options)
{
	const rlim_t bytes = options->read.memory_max_bytes < RLIM_INFINITY / MEMORY_FACTOR
	    ? options->read.memory_max_bytes * MEMORY_FACTOR
	    : RLIM_INFINITY;
	const struct rlimit memory = {bytes, bytes}, cpu = {CPU_SECONDS, CPU_SECONDS}, core = {0, 0};

	setrlimit(RLIMIT_DATA, &memory);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &core);
}

/* The child's exit status (0 or 1); -EFAULT if it was killed; -errno if there is no child. */
static int symbolize_in_child(
    const char *path, const char *output, const struct options *options, enum symbol_detail detail)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		child_limit(options);
		umask(077); /* as the profiles that record writes */
		_exit(symbolize(path, output, options, detail));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EFAULT;
}

/* Has this command written the file? */
static bool has_names(const char *path)
{
	size_t length = strlen(path), end = strlen(OPERANDS_SYMBOLIZED);

	return length > end && strcmp(path + length - end, OPERANDS_SYMBOLIZED) == 0;
}

/* A profile with names gets more names, and is replaced. */
static int symbolize_one(const char *path, const struct options *options)
{
	char beside[PATH_MAX];
	const char *output = options->output ? options->output : beside;
	int status;

	if ((size_t)snprintf(beside, sizeof(beside), "%s%s", path,
	        has_names(path) ? "" : OPERANDS_SYMBOLIZED) >= sizeof(beside)) {
		log_line("%s: %s", path, strerror(ENAMETOOLONG));
		return 1;
	}
	status = symbolize_in_child(path, output, options, SYMBOL_FULL);
	if (status == -EFAULT) {
		log_line("%s: a debug file cannot be read; looking up functions only", path);
		status = symbolize_in_child(path, output, options, SYMBOL_FUNCTIONS);
	}
	if (status == -EFAULT)
		log_line("%s: a file with names cannot be read", path);
	else if (status < 0)
		log_line("%s: %s", path, strerror(-status));
	return status != 0;
}

static int symbolize_all(const struct operands *operands, const struct options *options)
{
	int status = operands->unread_count ? 1 : 0;

	for (size_t i = 0; i < operands->count; i++)
		if (!(operands->paths[i].from_folder && has_names(operands->paths[i].path)) &&
		    symbolize_one(operands->paths[i].path, options))
			status = 1;
	if (!operands->count && !status) {
		log_line("no profile in %s (" OPERANDS_ENDINGS ")", options->operands[0]);
		status = 1;
	}
	return status;
}

int symbolize_run(struct options *options)
{
	struct operands operands;
	int status;

	status = operands_expand(&operands, options->operands, options->operand_count, NULL) ? 1 : 0;
	if (!status && options->output && (operands.count > 1 || operands.has_folder)) {
		log_line("-o is for one PROFILE; without it each gets a file of its own, PROFILE.symbolized");
		status = STATUS_USAGE;
	}
	for (int i = 0; i < options->operand_count && !status && !options->output; i++) {
		if (strcmp(options->operands[i], "-") != 0)
			continue;
		log_line("standard input has no name: -o FILE says where to write");
		status = STATUS_USAGE;
	}
	if (!status)
		status = symbolize_all(&operands, options);
	operands_fini(&operands);
	return status;
}
