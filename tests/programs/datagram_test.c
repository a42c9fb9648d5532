/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams and address handles as a program sees them, one case in each
 * function: the bytes placed in receives, the fields of completions, refused
 * calls, and multicast groups.
 *
 *	datagram_test -d DEVICE [-6] [-g GROUP [-l|-s]]
 *
 * With -g only this: listen to GROUP (-l) until a datagram came, or send one
 * (-s).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define QKEY	 0x11223344u
#define OWN_QKEY 0x80000000u
#define ROOM	 8192
#define GRH	 40
#define DEPTH	 8
#define WAIT	 5.0
#define QUIET	 0.2

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
/* The bytes to send, and room for two RECVs. */
static uint8_t memory[4 * ROOM];
static const char *problem;

static void wrong(const char *what)
{
	if (!problem)
		problem = what;
}

static void expect(bool truth, const char *what)
{
	if (!truth)
		wrong(what);
}

static struct ibv_qp *make_qp_of(struct ibv_pd *pd, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	must(qp, "ibv_create_qp");
	return qp;
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp *qp = make_qp_of(device.pd, IBV_QPT_UD);

	rc_start_datagrams(qp, QKEY);
	return qp;
}

static struct ibv_ah_attr vector_to(const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = *gid,
			 .sgid_index = (uint8_t)device.gid_index,
			 .hop_limit = 4,
			 .traffic_class = 0x20 },
	};
}

static struct ibv_ah *make_ah(const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = vector_to(gid);
	struct ibv_ah *ah = ibv_create_ah(device.pd, &attr);

	must(ah, "ibv_create_ah");
	return ah;
}

/* Post a RECV of @len bytes with room @nth (0 or 1) of @memory. */
static void receive(struct ibv_qp *qp, unsigned nth, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)memory + (2 + nth) * ROOM, len,
			       mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = nth, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static int send_as(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		   uint32_t qkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)memory, len, mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 100,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND_WITH_IMM,
					.imm_data = htonl(0xabcd),
					.send_flags = IBV_SEND_SIGNALED,
					.wr.ud = { ah, qpn, qkey } };

	return ibv_post_send(qp, &wr, &bad);
}

static struct ibv_wc completes(enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };

	if (!rc_wait(cq, WAIT, &wc))
		wrong("a completion is missing");
	else if (wc.status != status)
		wrong(ibv_wc_status_str(wc.status));
	return wc;
}

/* Wait for the completions of a send and a receive, in any order. Returns the
 * receive's. */
static struct ibv_wc arrives(void)
{
	struct ibv_wc first = completes(IBV_WC_SUCCESS);
	struct ibv_wc second = completes(IBV_WC_SUCCESS);

	return first.opcode == IBV_WC_RECV ? first : second;
}

static void nothing_comes(void)
{
	struct ibv_wc wc;

	if (rc_wait(cq, QUIET, &wc))
		wrong("a completion too many");
}

static void is_in(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	expect(attr.qp_state == state, "the queue pair's state");
}

/* Is the device's GID one of RoCE v1, whose datagrams have a GRH? */
static bool is_v1(void)
{
	struct ibv_gid_entry e;

	must(!ibv_query_gid_ex(device.context, 1, (uint32_t)device.gid_index,
			       &e, 0),
	     "ibv_query_gid_ex");
	return e.gid_type == IBV_GID_TYPE_ROCE_V1;
}

/* Returns the l3 type that mlx5 reports, and that UCX uses: of RoCE v2, bit 3
 * is UDP, the low bits the IP version; of RoCE v1, 0. */
static uint8_t l3_type(void)
{
	if (is_v1())
		return 0;
	return options.family == 6 ? 0x9 : 0xa;
}

/* Cases. Each gets a sender, a receiver and an address handle to this host. */
static struct ibv_qp *from, *to;
static struct ibv_ah *ah;

static void what_arrives(void)
{
	struct ibv_wc wc;

	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY, 500), "post");
	wc = arrives();
	expect(wc.byte_len == 500 + GRH, "byte_len");
	expect(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM), "wc_flags");
	expect(ntohl(wc.imm_data) == 0xabcd, "imm_data");
	expect(wc.src_qp == from->qp_num, "src_qp");
	expect(wc.qp_num == to->qp_num, "qp_num");
	expect(!wc.slid && !wc.pkey_index && !wc.dlid_path_bits,
	       "slid, pkey_index, dlid_path_bits");
	expect(wc.sl == l3_type(), "sl: what the datagram came in");
	expect(!memcmp(memory + 2 * ROOM + GRH, memory, 500), "the bytes");
}

/* Where the network header is: programs also find it by its first 4 bits, the
 * IP version 6 or 4. */
