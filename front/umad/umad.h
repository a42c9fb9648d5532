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

/* rdma-core 56 declares pairs of adapters in this header, and the last function
 * with one parameter more; rdma-core 44 does not. Callers of both kinds get the
 * same function, which umad.c declares. So the header's declarations get other
 * names. */
#define umad_ca_pair			 umad_ca_pair_in_header
#define umad_get_smi_gsi_pairs		 umad_get_smi_gsi_pairs_in_header
#define umad_get_smi_gsi_pair_by_ca_name umad_get_pair_in_header
#include <infiniband/umad.h>
#undef umad_ca_pair
#undef umad_get_smi_gsi_pairs
#undef umad_get_smi_gsi_pair_by_ca_name
#include <infiniband/umad_str.h>

#include "engine/fabric_path.h"
#include "wire/umad_ipc.h"

#define UMAD_EXPORT __attribute__((visibility("default")))

/* Returns how many adapters VERBENA_DEVICES names. */
unsigned umad_places(void);
/* Writes the place of adapter @index to @place. False: there is none. */
bool umad_place(unsigned index, struct vb_fabric_place *place);
/* Returns the index of the adapter with the name @name ("ib0"); NULL: the first
 * adapter. -1: there is no such adapter. */
int umad_place_index(const char *name);

/* The level of debugging output that umad_debug() has set. */
extern int umad_debug_level;
#define UMAD_SAY(...)                                                          \
	do {                                                                   \
		if (umad_debug_level > 0)                                      \
			fprintf(stderr, "ibumad: " __VA_ARGS__);               \
	} while (0)

#endif
