/* SPDX-License-Identifier: BSD-2-Clause */
/* How programs find the process of a fabric: by a socket in the directory of
 * the user's files (engine/runtime_dir.h) that has the fabric's name. */
#ifndef ENGINE_FABRIC_PATH_H
#define ENGINE_FABRIC_PATH_H

#include <limits.h>

#include <sys/types.h>

#include "base/defs.h"
#include "wire/umad_ipc.h"

#define VB_FABRIC_DEFAULT "default"
#define VB_FABRIC_NAME	  63 /* the most characters of a fabric's name */

/* May a fabric be called @name: letters, digits, '-', '_', and '.' except at
 * the beginning? */
bool vb_fabric_name_good(const char *name);

/* Bind a socket for the fabric @name, and listen. Returns a descriptor that the
 * caller closes; @dir gets the directory of the fabric's files, which is made.
 * -EADDRINUSE: such a fabric runs; -EINVAL: no such name; else -errno. */
VB_MUST_CHECK int vb_fabric_listen(const char *name, char dir[PATH_MAX]);

/* Remove the socket and the directory @dir, whose other files are gone. The
 * name stays taken until the process ends. */
void vb_fabric_remove(const char *dir);

/* Connect to the fabric @name. Returns a descriptor that the caller closes, or
 * -errno; -ECONNREFUSED: no such fabric runs; -ETIMEDOUT: it accepted no
 * connection for 10 s. A send on the descriptor that waits for 10 s fails with
 * EAGAIN. */
VB_MUST_CHECK int vb_fabric_connect(const char *name);

/* Open the file of the fabric @name, of this user, in which processes lock the
 * multicast groups that they have joined (ipoib/share.h). It is empty. Returns
 * a descriptor that the caller closes, or -errno. */
VB_MUST_CHECK int vb_fabric_groups_open(const char *name);

/* An adapter's place in a fabric. */
struct vb_fabric_place {
	char fabric[VB_FABRIC_NAME + 1];
	char node[VB_UMAD_NAME];
	uint8_t port; /* the number of the node's port; 0: none is named */
};

/* How a device that is a place is written: "ib:NODE" or "ib:FABRIC/NODE". */
#define VB_FABRIC_PREFIX "ib:"
/* Read @spec, @len characters. False: it is no place. */
bool vb_fabric_place_get(const char *spec, size_t len,
			 struct vb_fabric_place *place);

/*
 * engine/fabric_ask.c: talking to the fabric's process. A descriptor may be
 * non-blocking or not. @due: when to give up, of vb_clock_read().
 */

/* 10 s from now: when a fabric has not answered, or read, for too long. */
vb_time vb_fabric_due(void);
/* Wait until poll() reports @events at @fd. 0, or -ETIMEDOUT at @due, or
 * -errno. Signals do not end it. */
int vb_fabric_wait(int fd, short events, vb_time due);
/* Send a message, with the descriptor *@with unless that is NULL. 0 or -errno;
 * -ETIMEDOUT: there was no room until @due. */
int vb_fabric_post(int fd, const void *bytes, size_t len, const int *with,
		   vb_time due);
/* Receive one message of at most @room bytes. @fds, @count: as
 * vb_fdmail_recv(). Returns the message's length, or 0 at the end of file, or
 * -errno; -ETIMEDOUT: no message came until @due. */
ssize_t vb_fabric_receive(int fd, void *bytes, size_t room, int *fds,
			  unsigned *count, vb_time due);
/* Connect to the fabric of @place, of this user or of root. Returns a
 * descriptor that the caller closes, or -errno. */
VB_MUST_CHECK int vb_fabric_reach(const struct vb_fabric_place *place);
/* Returns the question @kind about @port of the node at @place. */
struct vb_umad_where vb_fabric_where(uint32_t kind,
				     const struct vb_fabric_place *place,
				     unsigned port);
/* Connect to @port of the node at @place, as a program of libibumad does.
 * Returns a descriptor that the caller closes, or -errno. */
VB_MUST_CHECK int vb_fabric_attach(const struct vb_fabric_place *place,
				   unsigned port);
/* Ask @w by @fd, and read the answer: @room bytes, or only a head that has the
 * error. @count, @fds: as vb_fdmail_recv(). 0 or -errno. */
int vb_fabric_ask(int fd, const struct vb_umad_where *w, void *answer,
		  size_t room, int *fds, unsigned *count);
/* Send @bytes over @fd, which is attached to a port, together with a socket for
 * the answer. Returns the result in the answer, or -errno; -ETIMEDOUT: no
 * answer came. */
int vb_fabric_call(int fd, const void *bytes, size_t len);
/* Ask the fabric about the node at @place and its port @port. 0 or -errno. */
VB_MUST_CHECK int vb_fabric_query(const struct vb_fabric_place *place,
				  unsigned port, struct vb_umad_info *info);

#endif