static void where_the_header_lies(void)
{
	const uint8_t *at = memory + 2 * ROOM;
	const uint8_t *to_gid = device.gid.raw;

	memset(memory + 2 * ROOM, 0xff, GRH);
	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY, 8), "post");
	arrives();
	if (options.family == 6 || is_v1()) {
		expect(at[0] >> 4 == 6, "version");
		expect(!memcmp(at + 24, to_gid, 16), "dgid");
	} else {
		expect(at[0] >> 4 != 6 && at[20] == 0x45, "version");
		expect(!memcmp(at + 36, to_gid + 12, 4), "IPv4 address");
	}
}

static void of_an_extended_queue(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = DEPTH,
					    .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *ex = ibv_create_cq_ex(device.context, &init);
	struct ibv_cq *usual = cq;
	struct ibv_qp *qp;
	double end = seconds() + WAIT;

	must(ex, "ibv_create_cq_ex");
	cq = ibv_cq_ex_to_cq(ex);
	qp = make_qp();
	cq = usual;
	receive(qp, 0, ROOM);
	expect(!send_as(from, ah, qp->qp_num, QKEY, 8), "post");
	completes(IBV_WC_SUCCESS);
	while (ibv_start_poll(ex, &none))
		must(seconds() < end, "a completion");
	expect(ex->status == IBV_WC_SUCCESS, "status");
	expect(ibv_wc_read_sl(ex) == l3_type(), "sl");
	expect(ibv_wc_read_src_qp(ex) == from->qp_num, "src_qp");
	expect(ibv_wc_read_wc_flags(ex) == (IBV_WC_GRH | IBV_WC_WITH_IMM),
	       "wc_flags");
	expect(!ibv_wc_read_slid(ex) && !ibv_wc_read_dlid_path_bits(ex) &&
		       !ibv_wc_read_vendor_err(ex),
	       "slid, dlid_path_bits, vendor_err");
	ibv_end_poll(ex);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), "ibv_destroy_cq");
}

static void reply_by_its_header(void)
{
	struct ibv_grh *grh = (struct ibv_grh *)(memory + 2 * ROOM);
	struct ibv_ah_attr attr;
	struct ibv_ah *back;
	struct ibv_wc wc;

	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY, 8), "post");
	wc = arrives();
	must(!ibv_init_ah_from_wc(device.context, 1, &wc, grh, &attr),
	     "ibv_init_ah_from_wc");
	expect(attr.is_global && attr.port_num == 1, "is_global, port_num");
	expect(!memcmp(&attr.grh.dgid, &device.gid, 16), "dgid");
	expect(attr.grh.sgid_index == device.gid_index, "sgid_index");
	expect(attr.grh.traffic_class == 0x20, "traffic_class");
	expect(attr.sl == wc.sl, "sl");
	back = ibv_create_ah_from_wc(device.pd, &wc, grh, 1);
	must(back, "ibv_create_ah_from_wc");
	receive(from, 1, ROOM);
	expect(!send_as(to, back, wc.src_qp, QKEY, 8), "post back");
	expect(arrives().src_qp == to->qp_num, "src_qp of the reply");
	must(!ibv_destroy_ah(back), "ibv_destroy_ah");
	/* A GRH of ones and a wrong port make no address handle. */
	memset(grh, 0xff, sizeof(*grh));
	expect(ibv_init_ah_from_wc(device.context, 1, &wc, grh, &attr),
	       "a header of ones");
	expect(ibv_init_ah_from_wc(device.context, 2, &wc, grh, &attr),
	       "port 2");
}

static void handle_may_go_at_once(void)
{
	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY, 8), "post");
	must(!ibv_destroy_ah(ah), "ibv_destroy_ah");
	ah = NULL;
	arrives();
}

static void qkeys(void)
{
	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY + 1, 8), "post");
	completes(IBV_WC_SUCCESS);
	nothing_comes();
	/* The high bit means the sender's own Q_Key, which equals the
	 * receiver's. */
	expect(!send_as(from, ah, to->qp_num, OWN_QKEY, 8), "post");
	arrives();
}

static void what_does_not_fit(void)
{
	receive(to, 0, GRH + 99);
	expect(!send_as(from, ah, to->qp_num, QKEY, 100), "post");
	completes(IBV_WC_SUCCESS);
	nothing_comes();
	is_in(to, IBV_QPS_RTS);
	expect(!send_as(from, ah, to->qp_num, QKEY, 99), "post");
	arrives();
}

static void nobody_receives(void)
{
	expect(!send_as(from, ah, to->qp_num, QKEY, 100), "post");
	completes(IBV_WC_SUCCESS);
	nothing_comes();
	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY, 100), "post");
	arrives();
}

