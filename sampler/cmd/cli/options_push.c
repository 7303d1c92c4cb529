/* SPDX-License-Identifier: Apache-2.0 */
/* The options of push. Those of a target are also options of record, for its --push. */
#include "sampler/cmd/cli/options.h"

#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options_rows.h"

#include <errno.h>
#include <string.h>

#define TARGETED (COMMAND_PUSH | COMMAND_RECORD)
#define URLS                                                                                               \
	"pyroscope+http(s)://HOST[:PORT][/PATH], parca+http(s):// or otlp+http(s):// (datadog+http:// is " \
	"gone)"
#define MS UINT64_C(1000000)

/* heaptap-push checks the rest of a URL. */
static int set_url(struct options *options, const char *value)
{
	static const char *const schemes[] = {"pyroscope+http://", "pyroscope+https://", "parca+http://",
	    "parca+https://", "otlp+http://", "otlp+https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strncmp(value, schemes[i], strlen(schemes[i])) == 0 && value[strlen(schemes[i])]) {
			options->push.url = value;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_label(struct options *options, const char *value)
{
	const char *equals = strchr(value, '=');

	if (!equals || equals == value || !equals[1] || options->push.label_count == OPTION_LABELS_MAX)
		return -EINVAL;
	options->push.labels[options->push.label_count++] = value;
	return 0;
}

static const struct option rows[] = {
    OPTION_HEADING("to a server"),
    {COMMAND_PUSH, '\0', "to", OPTION_SET, .set = set_url, .value = "URL", .allowed = URLS,
        .help = "where to: pyroscope+http(s)://HOST:PORT[/PATH],\n"
                "parca+http(s):// or, experimental,\n"
                "otlp+http(s)://"},
    {COMMAND_RECORD, '\0', "push", OPTION_SET, .set = set_url, .value = "URL", .allowed = URLS,
        .help = "send snapshots and exit profiles to a server, too:\n"
                "pyroscope+http(s)://HOST:PORT, parca+http(s)://,\n"
                "otlp+http(s)://"},
    {COMMAND_PUSH, '\0', "follow", OPTION_FLAG, OPTION_FIELD(push.follow),
        .help = "send what comes into the folders, until stopped;\n"
                "what cannot be sent waits on disk"},
    {COMMAND_PUSH, '\0', "config", OPTION_TEXT, OPTION_FIELD(push.config), .value = "FILE",
        .allowed = "the name of a file",
        .help = "for --follow: targets from the sections\n"
                "[push NAME], the folder from [daemon] store"},
    {TARGETED, '\0', "token-file", OPTION_TEXT, OPTION_FIELD(push.token_file), .value = "FILE",
        .allowed = "the name of a file with one line",
        .help = "a token for the server (Authorization: Bearer), or\n"
                "with --user the password"},
    {TARGETED, '\0', "user", OPTION_TEXT, OPTION_FIELD(push.user), .value = "USER", .allowed = "a name",
        .help = "user for the server (Authorization: Basic)"},
    {TARGETED, '\0', "tenant", OPTION_TEXT, OPTION_FIELD(push.tenant), .value = "TENANT",
        .allowed = "the name of a tenant", .help = "Pyroscope's tenant (X-Scope-OrgID)"},
    {TARGETED, '\0', "ca-file", OPTION_TEXT, OPTION_FIELD(push.ca_file), .value = "FILE",
        .allowed = "a file of certificates (PEM)", .help = "certificates to trust, instead of the system's"},
    {TARGETED, '\0', "label", OPTION_SET, .set = set_label, .value = "K=V",
        .allowed = "NAME=VALUE, both not empty, at most 12 times",
        .help = "a label of the series at the server; repeatable"},
    {COMMAND_PUSH, '\0', "types", OPTION_TEXT, OPTION_FIELD(push.types), .value = "LIST",
        .allowed = "sample types separated by commas, for example inuse_space,inuse_objects",
        .help = "only these sample types, for example\n"
                "inuse_space,inuse_objects"},
    {COMMAND_PUSH, '\0', "timeout", OPTION_TIME, OPTION_FIELD(push.timeout_ns), .least = MS,
        .most = 3600000 * MS, .value = "TIME", .allowed = "1ms to 1h with the unit, for example 30s",
        .help = "time to deliver one profile, default 30s; or, with\n"
                "follow, for one request, default 10s"},
    {COMMAND_PUSH, '\0', "dry-run", OPTION_FLAG, OPTION_FIELD(push.dry_run),
        .help = "send nothing; print labels, sizes and what would\n"
                "be cut to the server's limits"},
    {COMMAND_PUSH, 'q', "quiet", OPTION_SET, .set = options_set_quiet,
        .help = "report only what could not be sent"},
    {COMMAND_PUSH, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "report every profile, and every further attempt"},
};

const struct option_table options_push = {rows, sizeof(rows) / sizeof(rows[0])};
