/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/prompt.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/log.h"

#define SLICE (100 * VB_USEC) /* the shortest time slice that Linux accepts */

void vb_prompt_thread(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .runtime = SLICE };

	prctl(PR_SET_TIMERSLACK, 1ul);
	attr.nice = getpriority(PRIO_PROCESS, 0);
	if (sched_getscheduler(0) == SCHED_OTHER &&
	    syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
		vb_log(LOG_DEBUG, "a thread's time slice stays long: %s",
		       strerror(errno));
}
