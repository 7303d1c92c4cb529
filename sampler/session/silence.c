/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/silence.h"

#define TOLD_NS UINT64_C(4000000000)  /* beside a load of many programs a second may become two */
#define MOST_NS UINT64_C(60000000000) /* of which one look at many processes takes a few seconds */

void silence_end(struct silence *silence, uint64_t now_ns)
{
	*silence = (struct silence){.heard_ns = now_ns};
}

enum silence_verdict silence_look(struct silence *silence, uint64_t now_ns)
{
	if (!silence->heard_ns)
		silence->heard_ns = now_ns;
	const uint64_t since_ns = now_ns - silence->heard_ns;
	if (since_ns >= MOST_NS)
		return SILENCE_TOO_LONG;
	if (since_ns < TOLD_NS || since_ns < 2 * silence->said_ns)
		return SILENCE_SHORT;
	silence->said_ns = since_ns;
	return SILENCE_TO_TELL;
}
