/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process on an RNIC, connected by librdmacm, where for
 * InfiniBand devices ibv_modify_qp() is used (rc.h). Any failure ends the
 * program.
 */
#ifndef TESTS_PROGRAMS_STREAM_H
#define TESTS_PROGRAMS_STREAM_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Does the context's device need this file: is it an RNIC? */
bool stream_is_for(struct ibv_context *context);
/* Prepare connections to @address, an IP address of the device; call once. */
void stream_begin(const char *address);
/* Connect two queue pairs, which are in INIT and afterwards in RTS. @b permits
 * @reads READs at a time. */
void stream_connect(struct ibv_qp *a, struct ibv_qp *b, unsigned reads);
/* Destroy the rdma_cm ids of the last connection. */
void stream_drop(void);

#endif
