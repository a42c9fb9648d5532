/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device with both versions of RoCE, as a program sees it, one case in each
 * function: the GID table, connections and datagrams of both versions at the
 * same time, and combinations that must be refused.
 *
 *	roce1_test -d DEVICE [-6]
 */
#include <stdio.h>
#include <string.h>

#include "rc.h"

#define QKEY  0x11223344u
#define BYTES 64
#define GRH   40
#define ROOM  256
#define WAIT  20.0

static struct rc_options options = RC_OPTIONS;
static struct rc_device v1, v2; /* one device, by two of its GIDs */
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t memory[8 * ROOM];
static const char *problem;

static void expect(bool truth, const char *what)
{
	if (!truth && !problem)
		problem = what;
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	expect(rc_wait(cq, WAIT, &wc), "a completion");
	return wc;
}

static void receive(struct ibv_qp *qp, unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)(memory + slot * ROOM), ROOM,
			       mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	memset(memory + slot * ROOM, 0xee, ROOM);
	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* --- the table --- */

static struct ibv_gid_entry entry(int index)
{
	struct ibv_gid_entry e = { .gid_index = UINT32_MAX };

	must(!ibv_query_gid_ex(v1.context, 1, (uint32_t)index, &e, 0),
	     "ibv_query_gid_ex");
	return e;
}

/* Linux has RoCEv1's entry of an address first, and RoCEv2's behind it. */
static void table_has_pairs(void)
{
	struct ibv_gid_entry all[256];
	ssize_t count = ibv_query_gid_table(v1.context, all, 256, 0);

	expect(count >= 4 && count % 2 == 0, "pairs");
	for (ssize_t i = 0; i + 1 < count; i += 2) {
		expect(all[i].gid_type == IBV_GID_TYPE_ROCE_V1, "v1 first");
		expect(all[i + 1].gid_type == IBV_GID_TYPE_ROCE_V2,
		       "v2 behind it");
		expect(all[i].gid_index % 2 == 0 &&
			       all[i + 1].gid_index == all[i].gid_index + 1,
		       "indices");
		expect(!memcmp(&all[i].gid, &all[i + 1].gid, 16), "one GID");
		expect(all[i].ndev_ifindex == all[i + 1].ndev_ifindex,
		       "one interface");
	}
	expect(entry(v1.gid_index).gid_type == IBV_GID_TYPE_ROCE_V1, "v1");
	expect(entry(v2.gid_index).gid_type == IBV_GID_TYPE_ROCE_V2, "v2");
}

/* --- connections --- */

struct pair {
	struct ibv_qp *a, *b;
};

static struct pair connect_pair(struct rc_device *from, struct rc_device *to)
{
	struct pair p = { rc_qp(from, cq, 8, 1, 0), rc_qp(to, cq, 8, 1, 0) };
	struct rc_address a = rc_address(from, p.a, 1),
			  b = rc_address(to, p.b, 2);

	rc_connect(from, p.a, &options, 1, &b);
	rc_connect(to, p.b, &options, 2, &a);
	return p;
}

static void destroy_pair(struct pair *p)
{
	must(!ibv_destroy_qp(p->a) && !ibv_destroy_qp(p->b), "ibv_destroy_qp");
}

static void write_to(struct ibv_qp *qp, unsigned from, unsigned to)
{
	struct ibv_sge sge = { (uintptr_t)(memory + from * ROOM), BYTES,
			       mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)(memory + to * ROOM), mr->rkey },
	}, *bad;

	memset(memory + from * ROOM, (int)(0x30 + from), ROOM);
	memset(memory + to * ROOM, 0, ROOM);
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void connections_of_both_versions(void)
{
	struct pair one = connect_pair(&v1, &v1), two = connect_pair(&v2, &v2);

	for (unsigned i = 0; i < 100; i++) {
		write_to(one.a, 0, 2);
		write_to(two.a, 1, 3);
		expect(completion().status == IBV_WC_SUCCESS, "status");
		expect(completion().status == IBV_WC_SUCCESS, "status");
		expect(memory[2 * ROOM + BYTES - 1] == 0x30, "v1's bytes");
		expect(memory[3 * ROOM + BYTES - 1] == 0x31, "v2's bytes");
	}
	destroy_pair(&one);
	destroy_pair(&two);
}

/* The ends of a connection must be of one version. */
static void connections_do_not_mix(void)
{
	struct rc_options was = options;
	struct pair p;

	options.timeout = 10;
	options.retry = 1;
	p = connect_pair(&v1, &v2);
	write_to(p.a, 0, 2);
	expect(completion().status == IBV_WC_RETRY_EXC_ERR, "status");
	expect(memory[2 * ROOM] == 0, "nothing is written");
	destroy_pair(&p);
	options = was;
}

/* --- datagrams --- */

static struct ibv_ah *handle_of(struct rc_device *d)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = d->gid,
			 .sgid_index = (uint8_t)d->gid_index,
			 .traffic_class = 0x60,
			 .flow_label = 0x54321,
			 .hop_limit = 7 },
	};
	struct ibv_ah *ah = ibv_create_ah(d->pd, &attr);

	must(ah, "ibv_create_ah");
	return ah;
}

