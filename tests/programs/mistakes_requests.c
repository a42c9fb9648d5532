/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes that make a work request fail: at the peer, on this side, or on the
 * way. */
#include <arpa/inet.h>

#include "mistakes.h"

#define QP   "^verbena: qp 0x[0-9a-f]+: "

const char *nobody;
unsigned where = ON_IB;

void fails_with(struct side *s, enum ibv_wc_status status, unsigned code)
{
	double until = seconds() + WAIT;
	struct ibv_wc wc;

	do
		if (!rc_wait(s->cq, WAIT, &wc)) {
			wrong("no completion");
			return;
		}
	while (wc.status == IBV_WC_SUCCESS && seconds() < until);
	if (wc.status != status)
		wrong("%s, must be: %s", ibv_wc_status_str(wc.status),
		      ibv_wc_status_str(status));
	if (wc.vendor_err != code)
		wrong("vendor_err %u, must be %u", wc.vendor_err, code);
}

/* Side a posts @wr, which fails at side b. Over TCP a WRITE is complete when
 * its bytes were sent, so its completion has no error. */
static void fails_there(struct ibv_send_wr *wr, enum ibv_wc_status status,
			unsigned code)
{
	must(!post(&a, wr), "post");
	if (may_have_left(wr, status))
		becomes(&a, IBV_QPS_ERR);
	else
		fails_with(&a, status, code);
	becomes(&b, IBV_QPS_ERR);
}

static void write_to(long offset, uint32_t rkey)
{
	struct ibv_sge sge = piece(&a, 0, 16);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, offset), rkey);

	fails_there(&wr, IBV_WC_REM_ACCESS_ERR, 201);
}

static void wrong_rkey(void)
{
	connected();
	write_to(0, b.mr->rkey ^ 0x55555500);
}

static void write_past(void)
{
	connected();
	write_to(BYTES - 8, b.mr->rkey);
}

static void write_elsewhere(void)
{
	connected();
	write_to(-4096, b.mr->rkey);
}

static void read_past(void)
{
	struct ibv_sge sge = piece(&a, 0, 64);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, BYTES - 60), b.mr->rkey);

	connected();
	fails_there(&wr, IBV_WC_REM_ACCESS_ERR, 201);
}

static void region_for_reading(void)
{
	struct ibv_mr *mr = ibv_reg_mr(device.pd, b.memory + BYTES, BYTES,
				       IBV_ACCESS_REMOTE_READ);

	must(mr, "ibv_reg_mr");
	connected();
	write_to(0, mr->rkey);
}

static struct ibv_mr *of_other_domain(struct side *s)
{
	struct ibv_pd *pd = ibv_alloc_pd(device.context);
	struct ibv_mr *mr;

	must(pd, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, s->memory + BYTES, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	return mr;
}

static void rkey_of_domain(void)
{
	connected();
	write_to(0, of_other_domain(&b)->rkey);
}

static void rkey_after_dereg(void)
{
	uint32_t rkey = b.mr->rkey;

	connected();
	must(!ibv_dereg_mr(b.mr), "ibv_dereg_mr");
	write_to(0, rkey);
}

static void qp_for_reading(void)
{
	struct ibv_sge sge = piece(&a, 0, 16);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	connect_with(IBV_ACCESS_REMOTE_READ, 3, 3);
	fails_there(&wr, rnic ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR,
		    rnic ? 201 : 202);
}

static void odd_atomic(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge,
				       at(&b, 4), b.mr->rkey);

	connected();
	fails_there(&wr, IBV_WC_REM_INV_REQ_ERR, 202);
}

static void target_unmapped(void)
{
	connected();
	must(!munmap(b.memory + BYTES, BYTES), "munmap");
	write_to(4096, b.mr->rkey);
}

static void send_bytes(uint32_t len, enum ibv_wc_status status, unsigned code)
{
	struct ibv_sge sge = piece(&a, 0, len);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	fails_there(&wr, status, code);
}

static void receive_short(void)
{
	struct ibv_sge sge = piece(&b, 0, 32);

	connected();
	must(!receive(&b, &sge, 1), "ibv_post_recv");
	send_bytes(64, IBV_WC_REM_INV_REQ_ERR, 202);
	fails_with(&b, IBV_WC_LOC_LEN_ERR, 108);
}

static void receive_lkey(void)
{
	struct ibv_sge sge = piece(&b, 0, 64);

	connected();
	sge.lkey ^= 0x55555500;
	must(!receive(&b, &sge, 1), "ibv_post_recv");
	send_bytes(64, IBV_WC_REM_OP_ERR, 203);
	fails_with(&b, IBV_WC_LOC_PROT_ERR, 113);
}

