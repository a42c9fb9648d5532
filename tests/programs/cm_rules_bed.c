/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing of the results of rules, and ids that all rules use. */
#include "cm_rules.h"

int failures;
static const char *why = "";

void say(const char *what, bool well)
{
	printf("%s cm rules: %s%s%s\n", well ? "ok" : "not ok", what,
	       well || !*why ? "" : ": ", well ? "" : why);
	why = "";
	failures += !well;
}

/* Report the failed rule @what if @it is false; only the first failure is
 * reported. Returns @it. */
bool holds(bool it, const char *what)
{
	if (!it && !*why)
		why = what;
	return it;
}

bool fails(int rc, int error)
{
	return rc == -1 && errno == error;
}

struct rdma_event_channel *channel;

struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	return rdma_create_id(channel, &id, NULL, ps) ? NULL : id;
}
