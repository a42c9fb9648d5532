/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows between two programs, whose adapters may be of different
 * makes.
 *
 *	windows_test [-d DEVICE] [-4 | -6] [-l]		the owner of the memory
 *	windows_test [-d DEVICE] [-4 | -6] [-l] HOST	its peer
 *
 * -l: the owner's adapter is lax: it checks only the bounds of the region, and
 * its receives do not report invalidations. Exit status 1, with a sentence:
 * something is not as it should be.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

#define REGION 8192
#define AT     1000 /* offset of the window from the region's start, in bytes */
#define BYTES  5000
#define WAIT   20 /* seconds to wait for a completion */

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static uint8_t memory[REGION];
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static bool lax;
static int tcp;

struct window {
	uint64_t addr;
	uint32_t key;
};

static void connect_queue_pairs(void)
{
	struct rc_address mine, theirs;

	cq = ibv_create_cq(device.context, 16, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, 8, 1, 0);
	mine = rc_address(&device, qp, 0x111111);
	tcp_swap(tcp, &mine, &theirs, sizeof(mine));
	rc_connect(&device, qp, &options, mine.psn, &theirs);
	tcp_barrier(tcp);
}

/* Disconnect. @mw: a window, or NULL. Some adapters keep a queue pair for long
 * while a window is bound to it. */
static void disconnect(struct ibv_mw *mw)
{
	tcp_barrier(tcp);
	if (mw)
		must(!ibv_dealloc_mw(mw), "ibv_dealloc_mw");
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
}

static struct ibv_wc expect(const char *what, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!rc_wait(cq, WAIT, &wc))
		die("%s: no completion", what);
	if (wc.status != status)
		die("%s: %s, not %s", what, ibv_wc_status_str(wc.status),
		    ibv_wc_status_str(status));
	return wc;
}

static void post(enum ibv_wr_opcode op, const struct window *w, uint64_t shift,
		 uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)memory, len, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = op,
					.send_flags = IBV_SEND_SIGNALED,
					.invalidate_rkey = w->key };

	wr.wr.rdma.remote_addr = w->addr + shift;
	wr.wr.rdma.rkey = w->key;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* Bind a window. The program chooses only the low 8 bits of its key. */
static void bind_window(struct ibv_mw *mw, uint64_t length, struct window *w)
{
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)memory + AT, length,
			       IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ },
	};
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key & 0xff;
	wr.bind_mw.bind_info = bind.bind_info;
	if (mw->type == IBV_MW_TYPE_1)
		must(!ibv_bind_mw(qp, mw, &bind), "ibv_bind_mw");
	else
		must(!ibv_post_send(qp, &wr, &bad), "IBV_WR_BIND_MW");
	if (expect("bind", IBV_WC_SUCCESS).opcode != IBV_WC_BIND_MW)
		die("the bind completes as something else");
	w->addr = bind.bind_info.addr;
	if (mw->type == IBV_MW_TYPE_2)
		/* some adapters do not store the new key in mw->rkey */
		mw->rkey = key;
	w->key = mw->rkey;
}

static void post_receive(void)
{
	struct ibv_recv_wr *bad, wr = { 0 };

	must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Take the window away: by the peer's SEND_INV, or by an empty bind. */
static void shut_window(struct ibv_mw *mw, const struct window *w)
{
	struct window none;
	struct ibv_wc wc;

	if (mw->type == IBV_MW_TYPE_1) {
		bind_window(mw, 0, &none);
		return;
	}
	wc = expect("receive", IBV_WC_SUCCESS);
	if (!lax &&
	    (!(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != w->key))
		die("the receive tells of no invalidation of 0x%x", w->key);
}

static void own(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(device.pd, type);
	struct window w;

	must(mw, "ibv_alloc_mw");
	memset(memory, 0x11, sizeof(memory));
	connect_queue_pairs();
	post_receive();
	bind_window(mw, BYTES, &w);
	tcp_send(tcp, &w, sizeof(w));
	tcp_barrier(tcp); /* barrier: the peer has written through the window */
	for (int i = 0; i < REGION; i++)
		if (memory[i] != (i >= AT && i < AT + BYTES ? 0x22 : 0x11))
			die("byte %d is 0x%x", i, memory[i]);
	shut_window(mw, &w);
	tcp_barrier(tcp);
	disconnect(NULL);

	connect_queue_pairs();
	bind_window(mw, BYTES, &w);
	tcp_send(tcp, &w, sizeof(w));
	disconnect(mw);
}

/* What the peer does: it uses the window of the memory's owner. */

static void use(enum ibv_mw_type type)
{
	struct window w;

	connect_queue_pairs();
	tcp_recv(tcp, &w, sizeof(w));
	memset(memory, 0x22, sizeof(memory));
	post(IBV_WR_RDMA_WRITE, &w, 0, BYTES);
	expect("a WRITE to the window", IBV_WC_SUCCESS);
	memset(memory, 0x33, sizeof(memory));
	post(IBV_WR_RDMA_READ, &w, 1, BYTES - 1);
	expect("a READ from the window", IBV_WC_SUCCESS);
	if (memory[0] != 0x22 || memory[BYTES - 2] != 0x22 ||
	    memory[BYTES - 1] != 0x33)
		die("what was read is not what was written");
	tcp_barrier(tcp);
	if (type == IBV_MW_TYPE_2) {
		post(IBV_WR_SEND_WITH_INV, &w, 0, 0);
		expect("a SEND with invalidate", IBV_WC_SUCCESS);
	}
	/* barrier: the window's owner has taken the window away */
	tcp_barrier(tcp);
	post(IBV_WR_RDMA_WRITE, &w, 0, 8);
	expect("a WRITE to a window that is shut", IBV_WC_REM_ACCESS_ERR);
	disconnect(NULL);

	connect_queue_pairs();
	tcp_recv(tcp, &w, sizeof(w));
	post(IBV_WR_RDMA_WRITE, &w, 1, BYTES);
	expect("a WRITE beyond the window",
	       lax ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	disconnect(NULL);
}

int main(int argc, char **argv)
{
	const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };
	int c;

	while ((c = getopt(argc, argv, "d:46l")) != -1) {
		switch (c) {
		case 'd':
			options.device = optarg;
			break;
		case '4':
		case '6':
			options.family = c - '0';
			break;
		case 'l':
			lax = true;
			break;
		default:
			return 2;
		}
	}
	options.host = argv[optind];
	rc_open(&device, &options);
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	must(mr, "ibv_reg_mr");
	tcp = tcp_meet(&options);
	for (int i = 0; i < 2; i++) {
		if (options.host)
			use(types[i]);
		else
			own(types[i]);
		printf("windows of type %d: ok\n", (int)types[i]);
	}
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}