static void no_receive(void)
{
	struct ibv_sge sge = piece(&a, 0, 64);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	connected();
	if (rnic) {
		fails_there(&wr, IBV_WC_RNR_RETRY_EXC_ERR, 204);
		return;
	}
	must(!post(&a, &wr), "post");
	fails_with(&a, IBV_WC_RNR_RETRY_EXC_ERR, 204);
}

/* Move both sides to RTS, as connect_with() does, with these attributes. */
static void connect_by(uint8_t max_rd, uint8_t max_dest, uint32_t psn,
		       uint32_t qpn)
{
	struct rc_address at_a = rc_address(&device, a.qp, 100);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = a.qp->qp_num,
		.rq_psn = 100,
		.max_dest_rd_atomic = max_dest,
		.min_rnr_timer = 1,
		.ah_attr = rc_path(&device, &at_a.gid, at_a.lid),
	};
	struct rc_options o = options;
	const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int to_rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			   IBV_QP_MAX_QP_RD_ATOMIC;

	o.timeout = 10;
	o.retry = o.rnr_retry = 3;
	must(!rc_to_init(a.qp, RC_ALL_ACCESS) &&
		     !rc_to_init(b.qp, RC_ALL_ACCESS),
	     "to INIT");
	must(!ibv_modify_qp(b.qp, &attr, to_rtr), "to RTR");
	must(!rc_to_rts(b.qp, &o, 200), "to RTS");
	if (nobody) {
		memset(attr.ah_attr.grh.dgid.raw, 0, 10);
		memset(attr.ah_attr.grh.dgid.raw + 10, 0xff, 2);
		if (inet_pton(AF_INET6, nobody, attr.ah_attr.grh.dgid.raw) != 1)
			must(inet_pton(AF_INET, nobody,
				       attr.ah_attr.grh.dgid.raw + 12) == 1,
			     "the address of nobody");
	}
	attr.dest_qp_num = qpn;
	attr.rq_psn = 200;
	must(!ibv_modify_qp(a.qp, &attr, to_rtr), "to RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 10,
				     .retry_cnt = 3,
				     .rnr_retry = 3,
				     .sq_psn = psn,
				     .max_rd_atomic = max_rd };
	must(!ibv_modify_qp(a.qp, &attr, to_rts), "to RTS");
}

static void too_many_reads(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);

	connect_by(16, 0, 100, b.qp->qp_num);
	fails_there(&wr, IBV_WC_REM_INV_REQ_ERR, 202);
}

static void no_reads(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);

	connect_by(0, 16, 100, b.qp->qp_num);
	must(!post(&a, &wr), "post");
	fails_with(&a, IBV_WC_LOC_QP_OP_ERR, 213);
}

static void send_in_vain(unsigned code)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);

	must(!post(&a, &wr), "post");
	fails_with(&a, IBV_WC_RETRY_EXC_ERR, code);
}

/* No answer comes; the reported cause depends on the kind of network. */
static void hear_nothing(void)
{
	send_in_vain(where == ON_FABRIC ? 221 : where == ON_V1 ? 222 : 205);
}

static void psn_ahead(void)
{
	connect_by(16, 16, 5000, b.qp->qp_num);
	send_in_vain(206);
}

static void psn_behind(void)
{
	connect_by(16, 16, 90, b.qp->qp_num);
	send_in_vain(206);
}

static void no_such_qp(void)
{
	connect_by(16, 16, 100, b.qp->qp_num + 77);
	hear_nothing();
}

static void connected_to_other(void)
{
	struct rc_address at_c;
	struct side c;

	make_side(&c, RC_ALL_ACCESS);
	at_c = rc_address(&device, c.qp, 100);
	connect_by(16, 16, 100, b.qp->qp_num);
	must(!rc_to_init(c.qp, RC_ALL_ACCESS), "to INIT");
	at_c.qpn = b.qp->qp_num;
	must(!rc_to_rtr(&device, c.qp, &at_c), "to RTR");
	must(!rc_to_rts(c.qp,
			&(struct rc_options){ .timeout = 10,
					      .retry = 2,
					      .rnr_retry = 2 },
			100),
	     "to RTS");
	a = c;
	send_in_vain(205);
}

/* Side a posts a request that fails before any packet leaves. */
static void fails_here(enum ibv_wr_opcode op, struct ibv_sge sge, unsigned code)
{
	struct ibv_send_wr wr = rdma(op, &sge, at(&b, 0), b.mr->rkey);

	must(!post(&a, &wr), "post");
	fails_with(&a, IBV_WC_LOC_PROT_ERR, code);
}

static void wrong_lkey(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);

	connected();
	sge.lkey ^= 0x55555500;
	fails_here(IBV_WR_RDMA_WRITE, sge, 207);
}

static void lkey_past(void)
{
	connected();
	fails_here(IBV_WR_RDMA_WRITE, piece(&a, BYTES - 8, 24), 209);
}

