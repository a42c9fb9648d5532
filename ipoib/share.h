/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the processes of one port that are in a multicast group. The subnet
 * administrator counts ports only: if two interfaces share a port, in two
 * network namespaces or in two modes, the first one that leaves would end the
 * membership of the other. So each process holds a shared lock on one byte of a
 * file of the fabric for each kind of membership that it has, and only the last
 * process sends the request to leave. When a process is killed, the kernel
 * releases its locks.
 */
#ifndef IPOIB_SHARE_H
#define IPOIB_SHARE_H

#include "wire/sa.h"

/* Open the file of the fabric in which @devices, the value of VERBENA_DEVICES,
 * has its first adapter. Returns a descriptor that the caller closes, or
 * -errno. */
VB_MUST_CHECK int ipoib_share_open(const char *devices);

/* In these functions @m has the MGID, the port's GID and the join state. If @fd
 * is negative, this process acts as if it were the only one. */

/* Count this process, before it asks to join. False: another process is about
 * to leave; the caller asks later. */
VB_MUST_CHECK bool ipoib_share_hold(int fd, const struct vb_sa_mcmember *m);
/* Do not count this process any more. Returns those bits of the join state that
 * no other process has: the caller leaves the group in these, and then calls
 * ipoib_share_end(). */
VB_MUST_CHECK uint8_t ipoib_share_release(int fd,
					  const struct vb_sa_mcmember *m);
/* The caller has left the group: from now on other processes may join again. */
void ipoib_share_end(int fd, const struct vb_sa_mcmember *m);

#endif