static void longer_than_the_mtu(void)
{
	uint32_t mtu = 128u << device.mtu;
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };

	expect(!send_as(from, ah, to->qp_num, QKEY, mtu + 1), "post");
	completes(IBV_WC_LOC_LEN_ERR);
	is_in(from, IBV_QPS_SQE);
	expect(!send_as(from, ah, to->qp_num, QKEY, 8), "post in SQE");
	completes(IBV_WC_WR_FLUSH_ERR);
	must(!ibv_modify_qp(from, &rts, IBV_QP_STATE), "SQE to RTS");
	receive(to, 0, ROOM);
	expect(!send_as(from, ah, to->qp_num, QKEY, mtu), "post");
	arrives();
}

static void refused_posts(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(device.context);
	struct ibv_ah_attr attr = vector_to(&device.gid);
	struct ibv_ah *other;
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE };

	must(pd, "ibv_alloc_pd");
	other = ibv_create_ah(pd, &attr);
	must(other, "ibv_create_ah");
	expect(send_as(from, NULL, to->qp_num, QKEY, 8) == EINVAL, "no AH");
	expect(send_as(from, other, to->qp_num, QKEY, 8) == EINVAL,
	       "an AH of another protection domain");
	expect(send_as(from, ah, 0x1000000, QKEY, 8) == EINVAL, "QPN");
	expect(ibv_post_send(from, &wr, &bad) == EINVAL, "WRITE");
	expect(ibv_dealloc_pd(pd) == EBUSY, "a PD with an AH");
	must(!ibv_destroy_ah(other), "ibv_destroy_ah");
	must(!ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	nothing_comes();
}

static void refused_handles(void)
{
	const struct ibv_ah_attr good = vector_to(&device.gid);
	struct ibv_ah_attr bad[4] = { good, good, good, good };

	bad[0].is_global = 0;
	bad[1].port_num = 2;
	bad[2].grh.sgid_index += 100;
	memset(&bad[3].grh.dgid, 0, sizeof(bad[3].grh.dgid));
	for (int i = 0; i < 4; i++) {
		errno = 0;
		expect(!ibv_create_ah(device.pd, &bad[i]) && errno == EINVAL,
		       "a bad address vector");
	}
}

static void bad_lkey(void)
{
	struct ibv_mr good = *mr;

	mr->lkey ^= 0x100;
	expect(!send_as(from, ah, to->qp_num, QKEY, 8), "post");
	mr->lkey = good.lkey;
	completes(IBV_WC_LOC_PROT_ERR);
	is_in(from, IBV_QPS_SQE);
}

static struct ibv_qp *connected_uc(unsigned access)
{
	struct ibv_qp *qp = make_qp_of(device.pd, IBV_QPT_UC);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = access,
				 .path_mtu = device.mtu,
				 .dest_qp_num = qp->qp_num,
				 .ah_attr = vector_to(&device.gid) };

	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	     "RESET to INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
	     "INIT to RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN),
	     "RTR to RTS");
	return qp;
}

/* WRITE on a UC queue pair that is its own peer; @lands: data must arrive. */
static void uc_write(unsigned access, uint32_t rkey, bool lands)
{
	struct ibv_qp *qp = connected_uc(access);
	struct ibv_sge sge = { (uintptr_t)memory, 3000, mr->lkey };
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = IBV_WR_RDMA_WRITE,
		       .send_flags = IBV_SEND_SIGNALED,
		       .wr.rdma = { (uintptr_t)memory + 3 * ROOM, rkey } };

	memset(memory + 3 * ROOM, 0, ROOM);
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	completes(IBV_WC_SUCCESS); /* UC reports no error of the responder */
	nothing_comes();
	expect(!memcmp(memory + 3 * ROOM, memory, 3000) == lands,
	       "what is in the region");
	is_in(qp, IBV_QPS_RTS);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void uc_writes(void)
{
	uc_write(IBV_ACCESS_REMOTE_WRITE, mr->rkey, true);
	uc_write(IBV_ACCESS_REMOTE_WRITE, mr->rkey ^ 0x100, false);
	uc_write(0, mr->rkey, false);
}

static union ibv_gid group_gid(const char *text)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

	if (inet_pton(AF_INET6, text, gid.raw) != 1)
		must(inet_pton(AF_INET, text, gid.raw + 12) == 1, "a group");
	return gid;
}

static union ibv_gid some_group(void)
{
	return group_gid(options.family == 6 ? "ff0e::7777" : "239.7.7.7");
}

