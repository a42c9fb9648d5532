/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile neighbour of an IPoIB interface in connected mode: it asks for
 * connections without the private data of RFC 4755, and for unreliable
 * connections, makes more connections than it may have, and sends frames that
 * are no packets.
 *
 * ipoib_callers_test GID QPN OWN-GID: the GID of the interface's port, the
 * number of the interface's datagram queue pair, and the GID of this program's
 * port.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/must.h"

#define SERVICE UINT64_C(0x1000000000000000)
#define CALLS	20
#define KEPT	4 /* VB_CALLERS_OF_PORT of ipoib/caller.h */
#define LONGEST 65536
#define WAIT_MS 5000
/* reason of a REJ: invalid transport service type (IBA 12.6.7.2) */
#define REJ_TRANSPORT 9

static struct sockaddr_ib address(const char *gid, uint64_t service)
{
	struct sockaddr_ib a = { .sib_family = AF_IB,
				 .sib_pkey = htobe16(0xffff),
				 .sib_sid = htobe64(service),
				 .sib_sid_mask =
					 htobe64(service ? UINT64_MAX : 0) };

	MUST(inet_pton(AF_INET6, gid, &a.sib_addr) == 1);
	return a;
}

/* Returns a connected id; NULL: the interface has refused the call. */
static struct rdma_cm_id *call(char **argv, const void *data, uint8_t bytes)
{
	struct sockaddr_ib from = address(argv[3], 0);
	struct sockaddr_ib to =
		address(argv[1], SERVICE | strtoul(argv[2], NULL, 0));
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { 8, 1, 1, 1, 0 } };
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = bytes,
					 .retry_count = 7,
					 .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	MUST(!rdma_create_id(NULL, &id, NULL, RDMA_PS_IB));
	MUST(!rdma_resolve_addr(id, (struct sockaddr *)&from,
				(struct sockaddr *)&to, 2000));
	MUST(!rdma_resolve_route(id, 2000));
	MUST(!rdma_create_qp(id, NULL, &init));
	if (rdma_connect(id, &param) == 0)
		return id;
	MUST(errno == ECONNREFUSED);
	rdma_destroy_qp(id);
	MUST(!rdma_destroy_id(id));
	return NULL;
}

/* RFC 4755 permits unreliable connections, too, but this interface has none:
 * the REJ of the connection manager has that reason. */
static void call_unreliably(char **argv)
{
	const uint32_t data[2] = { htobe32(77), htobe32(65524) };
	struct sockaddr_ib from = address(argv[3], 0);
	struct sockaddr_ib to =
		address(argv[1], SERVICE | strtoul(argv[2], NULL, 0));
	struct rdma_addrinfo how = { .ai_family = AF_IB,
				     .ai_qp_type = IBV_QPT_UC,
				     .ai_port_space = RDMA_PS_IB,
				     .ai_src_len = sizeof(from),
				     .ai_dst_len = sizeof(to),
				     .ai_src_addr = (struct sockaddr *)&from,
				     .ai_dst_addr = (struct sockaddr *)&to };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UC,
					 .cap = { 8, 1, 1, 1, 0 } };
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = sizeof(data) };
	struct rdma_cm_id *id;

	MUST(!rdma_create_ep(&id, &how, NULL, &init));
	MUST(rdma_connect(id, &param) && errno == ECONNREFUSED);
	MUST(id->event && id->event->status == REJ_TRANSPORT);
	rdma_destroy_ep(id);
}

static struct rdma_cm_id *call_as(char **argv, uint32_t qpn, uint32_t mtu)
{
	const uint32_t data[2] = { htobe32(qpn), htobe32(mtu) };

	return call(argv, data, sizeof(data));
}

/* Does the interface end the connection within @ms? */
static bool has_ended(struct rdma_cm_id *id, int ms)
{
	struct pollfd p = { .fd = id->channel->fd, .events = POLLIN };
	struct rdma_cm_event *e;
	bool ended;

	if (poll(&p, 1, ms) <= 0)
		return false;
	MUST(!rdma_get_cm_event(id->channel, &e));
	ended = e->event == RDMA_CM_EVENT_DISCONNECTED;
	rdma_ack_cm_event(e);
	return ended;
}

/* Send frames that are no packets. Each arrives, and does no harm. */
static void send_no_packets(struct rdma_cm_id *id)
{
	static const size_t lengths[] = { 0, 1, 3, 4, 5, 24, 60, LONGEST };
	static const uint8_t heads[][4] = {
		{ 0 }, { 0x08, 0x00 }, { 0x08, 0x06 }, { 0x86, 0xdd }
	};
	static uint8_t bytes[LONGEST];
	struct ibv_mr *mr = rdma_reg_msgs(id, bytes, sizeof(bytes));
	struct ibv_wc wc;

	MUST(mr);
	for (unsigned i = 0; i < 4 * sizeof(lengths) / sizeof(*lengths); i++) {
		memset(bytes, (int)(i * 73), sizeof(bytes));
		memcpy(bytes, heads[i % 4], 4);
		bytes[4] = i % 2 ? 0x45 : 0x60;
		MUST(!rdma_post_send(id, NULL, bytes, lengths[i / 4], mr,
				     IBV_SEND_SIGNALED));
		MUST(rdma_get_send_comp(id, &wc) == 1);
		MUST(wc.status == IBV_WC_SUCCESS);
	}
	MUST(!rdma_dereg_mr(mr));
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *ids[CALLS];
	unsigned ended = 0;

	MUST(argc == 4);
	call_unreliably(argv);
	MUST(!call(argv, NULL, 0));
	MUST(!call_as(argv, 77, 0));
	MUST(!call_as(argv, 77, 4));
	for (unsigned i = 0; i < CALLS; i++) {
		ids[i] = call_as(argv, 100 + i, 65524);
		MUST(ids[i]);
	}
	for (unsigned i = 0; i < CALLS - KEPT; i++)
		ended += has_ended(ids[i], WAIT_MS);
	MUST(ended == CALLS - KEPT);
	for (unsigned i = CALLS - KEPT; i < CALLS; i++)
		MUST(!has_ended(ids[i], 0));
	send_no_packets(ids[CALLS - 1]);
	/* the same queue pair again: the interface forgets the old one */
	ids[0] = call_as(argv, 100 + CALLS - 1, 65524);
	MUST(ids[0] && has_ended(ids[CALLS - 1], WAIT_MS));
	printf("%u of %u connections ended\n", ended, CALLS);
	return 0;
}
