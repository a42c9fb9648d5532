/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes for which a verb is refused, and those of datagrams. */
#include "mistakes.h"

static void move(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	if (!ibv_modify_qp(qp, &attr, mask))
		wrong("ibv_modify_qp succeeds");
}

static void no_transition(void)
{
	move(a.qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
	     IBV_QP_STATE);
}

static struct ibv_qp_attr to_rtr(void)
{
	return (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = b.qp->qp_num,
				     .rq_psn = 200,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 1,
				     .ah_attr = rc_path(&device, &device.gid,
							device.lid) };
}
#define RTR                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |        \
	 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static void attribute_missing(void)
{
	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	move(a.qp, to_rtr(), RTR & ~(IBV_QP_PATH_MTU | IBV_QP_RQ_PSN));
}

static void attribute_extra(void)
{
	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	move(a.qp, to_rtr(), RTR | IBV_QP_SQ_PSN);
}

static void attribute_range(void)
{
	struct ibv_qp_attr attr = to_rtr();

	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	attr.min_rnr_timer = 40;
	move(a.qp, attr, RTR);
}

static void no_port(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 9 };

	move(a.qp, attr,
	     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		     IBV_QP_ACCESS_FLAGS);
}

static void alternate_path(void)
{
	struct ibv_qp_attr attr = to_rtr();

	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	move(a.qp, attr, RTR | IBV_QP_ALT_PATH);
}

static void gid_index(void)
{
	struct ibv_qp_attr attr = to_rtr();

	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	attr.ah_attr.grh.sgid_index = 200;
	move(a.qp, attr, RTR);
}

/* An address of the other family than the device's own GID. */
static void other_family(void)
{
	struct ibv_qp_attr attr = to_rtr();
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };
	static const uint8_t v6[16] = { 0xfd, 0x77, [15] = 1 };
	bool is_v4 = !memcmp(device.gid.raw, v4, 12);

	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	memcpy(attr.ah_attr.grh.dgid.raw, is_v4 ? v6 : v4, 16);
	move(a.qp, attr, RTR);
}

static void no_grh(void)
{
	struct ibv_qp_attr attr = to_rtr();

	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	attr.ah_attr.is_global = 0;
	move(a.qp, attr, RTR);
}

static void handle_of_gid_index(void)
{
	struct ibv_ah_attr to = rc_path(&device, &device.gid, device.lid);

	to.grh.sgid_index = 200;
	if (ibv_create_ah(device.pd, &to))
		wrong("ibv_create_ah succeeds");
}

static void send_in_reset(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	refused(post(&a, &wr), EINVAL, "post");
}

static void recv_in_reset(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);

	refused(receive(&a, &sge, 1), EINVAL, "ibv_post_recv");
}

static void overfill(unsigned times)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);
	unsigned posted = 0;

	connect_with(RC_ALL_ACCESS, 7, 7);
	while (posted < 64 && !post(&a, &wr))
		posted++;
	for (unsigned i = 1; i < times; i++)
		refused(post(&a, &wr), ENOMEM, "post to a full queue");
}

static void send_queue_full(void)
{
	overfill(1);
}

/* A program may post until its send queue is full and then poll. This is no
 * mistake, so nothing is reported once the queue has worked. */
static void send_queue_full_again(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);
	struct ibv_sge into = piece(&b, 0, 8);
	unsigned posted = 0;
	struct ibv_wc wc;

	connect_with(RC_ALL_ACCESS, 7, 7);
	must(!receive(&b, &into, 1), "ibv_post_recv");
	must(!post(&a, &wr), "post");
	must(rc_wait(a.cq, 5, &wc) && !wc.status, "the first completion");
	while (posted < 64 && !post(&a, &wr))
		posted++;
	refused(post(&a, &wr), ENOMEM, "post to a full queue");
}

static void thousand_times(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	for (int i = 0; i < 99; i++)
		refused(post(&a, &wr), EINVAL, "post");
}

static void recv_queue_full(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	int posted = 0;

	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	while (posted < 64 && !receive(&a, &sge, 1))
		posted++;
}

/* Post a request that the posting call itself refuses. */
static void refused_post(struct ibv_send_wr wr)
{
	connected();
	if (!post(&a, &wr))
		wrong("ibv_post_send succeeds");
}

static void too_inline(void)
{
	struct ibv_sge sge = piece(&a, 0, 2000);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	wr.send_flags |= IBV_SEND_INLINE;
	refused_post(wr);
}

static void inline_unmapped(void)
{
	struct ibv_sge sge = { 4096, 16, 0 };
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	wr.send_flags |= IBV_SEND_INLINE;
	refused_post(wr);
}

static void sges_of_send(void)
{
	struct ibv_sge sge[5] = { { 0 } };
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, sge, 0, 0);

	wr.num_sge = 5;
	refused_post(wr);
}

