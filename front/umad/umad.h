/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibumad.so.3: InfiniBand's management datagrams for programs, with
 * rdma-core's symbols and versions. Adapters are those of VERBENA_DEVICES with
 * a port in an emulated fabric, which another process (fabricd) runs: ib0, ib1
 * and so on, each a node, and VPI adapters (vpi0), of which a port may be an
 * Ethernet port.
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

#include "core/why.h"
#include "engine/fabric_places.h"
#include "wire/umad_ipc.h"

#define UMAD_EXPORT __attribute__((visibility("default")))

/* Returns how many adapters VERBENA_DEVICES names. */
unsigned umad_places(void);
/* Writes adapter @index to @a. False: there is none. */
bool umad_adapter(unsigned index, struct vb_fabric_adapter *a);
/* Finds the adapter with the name @name ("ib0"); NULL: the first adapter.
 * False: there is no such adapter. */
bool umad_adapter_find(const char *name, struct vb_fabric_adapter *a);

/* ethernet.c: fill in @port, the Ethernet port @number of the adapter @ca, from
 * the files in /sys. 0 or -errno; -ENODEV: there is no such port. */
int umad_ethernet_port(const char *ca, unsigned number, umad_port_t *port);

/* Tell the user that @call on the adapter @name (NULL: the first) and its port
 * @port has failed with @rc, a negative errno. Does nothing if @rc is 0 or
 * more. Returns @rc. */
int umad_tell(int rc, const char *call, const char *name, int port);

/* The level of debugging output that umad_debug() has set. */
extern int umad_debug_level;
#define UMAD_SAY(...)                                                          \
	do {                                                                   \
		if (umad_debug_level > 0)                                      \
			fprintf(stderr, "ibumad: " __VA_ARGS__);               \
	} while (0)

#endif
