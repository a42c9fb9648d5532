/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter: limits, counters, its tables, and protection domains. */
#include "core/lock_order.h"
#include "core/adapter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/rand.h"
#include "core/ah.h"
#include "core/mr.h"

/* Upper bounds of the tables; most often memory runs out earlier. */
const struct vb_limits vb_limits = {
	/* a queue pair's index has 15 bits, shared by all adapters of a
	 * process */
	.max_qp = 32000,
	.max_qp_wr = 32768,
	.max_sge = VB_MAX_SGE,
	.max_inline = VB_MAX_INLINE,
	.max_cq = 65536,
	.max_cqe = 4194304,
	/* half of the 2^24 indices that a key can name */
	.max_mr = 1u << 23,
	.max_mw = 1u << 20,
	.max_pd = 65536,
	.max_ah = 65536,
	.max_srq = 32768,
	.max_srq_wr = 32768,
	.max_srq_sge = VB_MAX_SGE,
	.max_rd_atom = VB_MAX_RD_ATOM,
	.max_init_rd_atom = VB_MAX_RD_ATOM,
	.max_mr_size = INT64_MAX,
};

// clang-format off
static const char *const counter_names[] = {
	[CNT_DUPLICATE_REQUEST]	 = "duplicate_request",
	[CNT_OUT_OF_SEQUENCE]	 = "out_of_seq_request",
	[CNT_RCVD_RNR_ERR]	 = "rcvd_rnr_err",
	[CNT_SEND_RNR_ERR]	 = "send_rnr_err",
	[CNT_RCVD_SEQ_ERR]	 = "rcvd_seq_err",
	[CNT_ACK_DEFERRED]	 = "ack_deferred",
	[CNT_RETRY_EXCEEDED]	 = "retry_exceeded_err",
	[CNT_RNR_RETRY_EXCEEDED] = "retry_rnr_exceeded_err",
	[CNT_SEND_ERR]		 = "send_err",
	[CNT_RETRANSMITS]	 = "retransmitted_pkts",
	[CNT_TIMEOUTS]		 = "local_ack_timeout_err",
	[CNT_SENT_PKTS]		 = "sent_pkts",
	[CNT_RCVD_PKTS]		 = "rcvd_pkts",
	[CNT_NAK_INVALID]	 = "nak_invalid_request",
	[CNT_NAK_ACCESS]	 = "nak_remote_access",
	[CNT_NAK_OP]		 = "nak_remote_operation",
	[CNT_DROP_MALFORMED]	 = "dropped_malformed",
	[CNT_DROP_TRANSPORT]	 = "dropped_wrong_transport",
	[CNT_DROP_STATE]	 = "dropped_wrong_state",
	[CNT_DROP_ADDRESS]	 = "dropped_wrong_address",
	[CNT_DROP_PKEY]		 = "dropped_bad_pkey",
	[CNT_DROP_IP_ID]	 = "dropped_doubtful_icrc",
	[CNT_DROP_BAD_RESPONSE]	 = "dropped_bad_response",
	/* UC and UD send no NAKs, so the counters of dropped packets are the
	 * only trace of a fault. */
	[CNT_DROP_QKEY]		 = "dropped_bad_qkey",
	[CNT_DROP_NO_RECV]	 = "dropped_no_receive",
	[CNT_DROP_TOO_LONG]	 = "dropped_too_long",
	[CNT_DROP_BROKEN]	 = "dropped_incomplete",
	[CNT_DROP_REFUSED]	 = "dropped_not_allowed",
	/* the queue pair copied to or from another program of this host */
	[CNT_DROP_BUSY]		 = "dropped_qp_busy",
	[CNT_NEAR_REQUESTS]	 = "one_host_requests",
	[CNT_NEAR_BYTES]	 = "one_host_bytes",
};
// clang-format on
_Static_assert(VB_COUNT(counter_names) == CNT_COUNT, "a name for each");
_Static_assert(CNT_COUNT <= VB_COUNT(((struct vb_adapter *)0)->own_counters),
	       "a place for each");

const char *vb_counter_name(enum vb_counter c)
{
	return (unsigned)c < CNT_COUNT ? counter_names[c] : "unknown";
}

/* The id of the next protection domain that this process makes. Ids repeat
 * after 2^32 domains. 0: the first id was not chosen yet. */
static _Atomic uint32_t next_pd_id;

/* Returns the inverse of @odd modulo 2^24, by Newton's method: each step
 * doubles the number of correct bits, beginning with three. */
static uint32_t inverse24(uint32_t odd)
{
	uint32_t x = odd;

	for (int i = 0; i < 4; i++)
		x *= 2 - odd * x;
	return x & 0xffffff;
}

