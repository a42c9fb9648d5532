/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver of tagged messages, and its matching by software. */
#include "tags_test.h"

static enum state states[MESSAGES];
/* index of each message's buffer in mem.data */
static unsigned slots[MESSAGES];
static uint32_t handles[MESSAGES];
/* indexed by buffer, while its removal (DEL) is under way: the message that the
 * program has matched to that buffer */
static struct stray *met[MESSAGES];
static bool slot_used[SLOTS];
static struct stray strays[STRAYS];
static unsigned stray_count, done, next_receive, listed, reported;
static uint32_t unexpected;
struct seen {
	unsigned eager, rndv, software, stray, taken_back;
};
static struct seen seen;

static void post_spare(unsigned nth)
{
	struct ibv_sge sge = { (uintptr_t)mem.staging[nth], RECEIVE, mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = nth, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

void run(struct ibv_ops_wr *wr)
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

/* Check the message @s, which the program itself matched to buffer @nth. */
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

/* Find the first receive that matches the message, in the order of posting. */
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

/* Poll for READs that the program posted itself, and send their FIN. */
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

/* Post the next tagged buffer. */
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

void receive_all(void)
{
	struct ibv_ops_wr sync = { .opcode = IBV_WR_TAG_SYNC };
	struct rng r = { 99 };
	double idle_since = seconds();

	for (unsigned i = 0; i < RECEIVES; i++)
		post_spare(i);
	while (done < MESSAGES) {
		/* In one of 20 turns post buffers without polling before. */
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
