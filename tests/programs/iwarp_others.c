/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: children of fork, other programs of this host, and features that an
 * RNIC lacks. */
#include "iwarp_test.h"

pid_t child_of(void (*does)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	alarm(10);
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	does();
	if (problem[0])
		fprintf(stderr, "a child: %s\n", problem);
	_exit(problem[0] != '\0');
}

void expect_child(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		wrong("no child");
	else if (status)
		wrong("a child of fork ended with 0x%x", status);
}

/* In a child of fork, an id of the parent has no stream. */
static void child_that_destroys(void)
{
	struct side inherited[] = { a, b };

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	pd = NULL;
	address.sin_port = htons(PORT + 1);
	listener = listen_at(PORT + 1, 16);
	connected();
	for (int i = 0; i < 2; i++)
		if (rdma_destroy_id(inherited[i].id))
			wrong("rdma_destroy_id of what was inherited");
	rdma_disconnect(a.id);
	expect_end();
}

void ids_inherited_by_fork(void)
{
	connected();
	expect_child(child_of(child_that_destroys));
	post_recv(&b, 4096);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

/* Pipe on which a child of fork waits for the parent. Until then the child
 * lives, but must not keep the parent's port in use. */
static int until_told[2];

static void child_that_waits(void)
{
	char word;

	close(until_told[1]);
	(void)!read(until_told[0], &word, 1);
}

void ports_inherited_by_fork(void)
{
	struct rdma_cm_id *id = listen_at(PORT + 2, 4);
	pid_t pid;

	must(!pipe(until_told), "pipe");
	pid = child_of(child_that_waits);
	rdma_destroy_id(id);
	sleep(1); /* wait until the closed listener has released the port */
	rdma_destroy_id(listen_at(PORT + 2, 4));
	close(until_told[0]);
	close(until_told[1]);
	expect_child(pid);
}

/* Read exactly @len bytes from the TCP socket @fd. */
static void hear(int fd, void *bytes, size_t len)
{
	if (recv(fd, bytes, len, MSG_WAITALL) != (ssize_t)len)
		wrong("no %zu bytes came", len);
}

/*
 * A peer of this host that is no Verbena, but copies the request's bits into
 * its reply, as Linux's siw does. The connection must use TCP, and neither side
 * may send a message that only a Verbena understands.
 */
void stranger_of_this_host(void)
{
	struct rdma_conn_param param = params(NULL);
	struct timeval limit = { .tv_sec = 3 };
	uint8_t frame[24], fpdu[4500];
	struct sockaddr_in at;
	int fd = listen_without_mpa(&at), peer;

	begin_connect(&a, &at, &param);
	peer = accept(fd, NULL, NULL);
	setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	hear(peer, frame, sizeof(frame));
	if ((frame[16] & 15) != goes_near())
		wrong("flags 0x%02x in the request", frame[16]);
	memcpy(frame, "MPA ID Rep Frame", 16);
	must(send(peer, frame, sizeof(frame), 0) == sizeof(frame), "send");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	/* The connecting side's first FPDU is an RTR without payload. */
	hear(peer, fpdu, 2 + 14 + 4);
	if (fpdu[1] != 14 || (fpdu[3] & 15) != 0)
		wrong("it begins with RDMAP opcode %u", fpdu[3] & 15);
	hear(peer, fpdu, 2 + 18 + 4096 + 4);
	if ((fpdu[0] << 8 | fpdu[1]) != 18 + 4096 || (fpdu[3] & 15) != 3)
		wrong("RDMAP opcode %u, and not the SEND", fpdu[3] & 15);
	close(peer);
	close(fd);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
}

/* A peer that claims to be a Verbena, but never sends its card. */
void stranger_that_pretends(void)
{
	struct rdma_conn_param param = params(NULL);
	struct sockaddr_in at;
	int fd = listen_without_mpa(&at), peer;
	uint8_t frame[24];

	begin_connect(&a, &at, &param);
	peer = accept(fd, NULL, NULL);
	hear(peer, frame, sizeof(frame));
	memcpy(frame, "MPA ID Rep Frame", 16);
	frame[16] = 0x52;
	must(send(peer, frame, sizeof(frame), 0) == sizeof(frame), "send");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	close(peer);
	close(fd);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
}

/* A RoCE device that is opened after an iWARP device is in use. */
void roce_device_opened_later(void)
{
	struct rc_options o = RC_OPTIONS;
	struct rc_address to;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.sg_list = &sge,
					.num_sge = 1 };
	char bytes[8192] = "from here to there";
	struct rc_device d;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	connected();
	o.device = getenv("ROCE_DEVICE");
	if (!o.device)
		return;
	rc_open(&d, &o);
	cq = ibv_create_cq(d.context, 16, NULL, NULL, 0);
	mr = ibv_reg_mr(d.pd, bytes, sizeof(bytes), RC_ALL_ACCESS);
	must(cq && mr, "a completion queue, a region");
	qp = rc_qp(&d, cq, 4, 1, 0);
	to = rc_address(&d, qp, 7);
	rc_connect(&d, qp, &o, 7, &to);
	sge = (struct ibv_sge){ (uintptr_t)bytes, 4096, mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)bytes + 4096;
	wr.wr.rdma.rkey = mr->rkey;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	if (!rc_wait(cq, WAIT, &wc) || wc.status != IBV_WC_SUCCESS ||
	    memcmp(bytes, bytes + 4096, 4096))
		wrong("RoCE: status %d", (int)wc.status);
	post_recv(&b, 4096);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	must(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq),
	     "to destroy");
	rc_close(&d);
}

