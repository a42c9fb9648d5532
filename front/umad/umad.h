/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibumad.so.3: InfiniBand's management datagrams for programs, with
 * rdma-core's symbols and versions. Adapters are those that VERBENA_DEVICES
 * names by ib:NODE or ib:FABRIC/NODE; they are called ib0, ib1 and so on, in
 * that order. Each is a node of an emulated fabric, which another process
 * (fabricd) runs.
 */
#ifndef FRONT_UMAD_UMAD_H
#define FRONT_UMAD_UMAD_H

#include <infiniband/umad.h>
#include <infiniband/umad_str.h>

#include "wire/umad_ipc.h"

#define UMAD_EXPORT __attribute__((visibility("default")))

#define FABRIC_NAME 64

/* An adapter's place in a fabric: the fabric's name and the node's name. */
struct umad_place {
	char fabric[FABRIC_NAME];
	char node[VB_UMAD_NAME];
};

/* Returns how many adapters VERBENA_DEVICES names. */
unsigned umad_places(void);
/* Writes the place of adapter @index to @place. False: there is none. */
bool umad_place(unsigned index, struct umad_place *place);
/* Returns the index of the adapter with the name @name ("ib0"); NULL: the first
 * adapter. -1: there is no such adapter. */
int umad_place_index(const char *name);

/* Connect to the fabric of @place. Returns a descriptor that the caller closes,
 * or -errno. */
int umad_connect(const struct umad_place *place);
/* Ask the fabric about the node of @place and the node's port @port. 0 or
 * -errno. */
int umad_ask(const struct umad_place *place, unsigned port,
	     struct vb_umad_info *info);
/* Connect to the fabric, and take port @port of the node of @place for this
 * program. Returns a descriptor that the caller closes, or -errno. */
int umad_attach(const struct umad_place *place, unsigned port);
/* Returns the time, 10 s from now, at which a call fails because the fabric has
 * not answered or read. */
vb_time umad_due(void);
/* Wait until poll() reports @events at @fd. 0, or -ETIMEDOUT at @due, or
 * -errno. A signal does not end the wait. */
int umad_wait(int fd, short events, vb_time due);
/* Send @bytes over @fd, together with a socket for the answer. Returns the
 * result in the answer, or -errno; -ETIMEDOUT: no answer came. */
int umad_call(int fd, const void *bytes, size_t len);

/* The level of debugging output that umad_debug() has set. */
extern int umad_debug_level;
#define UMAD_SAY(...)                                                          \
	do {                                                                   \
		if (umad_debug_level > 0)                                      \
			fprintf(stderr, "ibumad: " __VA_ARGS__);               \
	} while (0)

#endif
