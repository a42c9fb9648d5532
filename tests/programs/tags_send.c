/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender of tagged messages. */
#include "tags_test.h"

/* number of answers that each message under way still waits for */
static unsigned busy[AT_WORK];

void post_fin_receive(unsigned link)
{
	struct ibv_sge sge = { (uintptr_t)mem.staging[16 + link], RECEIVE,
			       mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 1000 + link, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qps[link], &wr, &bad), "ibv_post_recv");
}

/* Wait for a FIN. A link has one receive, so the next FIN waits until this one
 * is handled. */
static void hear(void)
{
	struct ibv_tmh *fin;
	struct ibv_wc wc;
	unsigned nth;

	if (!rc_wait(cq, 20, &wc))
		die("no completion");
	if (wc.status)
		die("sender, %llu: %s", (unsigned long long)wc.wr_id,
		    ibv_wc_status_str(wc.status));
	if (wc.opcode != IBV_WC_RECV) {
		busy[wc.wr_id % AT_WORK]--;
		return;
	}
	fin = (void *)mem.staging[16 + wc.wr_id - 1000];
	nth = be32toh(fin->app_ctx);
	if (fin->opcode != IBV_TMH_FIN || nth >= MESSAGES ||
	    wc.byte_len != HEADERS || plans[nth].op != IBV_TMH_RNDV)
		die("this is no FIN: opcode %u, %u bytes", fin->opcode,
		    wc.byte_len);
	busy[nth % AT_WORK]--;
	post_fin_receive((unsigned)(wc.wr_id - 1000));
}

static void send_message(unsigned nth)
{
	const struct plan *p = &plans[nth];
	uint8_t *at = mem.staging[nth % AT_WORK];
	uint8_t *data = mem.data[nth % AT_WORK];
	struct ibv_tmh tmh = header(p->op, nth);
	struct ibv_rvh rvh = { htobe64((uintptr_t)data), htobe32(mr->rkey),
			       htobe32(p->length) };
	uint32_t len = (uint32_t)sizeof(tmh);

	memcpy(at, &tmh, sizeof(tmh));
	if (p->op == IBV_TMH_RNDV) {
		memcpy(at + len, &rvh, sizeof(rvh));
		len += (uint32_t)sizeof(rvh);
		fill(nth, data, p->length);
	} else {
		fill(nth, at + len, p->length);
		len += p->length;
	}
	busy[nth % AT_WORK] = p->op == IBV_TMH_RNDV ? 2 : 1;
	post_send(qps[p->link], nth, IBV_WR_SEND, at, len, NULL);
}

void send_all(void)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		while (busy[i % AT_WORK])
			hear();
		send_message(i);
	}
	for (unsigned i = 0; i < AT_WORK; i++)
		while (busy[i])
			hear();
	printf("%u messages\n", MESSAGES);
}
