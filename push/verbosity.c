/* SPDX-License-Identifier: Apache-2.0 */
#include "push/verbosity.h"

int verbosity;
