/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file, and globs: whatever the bytes are, there is an error line or rules that can be used
 * on a process.
 *
 * Input: a byte for the length of the process' path, the path, the file's text.
 */
#include "sampler/cmd/daemon/policy.h"

#include "pprof/text/pattern.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decide(const struct rules *rules, const char *path)
{
	static struct process_facts facts;
	struct policy policy;
	struct labels labels;

	memset(&facts, 0, sizeof(facts));
	facts.pid = 2;
	facts.has_library = true;
	strcpy(facts.exe, path);
	snprintf(facts.comm, sizeof(facts.comm), "%.16s", path);
	container_names_of_path(&facts.cgroup, path);
	policy_decide(&policy, rules, &facts);
	if (!service_name_is_good(policy.service) || !policy.how ||
	    (policy.answer == POLICY_PROFILE) != !*policy.reason)
		abort();
	if (policy_labels(&labels, &policy, &facts, "host") == 0 && !labels_find(&labels, "service_name"))
		abort();
	labels_fini(&labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[257] = "", error[1024] = "", *text;
	struct rules rules;
	size_t length;
	int err;

	if (!size)
		return 0;
	length = data[0] < size ? data[0] : size - 1;
	memcpy(path, data + 1, length);
	text = malloc(size - length);
	memcpy(text, data + 1 + length, size - length - 1);
	text[size - length - 1] = '\0';
	pattern_glob_matches(path, text);
	pattern_glob_matches(text, path);
	err = rules_parse(&rules, text, "file", error, sizeof(error));
	if (!err)
		decide(&rules, path);
	else if (!*error)
		abort();
	rules_fini(&rules);
	free(text);
	return 0;
}
