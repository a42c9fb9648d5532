/* SPDX-License-Identifier: BSD-2-Clause */
/* The soft limit is raised to the hard limit. */
#include "broker/fd_limit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#include "base/defs.h"
#include "base/log.h"

unsigned vb_fd_limit_raise(unsigned others, unsigned fewest)
{
	struct rlimit r, more;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return UINT_MAX;
	more = (struct rlimit){ r.rlim_max, r.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &more) < 0)
		vb_log(LOG_INFO, "broker: RLIMIT_NOFILE cannot be raised: %s",
		       strerror(errno));
	else
		r = more;
	if (r.rlim_cur < (rlim_t)others + fewest)
		return fewest;
	return (unsigned)VB_MIN(r.rlim_cur - others, (rlim_t)UINT_MAX);
}
