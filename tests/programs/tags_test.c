/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching as message passing libraries use it:
 *
 *	tags_test [options] [-l]	receives
 *	tags_test [options] [-l] HOST	sends
 *
 * -l: packets are lost on the way.
 * Both know from one seed which messages there are: eager, rendezvous and
 * without tag, of several connections and few tags. Receives are posted now
 * before and now after their message comes. The rule is MPI's: the nth receive
 * of a tag gets the nth message of it, whoever matched them.
 */
#include <infiniband/tm_types.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define MESSAGES 6000u
#define LINKS	 3u /* with tags; one more is plain: software reads by it */
#define SLOTS	 12u
#define LONGEST	 60000u
#define EAGER	 3000u
#define RECEIVE	 4096u
#define RECEIVES 64u
#define HEADERS	 (sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh))
#define STRAYS	 64u /* more than can wait */
#define AT_WORK	 8u  /* messages that the sender has under way */
#define DELETED	 (1ull << 32)

struct plan {
	unsigned link;
	uint8_t op; /* enum ibv_tmh_op */
	bool tight; /* its buffer is too small for a rendezvous */
	uint64_t tag;
	uint32_t length;
};

enum state { TO_COME, LISTED, LEAVING, MATCHED, READING, DONE };

/* A message that met no buffer. */
struct stray {
	bool waits;
	uint64_t tag;
	uint32_t nth, length;
	uint8_t bytes[RECEIVE];
};

static struct rc_options options = RC_OPTIONS;
static bool lossy;
static struct rc_device device;
static struct ibv_cq *cq, *plain_cq;
static struct ibv_cq_ex *tag_cq;
static struct ibv_srq *srq;
static struct ibv_qp *qps[LINKS + 1];
static struct ibv_mr *mr;
static struct plan plans[MESSAGES];

/* One registered piece of memory. */
static struct {
	uint8_t data[SLOTS][LONGEST];
	uint8_t staging[RECEIVES][RECEIVE];
} mem;

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

static void fill(unsigned nth, uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = byte_of(nth, i);
}

static void compare(unsigned nth, const uint8_t *bytes, uint32_t len)
{
	if (len != plans[nth].length)
		die("message %u: %u bytes, must be %u", nth, len,
		    plans[nth].length);
	for (uint32_t i = 0; i < len; i++)
		if (bytes[i] != byte_of(nth, i))
			die("message %u: byte %u is %#x, must be %#x", nth, i,
			    bytes[i], byte_of(nth, i));
}

static struct ibv_tmh header(uint8_t op, unsigned nth)
{
	return (struct ibv_tmh){ .opcode = op,
				 .app_ctx = htobe32(nth),
				 .tag = htobe64(plans[nth].tag) };
}

static void post_send(struct ibv_qp *qp, uint64_t wr_id,
		      enum ibv_wr_opcode opcode, void *at, uint32_t len,
		      const struct ibv_rvh *there)
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

/*
 * The sender.
 */

static unsigned busy[AT_WORK]; /* words that are still to come of it */

static void post_fin_receive(unsigned link)
{
	struct ibv_sge sge = { (uintptr_t)mem.staging[16 + link], RECEIVE,
			       mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 1000 + link, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(qps[link], &wr, &bad), "ibv_post_recv");
}

/* A link has one receive: the next FIN waits until this is looked at. */
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

static void send_all(void)
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

/*
 * The receiver.
 */

static enum state states[MESSAGES];
static unsigned slots[MESSAGES]; /* of its buffer */
static uint32_t handles[MESSAGES];
static struct stray *met[MESSAGES]; /* LEAVING: what it is to have */
static bool slot_used[SLOTS];
static struct stray strays[STRAYS];
static unsigned stray_count, done, next_receive, listed, reported;
static uint32_t unexpected;
static struct {
	unsigned eager, rndv, software, stray, taken_back;
} seen;

