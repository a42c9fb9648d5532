/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair of an IPoIB interface, on public verbs. */
#include "ipoib/port.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define SLOT	   (PORT_GRH + PORT_LONGEST)
#define PKEY_LIMIT 0x7fff /* a P_Key without its membership bit */
#define SEND_ID	   (1ull << 32)

/* --- creation and end --- */

static struct ibv_context *open_first(int *rc)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	*rc = -ENODEV;
	if (list && list[0]) {
		context = ibv_open_device(list[0]);
		*rc = context ? 0 : -errno;
	}
	if (list)
		ibv_free_device_list(list);
	return context;
}

static int open_objects(struct ipoib_port *p)
{
	size_t bytes = (size_t)(PORT_RECVS + PORT_SENDS) * SLOT;

	p->memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!p->memory)
		return -ENOMEM;
	memset(p->memory, 0, bytes);
	p->pd = ibv_alloc_pd(p->context);
	p->channel = ibv_create_comp_channel(p->context);
	if (!p->pd || !p->channel)
		return -errno;
	p->mr = ibv_reg_mr(p->pd, p->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	p->cq = ibv_create_cq(p->context, PORT_RECVS + PORT_SENDS, NULL,
			      p->channel, 0);
	return p->mr && p->cq ? 0 : -errno;
}

static int make_qp(struct ipoib_port *p)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = PORT_SENDS,
			 .max_recv_wr = PORT_RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	p->qp = ibv_create_qp(p->pd, &init);
	return p->qp ? 0 : -errno;
}

int ipoib_unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno
								       : 0;
}

int ipoib_port_open(struct ipoib_port *p, const char **what)
{
	int rc;

	*p = (struct ipoib_port){ .umad = -1, .agent = -1, .pkey_index = -1 };
	*what = "the adapter";
	p->context = open_first(&rc);
	if (rc)
		return rc;
	p->guid = be64toh(ibv_get_device_guid(p->context->device));
	*what = "the adapter's queue pair";
	rc = open_objects(p);
	if (rc == 0)
		rc = make_qp(p);
	if (rc == 0)
		rc = ipoib_unblock(p->context->async_fd);
	if (rc == 0)
		rc = ipoib_unblock(p->channel->fd);
	if (rc)
		return rc;
	*what = "the adapter's management datagrams";
	return ipoib_sa_open(p);
}

void ipoib_port_close(struct ipoib_port *p)
{
	ipoib_sa_close(p);
	if (p->qp)
		ibv_destroy_qp(p->qp);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	if (p->channel)
		ibv_destroy_comp_channel(p->channel);
	if (p->pd)
		ibv_dealloc_pd(p->pd);
	if (p->context)
		ibv_close_device(p->context);
	free(p->memory);
}

/* --- the state of the port and the queue pair --- */

static int find_pkey(const struct ipoib_port *p, unsigned count, uint16_t pkey)
{
	int limited = -1;

	for (unsigned i = 0; i < count; i++) {
		__be16 entry;

		if (ibv_query_pkey(p->context, PORT_NUMBER, (int)i, &entry))
			break;
		if ((be16toh(entry) & PKEY_LIMIT) != (pkey & PKEY_LIMIT))
			continue;
		if (be16toh(entry) & ~PKEY_LIMIT)
			return (int)i;
		limited = (int)i;
	}
	return limited;
}

int ipoib_port_refresh(struct ipoib_port *p, uint16_t pkey)
{
	struct ibv_port_attr port;
	union ibv_gid gid;
	int rc = ibv_query_port(p->context, PORT_NUMBER, &port);

	if (rc)
		return -rc;
	if (port.link_layer != IBV_LINK_LAYER_INFINIBAND)
		return -ENODEV;
	if (ibv_query_gid(p->context, PORT_NUMBER, 0, &gid))
		return -EIO;
	memcpy(p->gid.raw, gid.raw, 16);
	p->active = port.state == IBV_PORT_ACTIVE;
	p->lid = port.lid;
	p->sm_lid = port.sm_lid;
	p->sm_sl = port.sm_sl;
	p->pkey_index = find_pkey(p, port.pkey_tbl_len, pkey);
	return 0;
}

static int post_receive(struct ipoib_port *p, unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)p->memory + slot * (size_t)SLOT, SLOT,
			       p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	return -ibv_post_recv(p->qp, &wr, &bad);
}

static int move_to_rts(struct ipoib_port *p, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .pkey_index = (uint16_t)p->pkey_index,
				 .port_num = PORT_NUMBER,
				 .qkey = qkey };
	int rc = ibv_modify_qp(p->qp, &a,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_QKEY);

	for (unsigned i = 0; !rc && i < PORT_RECVS; i++)
		rc = -post_receive(p, i);
	a.qp_state = IBV_QPS_RTR;
	if (!rc)
		rc = ibv_modify_qp(p->qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (!rc)
		rc = ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -rc;
}

