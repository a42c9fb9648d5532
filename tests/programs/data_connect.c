/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates both memory areas, and connects to the peer's program. */
#include "data_test.h"

static void make_area(struct area *a)
{
	struct rng r = { run.seed };

	a->is = aligned_alloc(4096, AREA);
	a->must_be = aligned_alloc(4096, AREA);
	must(a->is && a->must_be, "memory");
	rng_fill(&r, a->is, AREA);
	memcpy(a->must_be, a->is, AREA);
	a->mr = ibv_reg_mr(run.device.pd, a->is, AREA, RC_ALL_ACCESS);
	must(a->mr, "ibv_reg_mr");
}

static struct sockaddr_storage cm_address(void)
{
	struct sockaddr_storage a = { .ss_family = AF_INET6 };
	struct addrinfo *to;

	if (run.client) {
		if (getaddrinfo(run.rc.host, NULL, NULL, &to))
			die("no host %s", run.rc.host);
		memcpy(&a, to->ai_addr, to->ai_addrlen);
		freeaddrinfo(to);
	}
	/* sin_port and sin6_port are at the same offset of their structs. */
	((struct sockaddr_in *)&a)->sin_port =
		htons((uint16_t)(run.rc.port + 1));
	return a;
}

static void listen_for_peer(void)
{
	struct sockaddr_storage a = cm_address();

	must(!rdma_create_id(NULL, &run.listener, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_bind_addr(run.listener, (struct sockaddr *)&a),
	     "rdma_bind_addr");
	must(!rdma_listen(run.listener, 1), "rdma_listen");
}

/* Connect by librdmacm a queue pair that this program makes itself; the id only
 * has the queue pair's number. */
static void connect_by_cm(void)
{
	struct rdma_conn_param p = { .qp_num = run.qp->qp_num,
				     .responder_resources = 16,
				     .initiator_depth = 16 };
	struct sockaddr_storage a = cm_address();

	must(!rc_to_init(run.qp, RC_ALL_ACCESS), "RESET to INIT");
	if (!run.client) {
		must(!rdma_get_request(run.listener, &run.id),
		     "rdma_get_request");
		must(!rdma_accept(run.id, &p), "rdma_accept");
		return;
	}
	must(!rdma_create_id(NULL, &run.id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(run.id, NULL, (struct sockaddr *)&a, 2000) &&
		     !rdma_resolve_route(run.id, 2000),
	     "rdma_resolve");
	must(!rdma_connect(run.id, &p), "rdma_connect");
}

static void agree(void)
{
	struct hello {
		uint64_t seed, in;
		uint32_t rkey, max_len;
		struct rc_address address;
	} me, peer;
	/* The first PSN is near the end of 24 bits, so that PSNs soon wrap. */
	uint32_t psn =
		~(uint32_t)((run.seed ^ (uint64_t)getpid() * 7919) & 0x3ff) &
		0xffffff;

	if (run.client) {
		tcp_send(run.tcp, &run.seed, sizeof(run.seed));
		tcp_send(run.tcp, &run.max_len, sizeof(run.max_len));
	} else {
		tcp_recv(run.tcp, &run.seed, sizeof(run.seed));
		tcp_recv(run.tcp, &run.max_len, sizeof(run.max_len));
	}
	make_area(&run.in);
	make_area(&run.out);
	me = (struct hello){ .in = (uintptr_t)run.in.is,
			     .rkey = run.in.mr->rkey,
			     .address = rc_address(&run.device, run.qp, psn) };
	tcp_swap(run.tcp, &me, &peer, sizeof(me));
	run.peer_in = peer.in;
	run.peer_rkey = peer.rkey;
	if (peer.address.mtu < run.device.mtu)
		run.device.mtu = peer.address.mtu;
	if (run.by_cm)
		connect_by_cm();
	else
		rc_connect(&run.device, run.qp, &run.rc, psn, &peer.address);
	tcp_barrier(run.tcp);
}

void set_up(void)
{
	rc_open(&run.device, &run.rc);
	run.channel = ibv_create_comp_channel(run.device.context);
	must(run.channel, "ibv_create_comp_channel");
	run.cq = ibv_create_cq(run.device.context, 4 * MAX_OPS, NULL,
			       run.channel, 0);
	must(run.cq, "ibv_create_cq");
	run.qp = rc_qp(&run.device, run.cq, 2 * MAX_OPS, most_sges(),
		       run.with_siw ? 0 : INLINE);
	run.scratch = malloc(AREA);
	must(run.scratch, "memory");
	if (run.by_cm) {
		run.flush = ibv_reg_mr(run.device.pd, &run.flushed,
				       sizeof(run.flushed), RC_ALL_ACCESS);
		must(run.flush, "ibv_reg_mr");
	}
	if (run.by_cm && !run.client)
		listen_for_peer();
	run.tcp = tcp_meet(&run.rc);
	agree();
}

void tear_down(void)
{
	ibv_ack_cq_events(run.cq, run.unacked);
	if (run.by_cm) {
		must(!rdma_destroy_id(run.id), "rdma_destroy_id");
		if (run.listener)
			must(!rdma_destroy_id(run.listener), "rdma_destroy_id");
		must(!ibv_dereg_mr(run.flush), "ibv_dereg_mr");
	}
	must(!ibv_destroy_qp(run.qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(run.cq), "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(run.channel), "destroy channel");
	must(!ibv_dereg_mr(run.in.mr), "ibv_dereg_mr");
	must(!ibv_dereg_mr(run.out.mr), "ibv_dereg_mr");
	rc_close(&run.device);
}