static void post_spare(unsigned nth)
{
	struct ibv_sge sge = { (uintptr_t)mem.staging[nth], RECEIVE, mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = nth, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

static void run(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;

	wr->flags |= IBV_OPS_TM_SYNC;
	wr->tm.unexpected_cnt = reported = unexpected;
	must(!ibv_post_srq_ops(srq, wr, &bad), "ibv_post_srq_ops");
}

static void finish(unsigned nth, uint32_t length)
{
	compare(nth, mem.data[slots[nth]], length);
	slot_used[slots[nth]] = false;
	states[nth] = DONE;
	done++;
}

static void read_in_software(unsigned nth, const void *headers)
{
	struct ibv_rvh rvh;

	memcpy(&rvh, (const uint8_t *)headers + sizeof(struct ibv_tmh),
	       sizeof(rvh));
	states[nth] = READING;
	seen.software++;
	post_send(qps[LINKS], nth, IBV_WR_RDMA_READ, mem.data[slots[nth]],
		  be32toh(rvh.len), &rvh);
}

/* The program's own matching has brought them together. */
static void deliver(unsigned nth, struct stray *s)
{
	if (s->nth != nth)
		die("receive %u has message %u", nth, s->nth);
	s->waits = false;
	if (plans[nth].op == IBV_TMH_RNDV) {
		read_in_software(nth, s->bytes);
		return;
	}
	memcpy(mem.data[slots[nth]], s->bytes + sizeof(struct ibv_tmh),
	       s->length - sizeof(struct ibv_tmh));
	finish(nth, s->length - (uint32_t)sizeof(struct ibv_tmh));
}

static struct stray *find_stray(uint64_t tag)
{
	unsigned oldest = stray_count > STRAYS ? stray_count - STRAYS : 0;

	for (unsigned i = oldest; i < stray_count; i++)
		if (strays[i % STRAYS].waits && strays[i % STRAYS].tag == tag)
			return &strays[i % STRAYS];
	return NULL;
}

static void post_receive(unsigned nth)
{
	const struct plan *p = &plans[nth];
	struct stray *s = find_stray(p->tag);
	struct ibv_sge sge = { .lkey = mr->lkey };
	struct ibv_ops_wr wr = { .wr_id = nth, .opcode = IBV_WR_TAG_ADD };
	unsigned slot = 0;

	while (slot_used[slot])
		slot++;
	slot_used[slot] = true;
	slots[nth] = slot;
	if (s) {
		deliver(nth, s);
		return;
	}
	sge.addr = (uintptr_t)mem.data[slot];
	sge.length = p->op == IBV_TMH_RNDV && p->tight ? 40 : p->length;
	wr.tm.add.recv_wr_id = nth;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = p->tag;
	wr.tm.add.mask = UINT64_MAX;
	run(&wr);
	handles[nth] = wr.tm.handle;
	states[nth] = LISTED;
	listed++;
}

/* The first receive that it is for, in the order of posting. */
static void match_in_software(struct stray *s)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_DEL,
				 .flags = IBV_OPS_SIGNALED };

	for (unsigned i = 0; i < next_receive; i++) {
		if (states[i] != LISTED || plans[i].tag != s->tag)
			continue;
		s->waits = false;
		states[i] = LEAVING;
		met[i] = s;
		wr.wr_id = DELETED | i;
		wr.tm.handle = handles[i];
		run(&wr);
		seen.taken_back++;
		return;
	}
}

static void take_stray(uint64_t spare, uint32_t len)
{
	struct stray *s = &strays[stray_count++ % STRAYS];
	const struct ibv_tmh *tmh = (void *)s->bytes;

	memcpy(s->bytes, mem.staging[spare], len);
	s->waits = true;
	s->length = len;
	s->tag = be64toh(tmh->tag);
	s->nth = be32toh(tmh->app_ctx);
	post_spare((unsigned)spare);
	unexpected++;
	seen.stray++;
	match_in_software(s);
}

static void take_untagged(uint64_t spare, uint32_t len)
{
	const struct ibv_tmh *tmh = (void *)mem.staging[spare];
	unsigned nth = be32toh(tmh->app_ctx);

	if (nth >= MESSAGES || plans[nth].op != IBV_TMH_NO_TAG)
		die("message %u had a tag", nth);
	compare(nth, mem.staging[spare] + sizeof(*tmh),
		len - (uint32_t)sizeof(*tmh));
	post_spare((unsigned)spare);
	done++;
}

static void take_match(unsigned nth, unsigned flags)
{
	struct ibv_wc_tm_info info;

	ibv_wc_read_tm_info(tag_cq, &info);
	if (nth >= MESSAGES || states[nth] != LISTED)
		die("a match of %u, which is not in the list", nth);
	if (info.priv != nth || info.tag != plans[nth].tag)
		die("receive %u has message %u", nth, info.priv);
	states[nth] = MATCHED;
	listed--;
	if (tag_cq->status == IBV_WC_TM_RNDV_INCOMPLETE)
		read_in_software(nth, mem.data[slots[nth]]);
	else if (flags & IBV_WC_TM_DATA_VALID)
		seen.eager++;
	else
		seen.rndv += plans[nth].op == IBV_TMH_RNDV;
}

static void take_tagged(void)
{
	uint32_t len = ibv_wc_read_byte_len(tag_cq);
	unsigned flags = ibv_wc_read_wc_flags(tag_cq);
	unsigned nth = (unsigned)tag_cq->wr_id;

	if (!(flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID))) {
		take_stray(tag_cq->wr_id, len);
		return;
	}
	if (flags & IBV_WC_TM_MATCH)
		take_match(nth, flags);
	if (flags & IBV_WC_TM_DATA_VALID && states[nth] == MATCHED)
		finish(nth, len);
}