/* Features that RoCE has and iWARP lacks; errno is that of Linux's siw. */
static void refuses(bool made, const char *what)
{
	if (made || errno != EOPNOTSUPP)
		wrong("%s: errno %d", what, made ? 0 : errno);
	errno = 0;
}

static void queue_pairs_an_rnic_has_not(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr opened = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = a.id->qp->qp_num,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_UC,
						  IBV_QPT_RAW_PACKET,
						  IBV_QPT_XRC_SEND,
						  IBV_QPT_XRC_RECV };
	char what[32];

	attr.send_cq = attr.recv_cq = a.cq;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.qp_type = types[i];
		snprintf(what, sizeof(what), "queue pair type %d", types[i]);
		refuses(ibv_create_qp(pd, &attr), what);
	}
	refuses(ibv_create_qp_ex(verbs, &target), "an XRC target");
	refuses(ibv_open_qp(verbs, &opened), "an XRC target opened");
}

static void shared_queues_an_rnic_has_not(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ,
		.pd = pd,
		.cq = a.cq,
	};

	attr.srq_type = IBV_SRQT_XRC;
	refuses(ibv_create_srq_ex(verbs, &attr), "an XRC shared queue");
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	attr.tm_cap = (struct ibv_tm_cap){ .max_num_tags = 1, .max_ops = 1 };
	attr.srq_type = IBV_SRQT_TM;
	refuses(ibv_create_srq_ex(verbs, &attr), "tag matching");
}

static void addresses_an_rnic_has_not(void)
{
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = 3,
					   .fd = -1,
					   .oflags = 0100 };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ,
				       .max_wr = 1,
				       .max_sge = 1,
				       .pd = pd,
				       .cq = a.cq };
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_SNIFFER,
				      .size = sizeof(flow),
				      .port = 1 };
	union ibv_gid group = { .raw = { 0xff, 0x12 } };
	__be16 pkey;

	refuses(ibv_create_ah(pd, &ah), "an address handle");
	refuses(ibv_create_ah_from_wc(pd, &wc, NULL, 1), "a way back");
	refuses(ibv_open_xrcd(verbs, &xrcd), "an XRC domain");
	refuses(ibv_create_wq(verbs, &wq), "a work queue");
	refuses(ibv_create_flow(a.id->qp, &flow), "a flow");
	errno = ibv_attach_mcast(a.id->qp, &group, 0);
	refuses(false, "a multicast group");
	errno = ibv_detach_mcast(a.id->qp, &group, 0);
	refuses(false, "to leave a multicast group");
	if (ibv_query_pkey(verbs, 1, 0, &pkey) != -1 || errno != EINVAL)
		wrong("a P_Key");
}

void what_an_rnic_has_not(void)
{
	connected();
	queue_pairs_an_rnic_has_not();
	shared_queues_an_rnic_has_not();
	addresses_an_rnic_has_not();
}

/* Features that iWARP lacks, requested by librdmacm's calls on an id. */
void what_ids_have_not(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC,
	};
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_XRC_SEND,
						  IBV_QPT_XRC_RECV };
	struct rdma_cm_id *id;
	char what[32];

	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000),
	     "rdma_resolve_addr");
	expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.qp_type = types[i];
		snprintf(what, sizeof(what), "an id's type %d", types[i]);
		refuses(!rdma_create_qp(id, NULL, &attr), what);
	}
	refuses(!rdma_create_srq_ex(id, &srq), "an id's XRC shared queue");
	if (!rdma_join_multicast(id, (struct sockaddr *)&address, NULL) ||
	    errno != EINVAL)
		wrong("an id's group: errno %d", errno);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* Datagrams use a RoCE device on the same interface, if there is one. */
static void try_datagrams(enum rdma_port_space space)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, at = address;
	bool roce = getenv("ROCE_DEVICE");
	struct rdma_cm_id *id[3];

	at.sin_port = 0;
	for (int i = 0; i < 3; i++)
		must(!rdma_create_id(channel, &id[i], NULL, space),
		     "rdma_create_id");
	if (roce) {
		must(!rdma_bind_addr(id[0], (struct sockaddr *)&at) &&
			     !rdma_bind_addr(id[1], (struct sockaddr *)&any) &&
			     !rdma_resolve_addr(id[2], NULL,
						(struct sockaddr *)&address,
						1000),
		     "datagrams by RoCE");
		expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	} else {
		refuses(!rdma_bind_addr(id[0], (struct sockaddr *)&at),
			"to bind for datagrams");
		refuses(!rdma_bind_addr(id[1], (struct sockaddr *)&any),
			"to bind anywhere for datagrams");
		must(!rdma_resolve_addr(id[2], NULL,
					(struct sockaddr *)&address, 1000),
		     "rdma_resolve_addr");
		if (expect_event(RDMA_CM_EVENT_ADDR_ERROR) &&
		    event.status != -EOPNOTSUPP)
			wrong("to resolve for datagrams: %d", event.status);
	}
	for (int i = 0; i < 3; i++)
		must(!rdma_destroy_id(id[i]), "rdma_destroy_id");
}

void datagrams_by_librdmacm(void)
{
	try_datagrams(RDMA_PS_UDP);
	try_datagrams(RDMA_PS_IPOIB);
}

/* An iWARP device has no AF_IB addresses, which are for InfiniBand. */
void addresses_of_infiniband(void)
{
	struct sockaddr_ib any = { .sib_family = AF_IB };
	struct rdma_cm_id *id;
	int rc;

	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	rc = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (getenv("ROCE_DEVICE") ? rc : !rc || errno != ENODEV)
		wrong("to bind: errno %d", rc ? errno : 0);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}
