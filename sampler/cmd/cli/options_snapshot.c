/* SPDX-License-Identifier: Apache-2.0 */
/* The options of snapshot. */
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/cli/options_rows.h"

static const struct option rows[] = {
    {COMMAND_SNAPSHOT, '\0', "all", OPTION_FLAG, OPTION_FIELD(snapshot.all),
        .help = "all processes of all your sessions (as root: of\n"
                "every user's)"},
    {COMMAND_SNAPSHOT, '\0', "session", OPTION_COUNT, OPTION_FIELD(snapshot.session), .least = 1,
        .most = INT32_MAX, .value = "PID",
        .allowed = "the process id of `heaptap record` or of a process that it profiles",
        .help = "all processes of one session: of the `heaptap\n"
                "record` with this pid, or that profiles it"},
    {COMMAND_SNAPSHOT, '\0', "service", OPTION_TEXT, OPTION_FIELD(snapshot.service), .value = "NAME",
        .allowed = "the name of a service, as `heaptap status` shows it",
        .help = "every process of a service of the daemon"},
};

const struct option_table options_snapshot = {rows, sizeof(rows) / sizeof(rows[0])};
