/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy between this program's memory and a peer's: announce the key in a
 * hazard, check it in the peer's registry, and let the kernel copy
 * (process_vm_readv and process_vm_writev, "cross-memory attach").
 */
#ifndef NEAR_CMA_H
#define NEAR_CMA_H

#include "core/mr.h"
#include "near/peer.h"

enum vb_cma {
	CMA_OK,
	CMA_LOCAL,  /* this program's key is invalid, or its page is missing */
	CMA_REMOTE, /* the key of the peer is invalid */
	/* The program of the peer has ended, or too many threads of this one
	 * wait for pages of it: try again later. */
	CMA_GONE,
	CMA_LAPSED, /* the queue pair of the peer has changed */
	/* The kernel forbids the access, because one of the two programs now
	 * runs as another user. */
	CMA_DENIED,
	/* The page of the peer is missing, or is memory that only the processor
	 * of its owner can access (a device's registers). */
	CMA_UNSEEN,
};

/* This program's memory for a copy: either registered memory (@sge) from byte
 * @offset on, or the plain bytes @plain. */
struct vb_local_side {
	struct vb_pd *pd;
	const struct vb_sge *sge;
	unsigned count;
	uint64_t offset;
	/* plain bytes that are used instead of @sge, unless NULL */
	void *plain;
	/* The peer already copies a part of the message, so the copy helper is
	 * not used. */
	bool helped;
};

/* Copy @len bytes, in pieces of 1 MiB; @put: from @local to @remote, else from
 * @remote to @local. Checks the keys of both sides. After a failure some bytes
 * may already be copied. The caller holds the drive lock of its queue pair, if
 * it has one. */
enum vb_cma vb_cma(struct vb_peer *p, const struct vb_local_side *local,
		   const struct vb_remote_side *remote, uint64_t len, bool put);

/* Let the kernel supply @len bytes of @local, behind the first @from, which
 * another program is about to read. False: some of them cannot be read. */
bool vb_cma_touch(const struct vb_local_side *local, uint64_t from,
		  uint64_t len);

#endif