static void lkey_of_domain(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);

	connected();
	sge.lkey = of_other_domain(&a)->lkey;
	fails_here(IBV_WR_RDMA_WRITE, sge, 208);
}

static void lkey_for_reading(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_mr *mr =
		ibv_reg_mr(device.pd, a.memory + BYTES, BYTES, 0);

	must(mr, "ibv_reg_mr");
	connected();
	sge.lkey = mr->lkey;
	fails_here(IBV_WR_RDMA_READ, sge, 210);
}

static void source_unmapped(void)
{
	connected();
	must(!munmap(a.memory + BYTES, BYTES), "munmap");
	fails_here(IBV_WR_RDMA_WRITE, piece(&a, 0, 8), 212);
}

static void window_without_right(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(device.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .wr_id = 7,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };

	must(mw, "ibv_alloc_mw");
	connected();
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		a.mr, at(&a, 0), 64, IBV_ACCESS_REMOTE_READ
	};
	must(!post(&a, &wr), "post");
	fails_with(&a, IBV_WC_MW_BIND_ERR, 215);
}

static void cq_too_small(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	must(!ibv_destroy_qp(a.qp), "ibv_destroy_qp");
	a.cq = ibv_create_cq(device.context, 1, NULL, NULL, 0);
	must(a.cq, "ibv_create_cq");
	a.qp = rc_qp(&device, a.cq, 16, 1, 0);
	connected();
	wr = rdma(IBV_WR_RDMA_WRITE, &sge, at(&b, 0), b.mr->rkey);
	for (int i = 0; i < 8; i++)
		(void)post(&a, &wr);
	for (double until = seconds() + 1; seconds() < until;)
		(void)rc_wait(b.cq, 0, &wc);
	becomes(&a, IBV_QPS_ERR);
}

#define PEER "qp 0x[0-9a-f]+ at [0-9a-f.:]+"
#define AT   "at 0x[0-9a-f]+"
#define KEY  "0x[0-9a-f]+"
#define ADDRESSED(len)                                                         \
	QP "RDMA WRITE of " len " bytes to (" PEER "|the peer) \\(remote " KEY \
	   ", rkey " KEY "\\), wr_id 7: "
/* Over TCP a WRITE or SEND is complete when its bytes were sent; the requester
 * learns of the refusal only by the end of the stream. */
#define ENDED QP "the peer ended the stream: .*218 STREAM"
#define ACCESS                                                                 \
	"(" ADDRESSED("16") "the peer does not permit.*\\[201 REM_ACCESS\\]$|"  \
	ENDED ")"
#define INVALID                                                                \
	"(" QP "RDMA WRITE of 16 bytes .* wr_id 7: .*20[12] REM_(INV|ACC)|"    \
	ENDED ")"
#define SENT(rest) "(" QP "SEND of 64 bytes .*" rest "|" ENDED ")"
#define WRITE QP "refused the RDMA WRITE of 16 bytes " AT " by .*"