static void take_completion(void)
{
	unsigned nth = (unsigned)tag_cq->wr_id;

	if (tag_cq->status && tag_cq->status != IBV_WC_TM_RNDV_INCOMPLETE)
		die("receiver, %llu: %s", (unsigned long long)tag_cq->wr_id,
		    ibv_wc_status_str(tag_cq->status));
	switch ((int)ibv_wc_read_opcode(tag_cq)) {
	case IBV_WC_TM_RECV:
		take_tagged();
		return;
	case IBV_WC_TM_NO_TAG:
		take_untagged(tag_cq->wr_id, ibv_wc_read_byte_len(tag_cq));
		return;
	case IBV_WC_TM_DEL:
		listed--;
		deliver(nth, met[nth]);
		return;
	default:
		die("opcode %d", (int)ibv_wc_read_opcode(tag_cq));
	}
}

static bool poll_tags(void)
{
	struct ibv_poll_cq_attr attr = { 0 };

	if (ibv_start_poll(tag_cq, &attr))
		return false;
	take_completion();
	ibv_end_poll(tag_cq);
	return true;
}

/* READs by software end with its own FIN. */
static bool poll_plain(void)
{
	struct {
		struct ibv_tmh tmh;
		struct ibv_rvh rvh;
	} fin = { 0 };
	struct ibv_wc wc;

	if (ibv_poll_cq(plain_cq, 1, &wc) <= 0)
		return false;
	if (wc.status)
		die("software, %llu: %s", (unsigned long long)wc.wr_id,
		    ibv_wc_status_str(wc.status));
	if (wc.opcode != IBV_WC_RDMA_READ)
		return true;
	fin.tmh = header(IBV_TMH_FIN, (unsigned)wc.wr_id);
	finish((unsigned)wc.wr_id, plans[wc.wr_id].length);
	post_send(qps[LINKS], wc.wr_id, IBV_WR_SEND, &fin, sizeof(fin), NULL);
	return true;
}

static unsigned slots_used(void)
{
	unsigned used = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		used += slot_used[i];
	return used;
}

/* The next that has a tag. */
static void post_next(void)
{
	while (next_receive < MESSAGES &&
	       plans[next_receive].op == IBV_TMH_NO_TAG)
		next_receive++;
	if (next_receive == MESSAGES || slots_used() == SLOTS)
		return;
	next_receive++;
	post_receive(next_receive - 1);
}

static void receive_all(void)
{
	struct ibv_ops_wr sync = { .opcode = IBV_WR_TAG_SYNC };
	struct rng r = { 99 };
	double idle_since = seconds();

	for (unsigned i = 0; i < RECEIVES; i++)
		post_spare(i);
	while (done < MESSAGES) {
		/* Now and then without a look at what has come. */
		if (rng_below(&r, 20) == 0)
			for (uint64_t n = rng_below(&r, SLOTS); n > 0; n--)
				post_next();
		if (poll_tags() || poll_plain()) {
			idle_since = seconds();
			continue;
		}
		if (reported != unexpected)
			run(&sync);
		if (seconds() - idle_since > 20)
			die("%u of %u messages came, %u receives wait", done,
			    MESSAGES, listed);
	}
	if (!seen.eager || !seen.rndv || !seen.software || !seen.stray ||
	    !seen.taken_back)
		die("%u, %u, %u, %u, %u: not of every kind", seen.eager,
		    seen.rndv, seen.software, seen.stray, seen.taken_back);
	printf("%u messages, each where it belongs: %u unexpected, %u rendezvous by the adapter, %u by the program\n",
	       MESSAGES, seen.stray, seen.rndv, seen.software);
}

/*
 * At the end, what goes wrong: each ends its connection. The first message is
 * too long for its buffer, and the second's data is by a key that there is not.
 */

#define TOO_LONG 0x7777
#define NO_KEY	 0x8888

/* Who has refused says so once, and its queue pair has ended: where that is
 * lost, the other asks until it has asked often enough. */
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

static void receive_faults(int tcp)
{
	struct ibv_poll_cq_attr attr = { 0 };

	while (ibv_start_poll(tag_cq, &attr) == 0) /* the last ones' */
		ibv_end_poll(tag_cq);
	add_small(TOO_LONG);
	add_small(NO_KEY);
	tcp_barrier(tcp);
	expect_end(TOO_LONG, IBV_WC_LOC_LEN_ERR);
	tcp_barrier(tcp);
	expect_end(NO_KEY, IBV_WC_SUCCESS); /* it matched */
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
	while (wc.wr_id != tag); /* receives are flushed */
	if (!is_end(wc.status, status))
		die("%#llx: sender: %s", (unsigned long long)tag,
		    ibv_wc_status_str(wc.status));
}

static void send_faults(int tcp)
{
	tcp_barrier(tcp);
	send_fault(0, IBV_TMH_EAGER, TOO_LONG, 16 + 101,
		   IBV_WC_REM_INV_REQ_ERR);
	tcp_barrier(tcp);
	send_fault(1, IBV_TMH_RNDV, NO_KEY, HEADERS, IBV_WC_SUCCESS);
	tcp_barrier(tcp);
}

/*
 * Both.
 */

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