static void groups(void)
{
	union ibv_gid group = some_group();
	struct ibv_ah *all = make_ah(&group);
	struct ibv_wc wc;

	must(!ibv_attach_mcast(to, &group, 0), "ibv_attach_mcast");
	must(!ibv_attach_mcast(to, &group, 0), "ibv_attach_mcast, again");
	must(!ibv_attach_mcast(from, &group, 0), "ibv_attach_mcast");
	receive(to, 0, ROOM);
	receive(from, 1, ROOM);
	expect(!send_as(from, all, 0xffffff, QKEY, 600), "post");
	for (int i = 0; i < 3; i++)
		wc = completes(IBV_WC_SUCCESS);
	(void)wc;
	nothing_comes();
	expect(!memcmp(memory + 2 * ROOM + GRH, memory, 600), "first copy");
	expect(!memcmp(memory + 3 * ROOM + GRH, memory, 600), "second copy");
	expect(ibv_destroy_qp(to) == EBUSY, "destroyed while attached");
	must(!ibv_detach_mcast(to, &group, 0), "ibv_detach_mcast");
	expect(ibv_detach_mcast(to, &group, 0) == EINVAL, "detached twice");
	receive(to, 0, ROOM);
	receive(from, 1, ROOM);
	expect(!send_as(from, all, 0xffffff, QKEY, 600), "post");
	expect(arrives().qp_num == from->qp_num, "who is still attached");
	nothing_comes();
	must(!ibv_detach_mcast(from, &group, 0), "ibv_detach_mcast");
	must(!ibv_destroy_ah(all), "ibv_destroy_ah");
}

static void refused_groups(void)
{
	union ibv_gid group = some_group();
	struct ibv_qp *rc = make_qp_of(device.pd, IBV_QPT_RC);

	expect(ibv_attach_mcast(rc, &group, 0) == EINVAL, "RC");
	expect(ibv_attach_mcast(to, &device.gid, 0) == EINVAL, "unicast");
	expect(ibv_detach_mcast(to, &group, 0) == EINVAL, "not attached");
	must(!ibv_destroy_qp(rc), "ibv_destroy_qp");
}

#define CASE(name)                                                             \
	{                                                                      \
#name, name                                                    \
	}
static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(what_arrives),
	CASE(where_the_header_lies),
	CASE(of_an_extended_queue),
	CASE(reply_by_its_header),
	CASE(handle_may_go_at_once),
	CASE(qkeys),
	CASE(what_does_not_fit),
	CASE(nobody_receives),
	CASE(longer_than_the_mtu),
	CASE(refused_posts),
	CASE(refused_handles),
	CASE(bad_lkey),
	CASE(uc_writes),
	CASE(groups),
	CASE(refused_groups),
};

static bool run_case(size_t i)
{
	problem = NULL;
	for (size_t n = 0; n < sizeof(memory); n++)
		memory[n] = (uint8_t)(n * 37 + n / 256 + i);
	cq = ibv_create_cq(device.context, 8 * DEPTH, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	from = make_qp();
	to = make_qp();
	ah = make_ah(&device.gid);
	cases[i].run();
	if (ah)
		must(!ibv_destroy_ah(ah), "ibv_destroy_ah");
	must(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	printf("%sok %s%s%s\n", problem ? "not " : "", cases[i].name,
	       problem ? ": " : "", problem ? problem : "");
	return !problem;
}

static int run_cases(void)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		failed += !run_case(i);
	return failed != 0;
}

/* Run as one of several processes: receive a datagram to the group, or send
 * some. */
static int one_of_group(const char *text, bool listens)
{
	union ibv_gid group = group_gid(text);
	struct ibv_wc wc;

	cq = ibv_create_cq(device.context, 8 * DEPTH, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	from = make_qp();
	ah = make_ah(&group);
	if (listens) {
		receive(from, 0, ROOM);
		must(!ibv_attach_mcast(from, &group, 0), "ibv_attach_mcast");
		puts("listening");
		fflush(stdout);
		must(rc_wait(cq, 10.0, &wc), "a datagram");
		puts("heard");
		return wc.byte_len != GRH + 600;
	}
	for (int i = 0; i < 5; i++) {
		must(!send_as(from, ah, 0xffffff, QKEY, 600), "post");
		must(rc_wait(cq, WAIT, &wc) && !wc.status, "sent");
		usleep(20000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *group = NULL;
	bool listens = true;
	int c;

	while ((c = getopt(argc, argv, "d:46g:ls")) != -1)
		switch (c) {
		case 'd':
			options.device = optarg;
			break;
		case 'g':
			group = optarg;
			break;
		case 'l':
		case 's':
			listens = c == 'l';
			break;
		default:
			options.family = c == '6' ? 6 : 4;
		}
	rc_open(&device, &options);
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(mr, "ibv_reg_mr");
	return group ? one_of_group(group, listens) : run_cases();
}