static struct ibv_qp *datagram_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8,
			 .max_recv_wr = 8,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(v1.pd, &init);

	must(qp, "ibv_create_qp");
	rc_start_datagrams(qp, QKEY);
	return qp;
}

static void send_datagrams(struct ibv_qp *qp, struct ibv_ah *const ah[],
			   unsigned count, uint32_t to)
{
	struct ibv_sge sge = { (uintptr_t)(memory + 7 * ROOM), BYTES,
			       mr->lkey };
	struct ibv_send_wr wr[8] = { { 0 } }, *bad;

	memset(memory + 7 * ROOM, 0x77, ROOM);
	for (unsigned i = 0; i < count; i++) {
		wr[i] = (struct ibv_send_wr){
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.wr.ud = { ah[i], to, QKEY },
		};
	}
	must(!ibv_post_send(qp, wr, &bad), "ibv_post_send");
}

/* Returns the version of a datagram that arrived, by its header. */
static unsigned version_of(const struct ibv_wc *wc)
{
	const uint8_t *h = memory + wc->wr_id * ROOM;

	expect(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV,
	       "status, opcode");
	expect(wc->byte_len == GRH + BYTES && wc->wc_flags & IBV_WC_GRH,
	       "byte_len, wc_flags");
	expect(h[GRH] == 0x77 && h[GRH + BYTES - 1] == 0x77 &&
		       h[GRH + BYTES] == 0xee,
	       "bytes");
	return wc->sl == 0 ? 1 : 2;
}

static void check_grh(const uint8_t *h)
{
	static const uint8_t first[8] = { 0x66, 5, 0x43, 0x21, 0, 88, 0x1b };

	expect(!memcmp(h, first, 7), "the GRH's first word, length and kind");
	expect(h[7] != 0, "hop limit");
	expect(!memcmp(h + 8, &v1.gid, 16) && !memcmp(h + 24, &v1.gid, 16),
	       "GIDs");
}

static void answer(struct ibv_qp *qp, struct ibv_wc *wc, unsigned version,
		   struct ibv_qp *asker)
{
	struct ibv_grh *h = (struct ibv_grh *)(memory + wc->wr_id * ROOM);
	struct ibv_ah_attr attr;
	struct ibv_ah *back;
	struct ibv_wc got;

	must(!ibv_init_ah_from_wc(v1.context, 1, wc, h, &attr),
	     "ibv_init_ah_from_wc");
	expect(attr.grh.sgid_index ==
		       (version == 1 ? v1.gid_index : v2.gid_index),
	       "sgid_index of the answer");
	expect(attr.grh.traffic_class == 0x60, "traffic class of the answer");
	back = ibv_create_ah(v1.pd, &attr);
	must(back, "ibv_create_ah");
	receive(asker, 6);
	send_datagrams(qp, &back, 1, wc->src_qp);
	got = completion();
	expect(version_of(&got) == version, "version of the answer");
	must(!ibv_destroy_ah(back), "ibv_destroy_ah");
}

/* One queue pair sends both versions in one list of requests. */
static void datagrams_of_both_versions(void)
{
	struct ibv_qp *from = datagram_qp(), *to = datagram_qp();
	struct ibv_ah *one = handle_of(&v1), *two = handle_of(&v2);
	struct ibv_ah *const list[] = { one, two, two, one, one, two };
	unsigned seen[3] = { 0 };
	struct ibv_wc wc[6];

	for (unsigned i = 0; i < 6; i++)
		receive(to, i);
	send_datagrams(from, list, 6, to->qp_num);
	for (unsigned i = 0; i < 6; i++) {
		wc[i] = completion();
		seen[version_of(&wc[i])]++;
		if (wc[i].sl == 0)
			check_grh(memory + wc[i].wr_id * ROOM);
	}
	expect(seen[1] == 3 && seen[2] == 3, "three of each");
	for (unsigned i = 0; i < 6 && !problem; i++)
		answer(to, &wc[i], version_of(&wc[i]), from);
	must(!ibv_destroy_ah(one) && !ibv_destroy_ah(two), "ibv_destroy_ah");
	must(!ibv_destroy_qp(from) && !ibv_destroy_qp(to), "ibv_destroy_qp");
}

/* --- the bed --- */

static void open_device(void)
{
	rc_open(&v1, &options);
	v2 = v1;
	v2.gid_index = v1.gid_index + 1;
	cq = ibv_create_cq(v1.context, 64, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	mr = ibv_reg_mr(v1.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} cases[] = {
		{ "the table has pairs", table_has_pairs },
		{ "connections of both versions",
		  connections_of_both_versions },
		{ "connections do not mix", connections_do_not_mix },
		{ "datagrams of both versions", datagrams_of_both_versions },
	};
	int failed = 0;

	rc_read_options(&options, argc, argv);
	open_device();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		problem = NULL;
		cases[i].play();
		if (problem)
			printf("wrong: %s\n", problem);
		printf("%sok roce1: %s, IPv%d\n", problem ? "not " : "",
		       cases[i].name, options.family);
		failed |= problem != NULL;
	}
	must(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq), "teardown");
	rc_close(&v1);
	return failed;
}
