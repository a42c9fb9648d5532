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

#include "engine/fabric_ask.h"

#define UMAD_EXPORT __attribute__((visibility("default")))

/* The level that umad_debug() set. */
extern int umad_debug_level;
#define UMAD_SAY(...)                                                          \
	do {                                                                   \
		if (umad_debug_level > 0)                                      \
			fprintf(stderr, "ibumad: " __VA_ARGS__);               \
	} while (0)

#endif
