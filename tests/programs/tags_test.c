/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching, as message passing libraries use it:
 *
 *	tags_test [options] [-l]	receives
 *	tags_test [options] [-l] HOST	sends
 *
 * -l: packets are lost on the way. Both sides draw the messages from one seed:
 * eager, rendezvous and untagged messages, on several connections and with few
 * tags. Some receives are posted before their message comes, others after it.
 * MPI's rule must hold: the nth receive of a tag gets the nth message with that
 * tag, whether the library or the program matched them.
 */
#include "tags_test.h"

#define EAGER 3000u

static struct rc_options options = RC_OPTIONS;
bool lossy;
static struct rc_device device;
struct ibv_cq *cq, *plain_cq;
struct ibv_cq_ex *tag_cq;
struct ibv_srq *srq;
struct ibv_qp *qps[LINKS + 1];
struct ibv_mr *mr;
struct plan plans[MESSAGES];
struct mem mem;

struct hello {
	struct rc_address at[LINKS + 1];
};

static void make_plans(void)
{
	struct rng r = { 2026 };

	for (unsigned i = 0; i < MESSAGES; i++) {
		unsigned kind = (unsigned)rng_below(&r, 100);
		struct plan *p = &plans[i];

		p->link = (unsigned)rng_below(&r, LINKS);
		p->tag = (uint64_t)p->link << 40 | rng_below(&r, 4);
		p->op = kind < 55   ? IBV_TMH_EAGER
			: kind < 85 ? IBV_TMH_RNDV
				    : IBV_TMH_NO_TAG;
		p->tight = rng_below(&r, 6) == 0;
		p->length = (uint32_t)rng_below(
			&r, p->op == IBV_TMH_RNDV ? LONGEST : EAGER);
		if (p->tight && p->length < 100)
			p->length = 100;
	}
}

static uint8_t byte_of(unsigned nth, uint32_t at)
{
	return (uint8_t)(nth * 37 + at * 11 + (at >> 8));
}

void fill(unsigned nth, uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = byte_of(nth, i);
}

void compare(unsigned nth, const uint8_t *bytes, uint32_t len)
{
	if (len != plans[nth].length)
		die("message %u: %u bytes, must be %u", nth, len,
		    plans[nth].length);
	for (uint32_t i = 0; i < len; i++)
		if (bytes[i] != byte_of(nth, i))
			die("message %u: byte %u is %#x, must be %#x", nth, i,
			    bytes[i], byte_of(nth, i));
}

struct ibv_tmh header(uint8_t op, unsigned nth)
{
	return (struct ibv_tmh){ .opcode = op,
				 .app_ctx = htobe32(nth),
				 .tag = htobe64(plans[nth].tag) };
}

void post_send(struct ibv_qp *qp, uint64_t wr_id, enum ibv_wr_opcode opcode,
	       void *at, uint32_t len, const struct ibv_rvh *there)
{
	struct ibv_sge sge = { (uintptr_t)at, len, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (there) {
		wr.wr.rdma.remote_addr = be64toh(there->va);
		wr.wr.rdma.rkey = be32toh(there->rkey);
	} else if (len <= HEADERS) {
		wr.send_flags |= IBV_SEND_INLINE;
	}
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void make_srq(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 1024,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = RECEIVES, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = device.pd,
		.tm_cap = { .max_num_tags = SLOTS, .max_ops = 64 },
	};

	tag_cq = ibv_create_cq_ex(device.context, &cq_attr);
	must(tag_cq, "ibv_create_cq_ex");
	attr.cq = ibv_cq_ex_to_cq(tag_cq);
	srq = ibv_create_srq_ex(device.context, &attr);
	must(srq, "ibv_create_srq_ex");
}

static struct ibv_qp *make_tagged_qp(void)
{
	struct ibv_qp_init_attr attr = { .send_cq = plain_cq,
					 .recv_cq = plain_cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(device.pd, &attr);

	must(qp, "ibv_create_qp");
	return qp;
}

static void set_up(int *tcp)
{
	struct hello me, peer;

	make_plans();
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 256, NULL, NULL, 0);
	plain_cq = ibv_create_cq(device.context, 256, NULL, NULL, 0);
	must(cq && plain_cq, "ibv_create_cq");
	mr = ibv_reg_mr(device.pd, &mem, sizeof(mem), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	if (!options.host)
		make_srq();
	for (unsigned i = 0; i <= LINKS; i++) {
		qps[i] = !options.host && i < LINKS
				 ? make_tagged_qp()
				 : rc_qp(&device, options.host ? cq : plain_cq,
					 64, 1, HEADERS);
		me.at[i] = rc_address(&device, qps[i], 40 + i);
	}
	*tcp = tcp_meet(&options);
	tcp_swap(*tcp, &me, &peer, sizeof(me));
	for (unsigned i = 0; i <= LINKS; i++) {
		rc_connect(&device, qps[i], &options, 40 + i, &peer.at[i]);
		if (options.host)
			post_fin_receive(i);
	}
	tcp_barrier(*tcp);
}

static void tear_down(void)
{
	for (unsigned i = 0; i <= LINKS; i++)
		must(!ibv_destroy_qp(qps[i]), "ibv_destroy_qp");
	must(!srq || !ibv_destroy_srq(srq), "ibv_destroy_srq");
	must(!tag_cq || !ibv_destroy_cq(ibv_cq_ex_to_cq(tag_cq)),
	     "ibv_destroy_cq");
	must(!ibv_destroy_cq(cq) && !ibv_destroy_cq(plain_cq),
	     "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
}

int main(int argc, char **argv)
{
	int tcp, c;

	while ((c = getopt(argc, argv, RC_LETTERS "l")) != -1)
		if (c == 'l')
			lossy = true;
		else
			rc_read_option(&options, c);
	options.host = argv[optind];
	set_up(&tcp);
	if (options.host)
		send_all();
	else
		receive_all();
	tcp_barrier(tcp);
	if (options.host)
		send_faults(tcp);
	else
		receive_faults(tcp);
	tear_down();
	return 0;
}
