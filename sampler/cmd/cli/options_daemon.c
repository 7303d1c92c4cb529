/* SPDX-License-Identifier: Apache-2.0 */
/* The options of daemon. */
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/cli/options_rows.h"

static const struct option rows[] = {
    {COMMAND_DAEMON, '\0', "config", OPTION_TEXT, OPTION_FIELD(daemon.config), .value = "FILE",
        .allowed = "a file",
        .help = "configuration file, default\n"
                "/etc/heaptap/heaptap.conf (of a user:\n"
                "$XDG_CONFIG_HOME/heaptap/heaptap.conf)"},
    {COMMAND_DAEMON, '\0', "check", OPTION_FLAG, OPTION_FIELD(daemon.check),
        .help = "check the configuration: 'ok', or all its faults"},
    {COMMAND_DAEMON, '\0', "store", OPTION_TEXT, OPTION_FIELD(daemon.store), .value = "DIR",
        .allowed = "a folder",
        .help = "where profiles go, default as configured, or\n"
                "/var/lib/heaptap/store (of a user:\n"
                "$XDG_STATE_HOME/heaptap/store)"},
    {COMMAND_DAEMON, 'q', "quiet", OPTION_SET, .set = options_set_quiet, .help = "report only what is wrong"},
    {COMMAND_DAEMON, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "report every process that is found, and why"},
};

const struct option_table options_daemon = {rows, sizeof(rows) / sizeof(rows[0])};
