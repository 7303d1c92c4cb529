/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap check PROFILE...: is each file a profile that other tools can read? */
#include "pprof/check/check.h"
#include "pprof/codec/file.h"
#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/report/operands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "FILE: what", whatever bytes FILE has. */
__attribute__((format(printf, 2, 3))) static void print_line(const char *path, const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list args;

	snprintf(line, sizeof(line), "%s", path);
	utf8_disarm(line, strlen(line));
	printf("%s: ", line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void print_findings(const char *path, const struct check_report *report, bool warnings)
{
	size_t left = report->error_count + (warnings ? report->warning_count : 0);

	for (size_t i = 0; i < report->finding_count; i++) {
		const struct check_finding *finding = &report->findings[i];

		if (finding->severity == CHECK_WARNING && !warnings)
			continue;
		print_line(
		    path, "%s%s", finding->severity == CHECK_WARNING ? "note: " : "", finding->message);
		left--;
	}
	if (left)
		print_line(path, "%zu more like these", left);
}

/* Returns whether it is valid. */
static bool check_one(const char *path, const struct options *options)
{
	enum check_level level = options->read.strict ? CHECK_STRICT : CHECK_FOREIGN;
	struct check_report report;
	uint8_t *data;
	size_t len;
	bool valid;
	int err =
	    file_read(strcmp(path, "-") ? path : "/dev/stdin", options->read.memory_max_bytes, &data, &len);

	if (err) {
		print_line(path, "cannot be read: %s", file_read_error(err));
		return false;
	}
	err = check_profile(data, len, level, options->read.memory_max_bytes, &report);
	free(data);
	print_findings(path, &report, options->verbosity > 0);
	if (err)
		print_line(path, "not checked to its end: %s",
		    err == -EFBIG ? "it takes more memory than --max-memory" : "not enough memory");
	valid = !err && !report.error_count;
	if (valid && options->verbosity > 0)
		print_line(path, "valid");
	check_report_fini(&report);
	return valid;
}

int check_run(struct options *options)
{
	struct operands operands;
	const struct operands_services services = {options->read.store, STORE_MOMENT_EVERYTHING};
	int status = operands_expand(&operands, options->operands, options->operand_count, &services) ? 1 : 0;

	if (!status && !operands.count && !operands.unread_count)
		log_line("no profile in %s (" OPERANDS_ENDINGS ")", options->operands[0]);
	if (!operands.count || operands.unread_count)
		status = 1;
	for (size_t i = 0; i < operands.count; i++)
		if (!check_one(operands.paths[i].path, options))
			status = 1;
	operands_fini(&operands);
	if (fflush(stdout)) {
		log_line("cannot write standard output: %s", strerror(errno));
		return 1;
	}
	return status;
}