const struct mistake request_mistakes[] = {
	{ "a wrong rkey", wrong_rkey, ANYWHERE,
	  { ACCESS, WRITE "no region has rkey " KEY ".*101 RKEY_UNKNOWN" } },
	{ "a WRITE past the region", write_past, ANYWHERE,
	  { ACCESS,
	    WRITE "end 8 bytes past the region of 8192 bytes.*RKEY_BOUNDS" } },
	{ "a WRITE before the region", write_elsewhere, ANYWHERE,
	  { ACCESS, WRITE "lie outside the region of 8192.*RKEY_BOUNDS" } },
	{ "a READ past the region", read_past, ANYWHERE,
	  { QP "RDMA READ of 64 bytes .*REM_ACCESS",
	    QP "refused the RDMA READ of 64 bytes .*end 4 bytes past.*BOUNDS" } },
	{ "a region without remote write", region_for_reading, ANYWHERE,
	  { ACCESS,
	    WRITE "permits REMOTE_READ, but REMOTE_WRITE is.*RKEY_RIGHTS" } },
	{ "an rkey of another domain", rkey_of_domain, ANYWHERE,
	  { ACCESS, WRITE "another protection domain.*RKEY_DOMAIN" } },
	{ "an rkey after deregistration", rkey_after_dereg, ANYWHERE,
	  { ACCESS, WRITE "no region has rkey.*deregister it only.*101" } },
	{ "qp_access_flags without remote write", qp_for_reading, ANYWHERE,
	  { INVALID, WRITE "qp_access_flags lack REMOTE_WRITE.*QP_ACCESS" } },
	{ "an atomic at an odd address", odd_atomic, ANYWHERE,
	  { QP "atomic of 8 bytes .*REM_INVALID",
	    QP "refused the atomic.*not a multiple of 8.*ALIGNMENT" } },
	{ "a target that is not mapped", target_unmapped, ANYWHERE,
	  { ACCESS, QP "refused the RDMA WRITE .*mapped.*REMOTE_PAGE" } },
	{ "a receive that is too short", receive_short, ANYWHERE,
	  { SENT("REM_INVALID"),
	    QP "the peer's message is longer than the receive of 32 bytes, "
	       "wr_id 9.*RECV_SHORT" } },
	{ "a receive with a wrong lkey", receive_lkey, ANYWHERE,
	  { SENT("REM_OPERATION"),
	    QP "receive of 64 bytes, wr_id 9: no region has lkey " KEY
	       ".*RECV_KEY" } },
	{ "no receive", no_receive, ON_IB,
	  { QP "SEND of 64 bytes, wr_id 7: " PEER
	       " had no receive posted in 4 tries .rnr_retry is 3.*204 RNR" } },
	{ "no receive on iWARP", no_receive, ON_RNIC,
	  { SENT("204 RNR"),
	    QP "refused the .*no receive is posted.*RECV_NONE" } },
	{ "more READs than max_dest_rd_atomic", too_many_reads, ON_IB,
	  { QP "RDMA READ of 8 bytes.*REM_INVALID",
	    QP "refused the RDMA READ.*max_dest_rd_atomic is 0.*TOO_MANY" } },
	{ "a READ with max_rd_atomic 0", no_reads, ON_IB,
	  { QP "RDMA READ, wr_id 7: max_rd_atomic is 0;.*213 NO_READS" } },
	{ "an sq_psn ahead of the peer's", psn_ahead, ON_IB,
	  { QP ".*0xc8|0x64.*0x1388.*206 PSN" } },
	{ "an sq_psn behind the peer's", psn_behind, ON_IB,
	  { QP ".*sq_psn 0x5a.*206 PSN" } },
	{ "a queue pair that is not there", no_such_qp, ON_IB,
	  { QP "(the program of " PEER ", on this host, has no such queue pair|"
	       "sent [0-9]+ packets to " PEER " in [0-9.]+ s, heard nothing)"
	       ".*4791.*205 SILENCE" } },
	{ "a queue pair that is connected to another", connected_to_other, ON_IB,
	  { QP ".*" PEER ".*(is connected to qp|heard nothing).*205 SILENCE" } },
	{ "a host without a program", no_such_qp, ON_WIRE,
	  { QP "sent [0-9]+ packets to qp 0x[0-9a-f]+ at [0-9.:a-f]+ in "
	       "[0-9.]+ s, heard nothing; is a program there.*UDP port "
	       "4791.*205 SILENCE" } },
	{ "a queue pair that is not there, over InfiniBand", no_such_qp,
	  ON_FABRIC,
	  { QP "sent [0-9]+ packets to qp 0x[0-9a-f]+ at LID [0-9]+ in [0-9.]+ "
	       "s, heard nothing; is a program there.*LID right.*active link"
	       ".*221 SILENCE_IB" } },
	{ "a queue pair that is not there, over RoCEv1", no_such_qp, ON_V1,
	  { QP "sent [0-9]+ packets to " PEER " in [0-9.]+ s, heard nothing; "
	       "is a program there.*same Ethernet.*Ethertype 0x8915"
	       ".*222 SILENCE_V1" } },
	{ "a wrong lkey", wrong_lkey, ANYWHERE,
	  { QP "RDMA WRITE of 8 bytes, wr_id 7: no region has lkey " KEY
	       ".*207 LKEY_UNKNOWN" } },
	{ "a buffer past the region", lkey_past, ANYWHERE,
	  { QP "RDMA WRITE of 24 bytes, wr_id 7: 24 bytes at .*end 16 bytes "
	       "past the region of 8192 bytes.*LKEY_BOUNDS" } },
	{ "an lkey of another domain", lkey_of_domain, ANYWHERE,
	  { QP "RDMA WRITE of 8.*another protection domain.*LKEY_DOMAIN" } },
	{ "a READ into a region without local write", lkey_for_reading, ANYWHERE,
	  { QP "RDMA READ of 8 bytes, wr_id 7: lkey " KEY
	       " permits none, but LOCAL_WRITE is needed.*LKEY_RIGHTS" } },
	{ "a buffer that is not mapped", source_unmapped, ANYWHERE,
	  { QP "RDMA WRITE of 8 bytes, wr_id 7: 8 bytes at " KEY
	       " are not all mapped.*LOCAL_PAGE" } },
	{ "a window of a region without MW_BIND", window_without_right, ANYWHERE,
	  { QP "window " KEY ": not bound: .*215 BIND" } },
	{ "a completion queue that overruns", cq_too_small, ANYWHERE,
	  { QP "its completion queue of 1 entries is full.*117 CQ_FULL" } },
};
const unsigned request_mistake_count =
	sizeof(request_mistakes) / sizeof(request_mistakes[0]);