static void sges_of_receive(void)
{
	struct ibv_sge sge[6] = { { 0 } };

	connected();
	refused(receive(&a, sge, 6), EINVAL, "ibv_post_recv");
}

static void no_opcode(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);

	refused_post(rdma((enum ibv_wr_opcode)99, &sge, 0, 0));
}

/* Post IBV_WR_FLUSH, an opcode of newer headers. */
static void flush(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);

	refused_post(rdma((enum ibv_wr_opcode)14, &sge, at(&b, 0),
			  b.mr->rkey));
}

static void no_flags(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	wr.send_flags |= 1u << 20;
	refused_post(wr);
}

static void inline_read(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);
	struct ibv_send_wr wr =
		rdma(IBV_WR_RDMA_READ, &sge, at(&b, 0), b.mr->rkey);

	wr.send_flags |= IBV_SEND_INLINE;
	refused_post(wr);
}

static void short_atomic(void)
{
	struct ibv_sge sge = piece(&a, 0, 4);

	refused_post(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, at(&b, 0),
			    b.mr->rkey));
}

/* Make a queue pair like side a's, with the capacities @cap. */
static struct ibv_qp *made(struct ibv_qp_cap cap, enum ibv_qp_type type,
			   struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = a.cq,
					 .recv_cq = a.cq,
					 .srq = srq,
					 .cap = cap,
					 .qp_type = type };

	return ibv_create_qp(device.pd, &init);
}

static void unmade(struct ibv_qp_cap cap)
{
	if (made(cap, IBV_QPT_RC, NULL))
		wrong("ibv_create_qp succeeds");
}

static void qp_too_deep(void)
{
	unmade((struct ibv_qp_cap){ 10000000, 1, 1, 1, 0 });
}

static void qp_too_inline(void)
{
	unmade((struct ibv_qp_cap){ 1, 1, 1, 1, 1 << 20 });
}

static void qp_too_wide(void)
{
	unmade((struct ibv_qp_cap){ 1, 1, 1000, 1, 0 });
}

static void cq_too_large(void)
{
	if (ibv_create_cq(device.context, 0x7fffffff, NULL, NULL, 0))
		wrong("ibv_create_cq succeeds");
}

static void cq_of_nothing(void)
{
	if (ibv_resize_cq(a.cq, 0) == 0)
		wrong("ibv_resize_cq succeeds");
}

static void srq_too_large(void)
{
	struct ibv_srq_init_attr init = { .attr = { 0x7fffffff, 1, 0 } };

	if (ibv_create_srq(device.pd, &init))
		wrong("ibv_create_srq succeeds");
}

static void receive_of_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { 8, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(device.pd, &init);
	struct ibv_sge sge = piece(&a, 0, 8);

	must(srq, "ibv_create_srq");
	a.qp = made((struct ibv_qp_cap){ 1, 0, 1, 0, 0 }, IBV_QPT_RC, srq);
	must(a.qp, "ibv_create_qp");
	must(!rc_to_init(a.qp, RC_ALL_ACCESS), "to INIT");
	refused(receive(&a, &sge, 1), EINVAL, "ibv_post_recv");
}

static void remote_without_local(void)
{
	if (ibv_reg_mr(device.pd, a.memory, 4096, IBV_ACCESS_REMOTE_WRITE))
		wrong("ibv_reg_mr succeeds");
}

static void twice_deregistered(void)
{
	struct ibv_mr *mr = a.mr;

	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	if (!ibv_dereg_mr(mr))
		wrong("ibv_dereg_mr succeeds twice");
}

static void pd_in_use(void)
{
	if (!ibv_dealloc_pd(device.pd))
		wrong("ibv_dealloc_pd succeeds");
}

static void cq_in_use(void)
{
	if (!ibv_destroy_cq(a.cq))
		wrong("ibv_destroy_cq succeeds");
}

/* Datagrams from side a to side b, which are made anew for this. */

static struct ibv_ah *datagrams(uint32_t qkey_b)
{
	struct ibv_ah_attr to = rc_path(&device, &device.gid, device.lid);
	struct ibv_ah *ah = ibv_create_ah(device.pd, &to);

	must(ah, "ibv_create_ah");
	a.qp = made((struct ibv_qp_cap){ 4, 4, 1, 1, 0 }, IBV_QPT_UD, NULL);
	b.qp = made((struct ibv_qp_cap){ 4, 4, 1, 1, 0 }, IBV_QPT_UD, NULL);
	must(a.qp && b.qp, "ibv_create_qp");
	rc_start_datagrams(a.qp, 0x11);
	rc_start_datagrams(b.qp, qkey_b);
	return ah;
}

