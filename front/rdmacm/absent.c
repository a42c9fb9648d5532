/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that are promised, so that programs load, and not supported yet: they
 * refuse. docs/RDMACM.md lists them.
 */
#include "front/rdmacm/rdmacm.h"

#include <rdma/rdma_verbs.h>

struct rdma_addrinfo;
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);

#define ABSENT(name, type, ...)                                                \
	VB_EXPORT type name(__VA_ARGS__)                                       \
	{                                                                      \
		return rcm_fail(EOPNOTSUPP);                                   \
	}

ABSENT(rdma_query_addrinfo, int, struct rdma_cm_id *id,
       struct rdma_addrinfo **info)
ABSENT(rdma_resolve_addrinfo, int, struct rdma_cm_id *id, const char *node,
       const char *service, const struct rdma_addrinfo *hints)
#undef ABSENT
