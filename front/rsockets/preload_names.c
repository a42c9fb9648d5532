/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * getpeername(), getsockname(), setsockopt() and getsockopt(), also for the
 * UNIX sockets with which a child of fork() uses its parent's connections
 * (preload_relay.h).
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/defs.h"
#include "front/rsockets/preload.h"

EXPORT int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (rsp_is_ours(fd))
		return INSIDE(rgetpeername(rsp_target(fd), addr, len));
	return !rsp_inside && rsp_relayed_name(fd, true, addr, len)
		       ? 0
		       : REAL(getpeername)(fd, addr, len);
}

EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (rsp_is_ours(fd))
		return INSIDE(rgetsockname(rsp_target(fd), addr, len));
	return !rsp_inside && rsp_relayed_name(fd, false, addr, len)
		       ? 0
		       : REAL(getsockname)(fd, addr, len);
}

/* True if the kernel refused an option of TCP or IP because the socket is
 * really a UNIX socket to the parent. The caller then reports success to the
 * program. */
static bool is_passed_over(int fd, int level, int rc)
{
	int error = errno;
	bool passed = rc < 0 && !rsp_inside &&
		      (level == IPPROTO_TCP || level == IPPROTO_IP ||
		       level == IPPROTO_IPV6) &&
		      rsp_relayed_name(fd, true, NULL, NULL);

	errno = error;
	return passed;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len)
{
	int rc;

	if (rsp_is_ours(fd))
		return INSIDE(
			rsetsockopt(rsp_target(fd), level, name, value, len));
	rc = REAL(setsockopt)(fd, level, name, value, len);
	return is_passed_over(fd, level, rc) ? 0 : rc;
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc;

	if (rsp_is_ours(fd))
		return INSIDE(
			rgetsockopt(rsp_target(fd), level, name, value, len));
	rc = REAL(getsockopt)(fd, level, name, value, len);
	if (!is_passed_over(fd, level, rc))
		return rc;
	/* IP_OPTIONS is empty; every other option reads as the integer 0. */
	*len = level == IPPROTO_IP && name == IP_OPTIONS
		       ? 0
		       : VB_MIN(*len, (socklen_t)sizeof(int));
	memset(value, 0, *len);
	return 0;
}