static int send_datagram(struct ibv_ah *ah, uint32_t len)
{
	struct ibv_sge sge = piece(&a, 0, len);
	struct ibv_send_wr wr = rdma(IBV_WR_SEND, &sge, 0, 0);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = b.qp->qp_num;
	wr.wr.ud.remote_qkey = 0x11;
	return post(&a, &wr);
}

/* Poll for half a second, so that the library receives the datagrams and drops
 * them. */
static void look(void)
{
	double until = seconds() + 0.5;
	struct ibv_wc wc;

	while (seconds() < until)
		(void)rc_wait(a.cq, 0, &wc);
}

static void wrong_qkey(void)
{
	struct ibv_ah *ah = datagrams(0x22);

	must(!send_datagram(ah, 8), "post");
	look();
}

static void datagram_long(void)
{
	struct ibv_ah *ah = datagrams(0x11);

	must(!send_datagram(ah, 8192), "post");
	fails_with(&a, IBV_WC_LOC_LEN_ERR, 214);
}

static void datagram_receive_short(void)
{
	struct ibv_ah *ah = datagrams(0x11);
	struct ibv_sge sge = piece(&b, 0, 64);

	must(!receive(&b, &sge, 1), "ibv_post_recv");
	must(!send_datagram(ah, 64), "post");
	look();
}

static void no_handle(void)
{
	(void)datagrams(0x11);
	refused(send_datagram(NULL, 8), EINVAL, "post");
}

static void handle_of_domain(void)
{
	struct ibv_ah_attr to = rc_path(&device, &device.gid, device.lid);
	struct ibv_pd *pd = ibv_alloc_pd(device.context);
	struct ibv_ah *ah;

	must(pd, "ibv_alloc_pd");
	ah = ibv_create_ah(pd, &to);
	must(ah, "ibv_create_ah");
	(void)datagrams(0x11);
	refused(send_datagram(ah, 8), EINVAL, "post");
}

#define QP	"^verbena: qp 0x[0-9a-f]+: "
#define POST	QP "work request refused: "
#define MODIFY	QP "ibv_modify_qp from INIT to RTR"

