/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/merge.h"

#include "pprof/analysis/merge.h"
#include "pprof/profile/profile.h"
#include "sampler/cli/status.h"
#include "sampler/report/profile_input.h"
#include "sampler/report/profile_output.h"
#include "sampler/terminal/log_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The merged profile may be as large as all inputs together. */
static int read_all(struct profile **profiles, const struct options *options)
{
	size_t held_bytes = (size_t)options->read.memory_max_bytes / 2;

	for (int i = 0; i < options->operand_count; i++)
		if (profile_input_read(options->operands[i], &options->read, &held_bytes, &profiles[i]))
			return 1;
	return 0;
}

int merge_run(struct options *options)
{
	size_t count = (size_t)options->operand_count, culprit;
	struct profile **profiles, *merged = NULL;
	int status, err;

	if (!options->output && isatty(STDOUT_FILENO)) {
		log_line("a profile is binary, nothing for a terminal: use -o FILE, or redirect it");
		return STATUS_USAGE;
	}
	profiles = calloc(count, sizeof(struct profile *));
	status = profiles ? read_all(profiles, options) : 1;
	if (!status) {
		err = merge_profiles(profiles, count, options->read.anonymize, &merged, &culprit);
		if (err == -ENODATA)
			log_line("%s cannot be merged with %s: they have no sample type in common, or "
			         "different period types",
			    options->operands[culprit], options->operands[0]);
		else if (err)
			log_line("cannot merge: %s", strerror(-err));
		status = err || profile_output_write(merged, options->output) ? 1 : 0;
	}
	for (size_t i = 0; profiles && i < count; i++)
		profile_free(profiles[i]);
	free(profiles);
	profile_free(merged);
	return status;
}
