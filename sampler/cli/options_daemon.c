/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the daemon, and of the commands that ask it. */
#include "sampler/cli/options.h"

#include "sampler/cli/command.h"
#include "sampler/cli/options_rows.h"

static const struct option rows[] = {
    {COMMAND_DAEMON, '\0', "socket", OPTION_TEXT, OPTION_FIELD(socket), .value = "PATH",
        .allowed = "a path", .help = "the daemon's control socket"},
    {COMMAND_DAEMON, '\0', "config", OPTION_TEXT, OPTION_FIELD(daemon.config), .value = "FILE",
        .allowed = "a file", .help = "configuration file, default /etc/heaptap/heaptap.conf\n"
                                    "(of a user: ~/.config/heaptap/heaptap.conf)"},
    {COMMAND_DAEMON, '\0', "check", OPTION_FLAG, OPTION_FIELD(daemon.check),
        .help = "check the configuration and end"},
    {COMMAND_DAEMON, '\0', "store", OPTION_TEXT, OPTION_FIELD(daemon.store), .value = "DIR",
        .allowed = "a folder", .help = "where profiles go, default as configured, or\n"
                                      "/var/lib/heaptap/store"},
};

const struct option_table options_daemon = {rows, sizeof(rows) / sizeof(rows[0])};
