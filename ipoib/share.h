/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes of one port are in a multicast group. The subnet
 * administrator knows ports only: where two interfaces share one, in two
 * network namespaces or in two modes, the first that leaves would take the
 * group from the other. So each locks a byte of a file of the fabric for each
 * kind of membership, shared, as long as it has the membership; the last one
 * leaves. The kernel takes the locks of a process that is killed.
 */
#ifndef IPOIB_SHARE_H
#define IPOIB_SHARE_H

#include "wire/sa.h"

/* Open the file of the fabric in which @devices, the value of VERBENA_DEVICES,
 * has its first adapter. Returns a descriptor that the caller closes, or
 * -errno. */
VB_MUST_CHECK int ipoib_share_open(const char *devices);

/* In these functions @m has MGID, GID of the port and join state. @fd may be
 * negative: then this process is as good as the only one. */

/* Count this process, before it asks to join. False: another process is about
 * to leave; the caller asks later. */
VB_MUST_CHECK bool ipoib_share_hold(int fd, const struct vb_sa_mcmember *m);
/* Count this process no longer. Returns those bits of the join state in which
 * no other process is: it leaves these, and then calls ipoib_share_end(). */
VB_MUST_CHECK uint8_t ipoib_share_release(int fd,
					  const struct vb_sa_mcmember *m);
/* Others may join again. */
void ipoib_share_end(int fd, const struct vb_sa_mcmember *m);

#endif