int vb_adapter_init(struct vb_adapter *a, const char *name)
{
	memset(a, 0, sizeof(*a));
	a->mrs = vb_rows_create(vb_limits.max_mr + vb_limits.max_mw,
				sizeof(struct vb_mr));
	if (!a->mrs)
		return -ENOMEM;
	snprintf(a->name, sizeof(a->name), "%s", name);
	a->counters = a->own_counters;
	a->key_mask = vb_rand32() & 0xffffff;
	a->key_mul = (vb_rand32() & 0xffffff) | 1;
	a->key_inv = inverse24(a->key_mul);
	/* Begin to number SRQs' lives at a random value: engine/xrc_forward.c
	 * may remember an SRQ from an earlier opening of the device, and must
	 * not take a new SRQ for that one. */
	a->xrc_lives = (uint64_t)vb_rand32() << 32;
	vb_mutex_init(&a->mr_lock, RANK_MR);
	vb_mutex_init(&a->xrc_lock, RANK_XRC);
	vb_mutex_init(&a->roster.lock, VB_RANK_LEAF);
	for (unsigned i = 0; i < VB_MAX_PORTS; i++) {
		vb_port_init(&a->ports[i]);
		a->ports[i].number = (uint8_t)(i + 1);
		a->ports[i].addressing = &vb_addressing_roce;
	}
	a->port_count = 1;
	return 0;
}

void vb_adapter_fini(struct vb_adapter *a)
{
	if (atomic_load(&a->n_mr))
		vb_log(LOG_ERROR,
		       "adapter %s: closed while %u regions are registered",
		       a->name, atomic_load(&a->n_mr));
	vb_rows_destroy(a->mrs);
	vb_stash_fini(&a->ooo_stash);
	if (a->xrc_srqs)
		vb_idtab_destroy(a->xrc_srqs);
	vb_mutex_fini(&a->mr_lock);
	vb_mutex_fini(&a->xrc_lock);
	vb_mutex_fini(&a->roster.lock);
	for (unsigned i = 0; i < VB_MAX_PORTS; i++)
		vb_port_fini(&a->ports[i]);
}

struct vb_port *vb_adapter_ethernet(struct vb_adapter *a)
{
	for (unsigned i = 0; i < a->port_count; i++)
		if (!vb_port_is_ib(&a->ports[i]))
			return &a->ports[i];
	return NULL;
}

bool vb_limit_take(_Atomic uint32_t *alive, uint32_t max)
{
	/* Relaxed: the count of objects orders no other memory access. */
	if (atomic_fetch_add_explicit(alive, 1, memory_order_relaxed) < max)
		return true;
	vb_limit_give(alive);
	return false;
}

void vb_limit_give(_Atomic uint32_t *alive)
{
	atomic_fetch_sub_explicit(alive, 1, memory_order_relaxed);
}

static uint32_t new_pd_id(void)
{
	uint32_t none = 0, id;

	if (atomic_load(&next_pd_id) == 0)
		atomic_compare_exchange_strong(&next_pd_id, &none,
					       vb_rand32() >> 1 | 1);
	id = atomic_fetch_add(&next_pd_id, 1);
	return id ? id : atomic_fetch_add(&next_pd_id, 1);
}

void vb_pd_after_fork(void)
{
	atomic_store(&next_pd_id, 0);
}
VB_FORGET_AT_FORK(vb_pd_after_fork)

int vb_pd_import(struct vb_adapter *a, uint32_t id,
		 const struct vb_pd_origin *from, struct vb_pd **pd)
{
	int rc = vb_pd_create(a, pd);

	if (rc)
		return rc;
	(*pd)->id = id;
	(*pd)->origin = *from;
	return 0;
}

int vb_pd_create(struct vb_adapter *a, struct vb_pd **out)
{
	struct vb_pd *pd;

	if (!vb_limit_take(&a->n_pd, vb_limits.max_pd))
		return -ENOMEM;
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		vb_limit_give(&a->n_pd);
		return -ENOMEM;
	}
	pd->adapter = a;
	pd->id = new_pd_id();
	pd->row = vb_roster_add(&a->roster,
				&(struct vb_roster_row){ .kind = ROSTER_PD });
	*out = pd;
	return 0;
}

static void end(struct vb_pd *pd)
{
	vb_roster_del(&pd->adapter->roster, ROSTER_PD, pd->row);
	vb_limit_give(&pd->adapter->n_pd);
	free(pd);
}

int vb_pd_destroy(struct vb_pd *pd)
{
	if (atomic_load(&pd->refs))
		return -EBUSY;
	end(pd);
	return 0;
}

/* A bit of vb_pd.refs, set when the domain is abandoned. When no object uses an
 * abandoned domain any more, refs is exactly this value, and vb_pd_put() then
 * frees the domain. */
#define ABANDONED (1u << 31)

void vb_pd_abandon(struct vb_pd *pd)
{
	if (atomic_fetch_add(&pd->refs, ABANDONED) == 0)
		end(pd);
}

void vb_pd_get(struct vb_pd *pd)
{
	atomic_fetch_add(&pd->refs, 1);
}

void vb_pd_put(struct vb_pd *pd)
{
	if (atomic_fetch_sub(&pd->refs, 1) == (ABANDONED | 1))
		end(pd);
}
