/* SPDX-License-Identifier: BSD-2-Clause */
/* Used by all tables: the device, the types of queue pairs, the verdicts. */
#include "conformance.h"

struct rc_options options = RC_OPTIONS;
struct rc_device device;
struct ibv_cq *cq_a, *cq_b;
struct ibv_ah *ah;
uint8_t *memory;
struct ibv_mr *mr, *read_only, *gone;
struct ibv_xrcd *xrcd, *other_xrcd;
struct ibv_srq *srq; /* the SRQ of XRC; its completions go to cq_b */

/* @is_a, @is_b: whether this process has the requester (a) or the responder
 * (b). @wire: TCP connection to the process with the other one; -1: this
 * process has both. */
bool is_a = true;
bool is_b = true;
int wire = -1;
struct far far;

const char *const state_names[STATES] = { "RESET", "INIT", "RTR", "RTS",
					  "SQD",   "SQE",  "ERR" };
// clang-format off
const struct type types[TYPES] = {
	{ RC,  IBV_QPT_RC,	 "RC" },
	{ UC,  IBV_QPT_UC,	 "UC" },
	{ UD,  IBV_QPT_UD,	 "UD" },
	{ INI, IBV_QPT_XRC_SEND, "XRC_SEND" },
	{ TGT, IBV_QPT_XRC_RECV, "XRC_RECV" },
	{ IW,  IBV_QPT_RC,	 "an RNIC" },
};
// clang-format on

static int judged, failed;

void verdict(bool good, const char *format, ...)
{
	va_list args;

	judged++;
	if (good)
		return;
	failed++;
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* Print one line for a test case: whether all verdicts since the last call were
 * good. */
void line(const char *what, const char *type)
{
	printf("%sok %s %s (%d checks)\n", failed ? "not " : "", what, type,
	       judged);
	fflush(stdout);
	judged = failed = 0;
}
