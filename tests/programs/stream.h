/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process on an RNIC, joined by librdmacm: what
 * ibv_modify_qp does for those of InfiniBand (rc.h). Whatever fails ends the
 * program.
 */
#ifndef TESTS_PROGRAMS_STREAM_H
#define TESTS_PROGRAMS_STREAM_H

#include <infiniband/verbs.h>
#include <stdbool.h>

bool stream_is_for(struct ibv_context *context); /* an RNIC? */
/* Once: an address of the device, to connect to. */
void stream_begin(const char *address);
/* Both are in INIT; then they are in RTS. @b takes as many READs at a time. */
void stream_connect(struct ibv_qp *a, struct ibv_qp *b, unsigned reads);
/* The ids of the last connection. */
void stream_drop(void);

#endif