/* Reset the queue pair, since only that lets it change its P_Key index.
 * Requests that were under way get no completions. */
static int reset_qp(struct ipoib_port *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;
	int rc = ibv_modify_qp(p->qp, &a, IBV_QP_STATE);

	while (ibv_poll_cq(p->cq, 1, &wc) > 0)
		;
	p->put = p->posted = p->done = 0;
	p->started = false;
	return -rc;
}

int ipoib_port_start(struct ipoib_port *p, uint32_t qkey)
{
	int rc = 0;

	if (p->pkey_index < 0)
		return -ENOENT;
	if (p->started && p->qkey == qkey && p->started_index == p->pkey_index)
		return 0;
	if (p->started)
		rc = reset_qp(p);
	if (rc == 0)
		rc = move_to_rts(p, qkey);
	if (rc)
		return rc;
	p->started = true;
	p->started_index = p->pkey_index;
	p->qkey = qkey;
	ipoib_port_arm(p);
	return 0;
}

/* --- sends --- */

struct ibv_ah *ipoib_port_aim(struct ipoib_port *p,
			      const struct vb_ipoib_path *path,
			      const struct vb_gid *gid)
{
	struct ibv_ah_attr a = {
		.dlid = path->dlid,
		.sl = path->sl,
		.static_rate = path->rate,
		.is_global = path->global,
		.port_num = PORT_NUMBER,
		.grh = { .flow_label = path->flow_label,
			 .hop_limit = path->hop_limit,
			 .traffic_class = path->tclass },
	};

	memcpy(a.grh.dgid.raw, gid->raw, 16);
	return ibv_create_ah(p->pd, &a);
}

void ipoib_port_forget(struct ipoib_port *p, struct ibv_ah *ah)
{
	ipoib_port_flush(p);
	if (ah)
		ibv_destroy_ah(ah);
}

bool ipoib_port_has_room(const struct ipoib_port *p)
{
	return p->started && p->put - p->done < PORT_SENDS;
}

void ipoib_port_send(struct ipoib_port *p, struct ibv_ah *ah, uint32_t qpn,
		     const void *frame, size_t len)
{
	unsigned slot = p->put % PORT_SENDS;
	uint8_t *bytes = p->memory + (PORT_RECVS + slot) * (size_t)SLOT;

	if (!ipoib_port_has_room(p) || len > PORT_LONGEST) {
		p->dropped++;
		return;
	}
	memcpy(bytes, frame, len);
	p->sge[slot] = (struct ibv_sge){ (uintptr_t)bytes, (uint32_t)len,
					 p->mr->lkey };
	p->wr[slot] = (struct ibv_send_wr){
		.wr_id = SEND_ID | p->put,
		.sg_list = &p->sge[slot],
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah,
			   .remote_qpn = qpn,
			   .remote_qkey = p->qkey },
	};
	if (p->put != p->posted)
		p->wr[(p->put - 1) % PORT_SENDS].next = &p->wr[slot];
	p->put++;
}

/* Only the last send of a chain is signaled: its completion says that the
 * earlier sends of the chain have completed, too. */
void ipoib_port_flush(struct ipoib_port *p)
{
	struct ibv_send_wr *first = &p->wr[p->posted % PORT_SENDS], *bad;

	if (p->put == p->posted)
		return;
	p->wr[(p->put - 1) % PORT_SENDS].send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(p->qp, first, &bad))
		p->put = (uint32_t)bad->wr_id;
	p->posted = p->put;
}

/* --- completions --- */

static void take_receive(struct ipoib_port *p, const struct ibv_wc *wc,
			 ipoib_port_take *take, void *arg)
{
	const uint8_t *bytes = p->memory + wc->wr_id * SLOT;

	if (wc->byte_len > PORT_GRH)
		take(arg, wc, bytes + PORT_GRH, wc->byte_len - PORT_GRH);
	(void)post_receive(p, (unsigned)wc->wr_id);
}

int ipoib_port_poll(struct ipoib_port *p, ipoib_port_take *take, void *arg)
{
	struct ibv_wc wc[32];
	int total = 0, n;

	do {
		n = ibv_poll_cq(p->cq, VB_COUNT(wc), wc);
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				return -EIO;
			if (wc[i].wr_id & SEND_ID)
				p->done = (uint32_t)wc[i].wr_id + 1;
			else
				take_receive(p, &wc[i], take, arg);
		}
		total += n > 0 ? n : 0;
	} while (n == VB_COUNT(wc) && total < PORT_RECVS);
	return n < 0 ? -EIO : total;
}

void ipoib_port_arm(struct ipoib_port *p)
{
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(p->channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	(void)ibv_req_notify_cq(p->cq, 0);
}
