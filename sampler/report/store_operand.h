/* SPDX-License-Identifier: Apache-2.0 */
/* SERVICE[@TIME] on the command line: profiles of the daemon's store. */
#ifndef SAMPLER_REPORT_STORE_OPERAND_H
#define SAMPLER_REPORT_STORE_OPERAND_H

#include "sampler/report/operands.h"

/* Adds the files that the word stands for. 1; 0 if no store has such a service, with a line if there is a
 * store and the word looks like a service; or -errno after a line, of which -ENOMEM's is the caller's. */
int store_operand_expand(
    struct operands *operands, const char *word, size_t operand, const struct operands_services *services);

#endif
