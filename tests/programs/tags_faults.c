/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of tagged messages; each fault ends its connection. */
#include "tags_test.h"

/*
 * Faults, each of which ends its connection. The first message is too long for
 * its buffer, and the data of the second has a key that does not exist.
 */

#define TOO_LONG 0x7777
#define NO_KEY	 0x8888

/* Is @got a status with which a request ends when the connection fails? The
 * side that refuses sends one error, and its queue pair ends. If that error is
 * lost, the other side fails only after all its retries. */
static bool is_end(enum ibv_wc_status got, enum ibv_wc_status expected)
{
	return got == expected || (lossy && got == IBV_WC_RETRY_EXC_ERR &&
				   (expected == IBV_WC_REM_ACCESS_ERR ||
				    expected == IBV_WC_REM_INV_REQ_ERR));
}

static void add_small(uint64_t tag)
{
	struct ibv_sge sge = { (uintptr_t)mem.data[0], 100, mr->lkey };
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_ADD };

	wr.tm.add.recv_wr_id = wr.tm.add.tag = tag;
	wr.tm.add.mask = UINT64_MAX;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	run(&wr);
}

static void expect_end(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!rc_wait(ibv_cq_ex_to_cq(tag_cq), 20, &wc))
		die("%#llx: no completion", (unsigned long long)wr_id);
	if (wc.wr_id != wr_id || !is_end(wc.status, status))
		die("%#llx: %s instead of %#llx: %s",
		    (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
		    (unsigned long long)wr_id, ibv_wc_status_str(status));
}

void receive_faults(int tcp)
{
	struct ibv_poll_cq_attr attr = { 0 };

	/* Take the completions of the last messages from the queue. */
	while (ibv_start_poll(tag_cq, &attr) == 0)
		ibv_end_poll(tag_cq);
	add_small(TOO_LONG);
	add_small(NO_KEY);
	tcp_barrier(tcp);
	expect_end(TOO_LONG, IBV_WC_LOC_LEN_ERR);
	tcp_barrier(tcp);
	/* first completion: the message matched the tagged buffer */
	expect_end(NO_KEY, IBV_WC_SUCCESS);
	expect_end(NO_KEY, IBV_WC_REM_ACCESS_ERR);
	tcp_barrier(tcp);
}

static void send_fault(unsigned link, uint8_t op, uint64_t tag, uint32_t len,
		       enum ibv_wc_status status)
{
	struct {
		struct ibv_tmh tmh;
		struct ibv_rvh rvh;
	} *headers = (void *)mem.staging[0];
	struct ibv_wc wc;

	*headers =
		(__typeof__(*headers)){ { .opcode = op, .tag = htobe64(tag) },
					{ htobe64((uintptr_t)mem.data), 0,
					  htobe32(100) } };
	post_send(qps[link], tag, IBV_WR_SEND, headers, len, NULL);
	do
		if (!rc_wait(cq, 20, &wc))
			die("%#llx: no completion", (unsigned long long)tag);
	while (wc.wr_id != tag); /* skip completions of flushed RECVs */
	if (!is_end(wc.status, status))
		die("%#llx: sender: %s", (unsigned long long)tag,
		    ibv_wc_status_str(wc.status));
}

void send_faults(int tcp)
{
	tcp_barrier(tcp);
	send_fault(0, IBV_TMH_EAGER, TOO_LONG, 16 + 101,
		   IBV_WC_REM_INV_REQ_ERR);
	tcp_barrier(tcp);
	send_fault(1, IBV_TMH_RNDV, NO_KEY, HEADERS, IBV_WC_SUCCESS);
	tcp_barrier(tcp);
}
