/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/sampler_timeout.h"

#define TOLD_NS UINT64_C(4000000000)  /* on a busy machine a second may become two */
#define MOST_NS UINT64_C(60000000000) /* one look of the sampler at many processes takes a few seconds */
#define LOOK_NS UINT64_C(2000000000)  /* a longer time between two looks means that the front could not run */

void sampler_timeout_restart(struct sampler_timeout *timeout, uint64_t now_ns)
{
	*timeout = (struct sampler_timeout){.looked_ns = now_ns};
}

enum sampler_timeout_state sampler_timeout_look(struct sampler_timeout *timeout, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - timeout->looked_ns;

	timeout->looked_ns = now_ns;
	timeout->silent_ns += since_ns < LOOK_NS ? since_ns : LOOK_NS;
	if (timeout->silent_ns >= MOST_NS)
		return SAMPLER_TIMEOUT_OVER;
	if (timeout->silent_ns < TOLD_NS || timeout->silent_ns < 2 * timeout->told_ns)
		return SAMPLER_TIMEOUT_NOT_YET;
	timeout->told_ns = timeout->silent_ns;
	return SAMPLER_TIMEOUT_TELL;
}
