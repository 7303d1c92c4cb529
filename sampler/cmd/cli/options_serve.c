/* SPDX-License-Identifier: Apache-2.0 */
/* The options of serve, and of record --listen. */
#include "sampler/cmd/cli/options.h"

#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options_rows.h"

#include <errno.h>
#include <string.h>

#define ADDRESSES "ADDRESS:PORT such as 127.0.0.1:7337 or [::1]:7337, or unix:PATH, at most 8 times"

/* heaptap-serve checks the address itself. */
static int set_listen(struct options *options, const char *value)
{
	const char *colon = strrchr(value, ':');

	if (!colon || !colon[1] || options->serve.listen_count == OPTION_LISTEN_MAX)
		return -EINVAL;
	options->serve.listen[options->serve.listen_count++] = value;
	return 0;
}

static const struct option rows[] = {
    OPTION_HEADING("in a browser"),
    {COMMAND_SERVE, '\0', "listen", OPTION_SET, .set = set_listen, .value = "ADDRESS", .allowed = ADDRESSES,
        .help = "where to listen: ADDRESS:PORT, default\n"
                "127.0.0.1:7337, or unix:PATH; repeatable"},
    {COMMAND_SERVE, '\0', "token-file", OPTION_TEXT, OPTION_FIELD(serve.token_file), .value = "FILE",
        .allowed = "the name of a file with one line",
        .help = "the token that clients must show (Authorization:\n"
                "Bearer); needed where other machines can connect"},
    {COMMAND_SERVE, 'q', "quiet", OPTION_SET, .set = options_set_quiet, .help = "no line at the start"},
    {COMMAND_RECORD, '\0', "listen", OPTION_SET, .set = set_listen, .value = "ADDRESS", .allowed = ADDRESSES,
        .common = COMMAND_RECORD,
        .help = "show this session in a browser, and to pprof\n"
                "and scrapers, at ADDRESS:PORT or unix:PATH"},
};

const struct option_table options_serve = {rows, sizeof(rows) / sizeof(rows[0])};
