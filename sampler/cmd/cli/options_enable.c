/* SPDX-License-Identifier: Apache-2.0 */
/* The options of enable and disable. */
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/cli/options_rows.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define ENABLING (COMMAND_ENABLE | COMMAND_DISABLE)

static int set_root(struct options *options, const char *value)
{
	if (!*value)
		return -EINVAL;
	options->enable.root = value;
	return 0;
}

static int set_library(struct options *options, const char *value)
{
	if (*value != '/' || strlen(value) >= PATH_MAX)
		return -EINVAL;
	options->enable.library = value;
	return 0;
}

static const struct option rows[] = {
    {COMMAND_ENABLE, '\0', "now", OPTION_FLAG, OPTION_FIELD(enable.now),
        .help = "remove the file `off` beside the control socket:\n"
                "what disable --now has stopped goes on"},
    {COMMAND_DISABLE, '\0', "now", OPTION_FLAG, OPTION_FIELD(enable.now),
        .help = "make the file `off` beside the control socket: the\n"
                "daemon stops sampling everything within a second"},
    {ENABLING, '\0', "root", OPTION_SET, .set = set_root, .value = "DIR", .allowed = "a folder",
        .help = "change the files below DIR, as for an image that\n"
                "is being built; systemd is not told to reload"},
    {ENABLING, '\0', "library", OPTION_SET, .set = set_library, .value = "PATH",
        .allowed = "the absolute path of libheaptap.so; with --root as programs of the image see it",
        .help = "the library to load; default: the library that\n"
                "belongs to this heaptap, or, with --root, the one\n"
                "that is installed in the image"},
};

const struct option_table options_enable = {rows, sizeof(rows) / sizeof(rows[0])};