const struct mistake verb_mistakes[] = {
	{ "RESET to RTS", no_transition, ON_IB,
	  { QP "ibv_modify_qp from RESET to RTS is no.*301 TRANSITION" } },
	{ "RESET to RTS on iWARP", no_transition, ON_RNIC,
	  { QP ".*RESET to RTS is no.*rdma_connect.*326 IWARP_MOVE" } },
	{ "to RTR without path_mtu", attribute_missing, ON_IB,
	  { MODIFY " needs PATH_MTU, RQ_PSN;.*IBV_QP_.*302 ATTR_MISSING" } },
	{ "to RTR with sq_psn", attribute_extra, ON_IB,
	  { MODIFY " does not take SQ_PSN;.*303 ATTR_EXTRA" } },
	{ "min_rnr_timer of 40", attribute_range, ON_IB,
	  { MODIFY ": MIN_RNR_TIMER is 40, allowed is 0 to 31;.*304" } },
	{ "a port that is not there", no_port, ON_IB,
	  { QP "ibv_modify_qp from RESET to INIT: PORT is 9, allowed is 1 to "
	       "[0-9]+;.*304" } },
	{ "an alternate path on RoCE", alternate_path, ON_IB,
	  { MODIFY ": only InfiniBand has alternate paths; .*325 NO_SUPP" } },
	{ "a sgid_index without a GID", gid_index, ON_IB,
	  { MODIFY ": no route .*sgid_index 200: .*305 GID_INDEX" } },
	{ "an address without GRH", no_grh, ON_IB,
	  { MODIFY ": no route .*no GRH, as when .*GID index.*is_global.*306" } },
	{ "an address of another family", other_family, ON_IB,
	  { MODIFY ": no route .*IPv4 address, and .* none; give both ends GID "
		   "indices of the same kind.*307 ROUTE" } },
	{ "an address handle with such a sgid_index", handle_of_gid_index, ON_IB,
	  { "^verbena: .*no address handle .*sgid_index 200.*305 GID_INDEX" } },
	{ "a send in RESET", send_in_reset, ANYWHERE,
	  { QP "post_send refused: .*in RESET; move.*308 STATE" } },
	{ "a receive in RESET", recv_in_reset, ANYWHERE,
	  { QP "post_recv refused: .*in RESET; .*308 STATE" } },
	{ "a full send queue", send_queue_full, ON_IB,
	  { POST "the send queue is full: max_send_wr is 16;.*309" } },
	{ "a full send queue that has worked", send_queue_full_again, ON_IB,
	  { NULL } },
	{ "99 times the same", thousand_times, ANYWHERE,
	  { QP "post_send refused: the queue pair is in RESET;.*308 STATE",
	    QP "post_send .*RESET .10 times so far.;.*308 STATE" } },
	{ "a full receive queue", recv_queue_full, ANYWHERE,
	  { QP "receive refused: the queue of 16 entries is full;.*310" } },
	{ "too much inline data", too_inline, ANYWHERE,
	  { POST "2000 inline bytes, and max_inline_data is [0-9]+;.*311" } },
	{ "inline data that is not mapped", inline_unmapped, ANYWHERE,
	  { POST "16 inline bytes at 0x1000, which is not mapped;.*316" } },
	{ "too many SGEs of a send", sges_of_send, ANYWHERE,
	  { POST "5 SGEs, and max_send_sge is 4;.*312 SGES" } },
	{ "too many SGEs of a receive", sges_of_receive, ANYWHERE,
	  { QP "receive refused: num_sge is 6, and at most 4.*312 SGES" } },
	{ "an unknown opcode", no_opcode, ANYWHERE,
	  { POST "opcode 99 .unknown. is not possible .*313 OPCODE" } },
	{ "a FLUSH", flush, ANYWHERE,
	  { POST "opcode 14 .flush. is not possible .*325 NO_SUPPORT" } },
	{ "unknown send flags", no_flags, ANYWHERE,
	  { POST "unknown bits in send_flags 0x100002;.*314 FLAGS" } },
	{ "a READ with inline data", inline_read, ANYWHERE,
	  { POST "IBV_SEND_INLINE with opcode 4.*314 FLAGS" } },
	{ "an atomic of 4 bytes", short_atomic, ANYWHERE,
	  { POST "an atomic .* 4 bytes instead of 8;.*317" } },
	{ "a queue pair with too deep a queue", qp_too_deep, ANYWHERE,
	  { "^verbena: .*cannot create a queue pair.*max_send_wr is 10000000, "
	    "at most [0-9]+ .*319 CREATE" } },
	{ "a queue pair with too much inline data", qp_too_inline, ANYWHERE,
	  { "^verbena: .*max_inline_data is 1048576, at most [0-9]+ .*319" } },
	{ "a queue pair with too many SGEs", qp_too_wide, ANYWHERE,
	  { "^verbena: .*max_send_sge is 1000, at most [0-9]+ .*319 CREATE" } },
	{ "a completion queue that is too large", cq_too_large, ANYWHERE,
	  { "^verbena: .*completion queue of 2147483647 .*1 to [0-9]+ .*319" } },
	{ "a completion queue of 0 entries", cq_of_nothing, ANYWHERE,
	  { "^verbena: cq [0-9]+: cannot resize to 0 .*324 RESIZE" } },
	{ "a shared queue that is too large", srq_too_large, ANYWHERE,
	  { "^verbena: pd [0-9]+: .*shared receive queue of 2147483647 .*319" } },
	{ "a receive beside a shared queue", receive_of_srq, ANYWHERE,
	  { POST "ibv_post_recv.*ibv_post_srq_recv .318 RECV_SRQ" } },
	{ "remote write without local write", remote_without_local, ANYWHERE,
	  { "^verbena: pd [0-9]+: cannot register 4096 bytes at 0x.*access "
	    "REMOTE_WRITE .*need LOCAL_WRITE.*321 REGISTER" } },
	{ "a region deregistered twice", twice_deregistered, ANYWHERE,
	  { "^verbena: 0x[0-9a-f]+ is no .*region.*once only.*322 HANDLE" } },
	{ "a protection domain in use", pd_in_use, ANYWHERE,
	  { "^verbena: pd [0-9]+: not deallocated: [0-9]+ objects .*323" } },
	{ "a completion queue in use", cq_in_use, ANYWHERE,
	  { "^verbena: cq [0-9]+: not destroyed: queues .*323 BUSY" } },
	{ "another Q_Key", wrong_qkey, ON_IB,
	  { QP "dropped a datagram of qp 0x[0-9a-f]+: its Q_Key is 0x11, and "
	       "this queue pair's 0x22;.*116 QKEY" } },
	{ "a datagram longer than the MTU", datagram_long, ON_IB,
	  { QP "SEND of 8192 bytes, wr_id 7: a datagram holds [0-9]+ "
	       "bytes;.*214 LENGTH" } },
	{ "a receive without room for the GRH", datagram_receive_short, ON_IB,
	  { QP "dropped a datagram of 64 bytes: the receive has 64 bytes, and "
	       "40.*108 RECV_SHORT" } },
	{ "a datagram without address handle", no_handle, ON_IB,
	  { POST "a datagram without address handle;.*315 AH" } },
	{ "an address handle of another domain", handle_of_domain, ON_IB,
	  { POST "an address handle of pd [0-9]+, and .*of pd [0-9]+;.*315" } },
};
const unsigned verb_mistake_count =
	sizeof(verb_mistakes) / sizeof(verb_mistakes[0]);
