/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packet queue pairs of one program on one port: flow rules that steer
 * frames to queue pairs; counters, drops and VLAN tags; sent frames do not come
 * back to their sender.
 *
 *	raw_test DEVICE INTERFACE
 *
 * Prints "ok" or "not ok" for each case. Exit status 1: one of them failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rc.h"

#define SLOTS	    8
#define SLOT_BYTES  512
#define SEND_AT	    (3 * SLOTS * SLOT_BYTES)
#define FRAME_BYTES 100
#define COMES	    1.0 /* seconds to wait for a frame that must come */
/* seconds to wait for a frame that must not come */
#define STAYS_AWAY   0.05
#define VLAN_TYPE    0x8100
#define TAGGED_BYTES (FRAME_BYTES + 4)

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static uint8_t memory[SEND_AT + 16384];
static struct ibv_mr *mr;
static uint8_t own_mac[6];
static const uint8_t group_mac[6] = { 1, 0, 0x5e, 1, 2, 3 };
static bool failed;

static struct side {
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	uint8_t *slots;
	unsigned posted;
} sides[3], *const from = &sides[0], *const to = &sides[1],
		   *const other = &sides[2];

/* The fields of a completion that a case checks. */
struct seen {
	uint64_t wr_id;
	enum ibv_wc_status status;
	uint32_t bytes, tag;
};

static void post_receive(struct side *s, uint32_t bytes)
{
	unsigned slot = s->posted++ % SLOTS;
	struct ibv_sge sge = { (uintptr_t)s->slots + slot * SLOT_BYTES, bytes,
			       mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	memset(s->slots + slot * SLOT_BYTES, 0xee, SLOT_BYTES);
	must(!ibv_post_recv(s->qp, &wr, &bad), "ibv_post_recv");
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to RTS");
}

static void open_side(struct side *s)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 64,
					  .wc_flags = IBV_WC_EX_WITH_BYTE_LEN |
						      IBV_WC_EX_WITH_FLOW_TAG };
	struct ibv_qp_init_attr qp = { .cap = { SLOTS, SLOTS, 1, 1, 0 },
				       .qp_type = IBV_QPT_RAW_PACKET,
				       .sq_sig_all = 1 };

	s->channel = ibv_create_comp_channel(device.context);
	must(s->channel, "ibv_create_comp_channel");
	cq.channel = s->channel;
	s->cq = ibv_create_cq_ex(device.context, &cq);
	must(s->cq, "ibv_create_cq_ex");
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(s->cq);
	s->qp = ibv_create_qp(device.pd, &qp);
	must(s->qp, "ibv_create_qp");
	s->slots = memory + (s - sides) * SLOTS * SLOT_BYTES;
	s->posted = 0;
	to_rts(s->qp);
	for (unsigned i = 0; i < 4; i++)
		post_receive(s, SLOT_BYTES);
}

static void close_side(struct side *s)
{
	must(!ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq)), "ibv_destroy_cq");
	must(!ibv_destroy_comp_channel(s->channel), "ibv_destroy_comp_channel");
}

static bool wait_for(struct side *s, double limit, struct seen *seen)
{
	struct ibv_poll_cq_attr none = { 0 };
	double end = seconds() + limit;

	while (ibv_start_poll(s->cq, &none))
		if (seconds() > end)
			return false;
	seen->wr_id = s->cq->wr_id;
	seen->status = s->cq->status;
	seen->bytes = ibv_wc_read_byte_len(s->cq);
	seen->tag = ibv_wc_read_flow_tag(s->cq);
	ibv_end_poll(s->cq);
	return true;
}

/* Write a frame of UDP over IPv4 over Ethernet; @vlan: a tag, or 0. */
static uint32_t write_frame(uint8_t *f, const uint8_t dst[6], uint16_t vlan,
			    uint16_t port)
{
	static const uint8_t ip[] = { 0x45, 0, 0,  86, 0, 0, 0, 0, 64, 17,
				      0,    0, 10, 9,  8, 7, 1, 2, 3,  4 };
	uint16_t words[4] = { htons(4000), htons(port), htons(66), 0 };
	uint16_t tag[2] = { htons(VLAN_TYPE), htons(vlan) };
	uint16_t type = htons(0x800);
	uint8_t *at = f;

	at = (uint8_t *)memcpy(at, dst, 6) + 6;
	at = (uint8_t *)memcpy(at, own_mac, 6) + 6;
	if (vlan)
		at = (uint8_t *)memcpy(at, tag, 4) + 4;
	at = (uint8_t *)memcpy(at, &type, 2) + 2;
	at = (uint8_t *)memcpy(at, ip, sizeof(ip)) + sizeof(ip);
	at = (uint8_t *)memcpy(at, words, 8) + 8;
	memset(at, (uint8_t)port, FRAME_BYTES - 42);
	return vlan ? TAGGED_BYTES : FRAME_BYTES;
}

/* Send @len bytes of side @s. Returns the status of the completion. */
static enum ibv_wc_status send_bytes(struct side *s, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)memory + SEND_AT, len, mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = 99,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND };
	struct seen seen;

	must(!ibv_post_send(s->qp, &wr, &bad), "ibv_post_send");
	/* Skip frames that the host's own network stack sends: a rule for all
	 * frames lets these in, too. */
	for (;;) {
		if (!wait_for(s, COMES, &seen))
			die("a send does not complete");
		if (seen.wr_id == 99)
			return seen.status;
		post_receive(s, SLOT_BYTES);
	}
}

static void send_frame(const uint8_t dst[6], uint16_t vlan, uint16_t port)
{
	uint32_t len = write_frame(memory + SEND_AT, dst, vlan, port);

	if (send_bytes(from, len) != IBV_WC_SUCCESS)
		die("a frame is not sent");
}

/* Has the frame that was sent last arrived whole, with its tag? Posts one more
 * receive. */
static bool arrives(struct side *s, uint32_t len, uint32_t tag)
{
	struct seen seen;

	if (!wait_for(s, COMES, &seen))
		return false;
	post_receive(s, SLOT_BYTES);
	return seen.status == IBV_WC_SUCCESS && seen.bytes == len &&
	       seen.tag == tag &&
	       !memcmp(s->slots + seen.wr_id * SLOT_BYTES, memory + SEND_AT,
		       len);
}

static bool stays_away(struct side *s)
{
	struct seen seen;

	return !wait_for(s, STAYS_AWAY, &seen);
}

/* Does the frame that was sent last stay away? Other frames may come. */
static bool sent_stays_away(struct side *s)
{
	struct seen seen;

	while (wait_for(s, STAYS_AWAY, &seen)) {
		if (seen.bytes == FRAME_BYTES &&
		    !memcmp(s->slots + seen.wr_id * SLOT_BYTES,
			    memory + SEND_AT, FRAME_BYTES))
			return false;
		post_receive(s, SLOT_BYTES);
	}
	return true;
}

struct rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_tcp_udp udp;
	struct ibv_flow_spec_action_tag tag;
	union {
		struct ibv_flow_spec_action_drop drop;
		struct ibv_flow_spec_counter_action count;
	};
} __attribute__((packed, aligned(8)));

/* Returns a rule for UDP to @port at the address @dst, tagged with the port. */
static struct rule rule_for(const uint8_t dst[6], uint16_t port)
{
	struct rule r = {
		.attr = { .size = sizeof(r), .num_of_specs = 3, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(r.udp) },
		.tag = { .type = IBV_FLOW_SPEC_ACTION_TAG,
			 .size = sizeof(r.tag),
			 .tag_id = port },
	};

	memcpy(r.eth.val.dst_mac, dst, 6);
	memset(r.eth.mask.dst_mac, 0xff, 6);
	r.udp.val.dst_port = htons(port);
	r.udp.mask.dst_port = 0xffff;
	return r;
}

static struct ibv_flow *steer(struct side *s, struct rule r)
{
	struct ibv_flow *flow = ibv_create_flow(s->qp, &r.attr);

	must(flow, "ibv_create_flow");
	return flow;
}

static struct ibv_flow *steer_all(struct side *s, enum ibv_flow_attr_type type)
{
	struct rule r = {
		.attr = { .type = type, .size = sizeof(r.attr), .port = 1 }
	};

	return steer(s, r);
}

static void forget(struct ibv_flow *flow)
{
	must(!ibv_destroy_flow(flow), "ibv_destroy_flow");
}

static bool nothing_without_a_rule(void)
{
	send_frame(own_mac, 0, 7);
	return stays_away(to) && stays_away(from);
}

static bool a_rule_its_tag_and_its_end(void)
{
	struct ibv_flow *flow = steer(to, rule_for(own_mac, 7));
	bool good;

	send_frame(own_mac, 0, 8);
	good = stays_away(to);
	send_frame(own_mac, 0, 7);
	good = arrives(to, FRAME_BYTES, 7) && stays_away(other) && good;
	forget(flow);
	send_frame(own_mac, 0, 7);
	return stays_away(to) && good;
}

static bool only_what_an_adapter_loops_back(void)
{
	static const uint8_t away[6] = { 2, 0, 0, 0, 0, 9 };
	struct ibv_flow *one = steer(to, rule_for(away, 7)),
			*two = steer(to, rule_for(group_mac, 7));
	bool good;

	send_frame(away, 0, 7);
	good = stays_away(to);
	send_frame(group_mac, 0, 7);
	good = arrives(to, FRAME_BYTES, 7) && good;
	forget(one);
	forget(two);
	return good;
}

static bool own_frames_do_not_come_back(void)
{
	struct ibv_flow *flow = steer_all(from, IBV_FLOW_ATTR_ALL_DEFAULT);
	bool good;

	send_frame(group_mac, 0, 7);
	good = sent_stays_away(from);
	forget(flow);
	return good;
}

static bool the_same_rule_is_for_both(void)
{
	struct ibv_flow *one = steer(to, rule_for(group_mac, 7)),
			*two = steer(other, rule_for(group_mac, 7));
	bool good;

	send_frame(group_mac, 0, 7);
	good = arrives(to, FRAME_BYTES, 7) && arrives(other, FRAME_BYTES, 7);
	forget(one);
	forget(two);
	return good;
}

static bool the_higher_priority_has_it(void)
{
	struct rule low = rule_for(own_mac, 7);
	struct ibv_flow *one, *two, *rest;
	bool good;

	low.attr.priority = 5;
	low.attr.num_of_specs = 1;
	rest = steer_all(from, IBV_FLOW_ATTR_ALL_DEFAULT);
	one = steer(to, low);
	two = steer(other, rule_for(own_mac, 7));
	send_frame(own_mac, 0, 7);
	good = arrives(other, FRAME_BYTES, 7) && stays_away(to);
	send_frame(own_mac, 0, 8);
	good = arrives(to, FRAME_BYTES, 0) && stays_away(other) && good;
	forget(one);
	forget(two);
	forget(rest);
	return good;
}

static bool a_sniffer_takes_nothing_away(void)
{
	static const uint8_t away[6] = { 2, 0, 0, 0, 0, 9 };
	struct ibv_flow *one = steer(to, rule_for(own_mac, 7)),
			*all = steer_all(other, IBV_FLOW_ATTR_SNIFFER);
	bool good;

	send_frame(own_mac, 0, 7);
	good = arrives(to, FRAME_BYTES, 7) && arrives(other, FRAME_BYTES, 0);
	send_frame(away, 0, 7);
	good = arrives(other, FRAME_BYTES, 0) && stays_away(to) && good;
	forget(one);
	forget(all);
	return good;
}

static bool tags_stay_in_frames_and_rules(void)
{
	struct rule r = rule_for(own_mac, 7);
	struct ibv_flow *flow;
	bool good;

	r.eth.val.vlan_tag = htons(0x0123);
	r.eth.mask.vlan_tag = htons(0x0fff);
	flow = steer(to, r);
	send_frame(own_mac, 0, 7);
	send_frame(own_mac, 0x0124, 7);
	good = stays_away(to);
	send_frame(own_mac, 0xa123, 7);
	good = arrives(to, TAGGED_BYTES, 7) && good;
	forget(flow);
	return good;
}

static bool drops_and_counts(void)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *c = ibv_create_counters(device.context, &init);
	struct ibv_counter_attach_attr bytes = { IBV_COUNTER_BYTES, 1, 0 },
				       packets = { IBV_COUNTER_PACKETS, 0, 0 };
	struct rule drop = rule_for(own_mac, 7), count = rule_for(own_mac, 8);
	struct ibv_flow *one, *two;
	uint64_t values[2];
	bool good;

	must(c, "ibv_create_counters");
	must(!ibv_attach_counters_point_flow(c, &bytes, NULL), "attach");
	must(!ibv_attach_counters_point_flow(c, &packets, NULL), "attach");
	drop.attr.num_of_specs = count.attr.num_of_specs = 4;
	drop.drop =
		(struct ibv_flow_spec_action_drop){ IBV_FLOW_SPEC_ACTION_DROP,
						    sizeof(drop.drop) };
	count.count = (struct ibv_flow_spec_counter_action){
		IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count.count), c
	};
	one = steer(to, drop);
	two = steer(to, count);
	send_frame(own_mac, 0, 7);
	good = stays_away(to);
	for (int i = 0; i < 3; i++) {
		send_frame(own_mac, 0, 8);
		good = arrives(to, FRAME_BYTES, 8) && good;
	}
	must(!ibv_read_counters(c, values, 2, 0), "ibv_read_counters");
	good = good && values[0] == 3 && values[1] == 3 * FRAME_BYTES;
	forget(one);
	forget(two);
	must(!ibv_destroy_counters(c), "ibv_destroy_counters");
	return good;
}

/* A receive that was too small for a frame is used for the next one. */
static bool too_long_for_a_receive(void)
{
	struct ibv_flow *flow = steer(to, rule_for(own_mac, 7));
	struct seen seen;
	bool good;

	/* The four frames that were sent whole arrive first. */
	for (int i = 0; i < 4; i++) {
		send_frame(own_mac, 0, 7);
		must(wait_for(to, COMES, &seen), "a receive");
	}
	post_receive(to, FRAME_BYTES);
	/* A VLAN tag makes the frame four bytes longer than the RECV. */
	send_frame(own_mac, 0x123, 7);
	good = stays_away(to);
	send_frame(own_mac, 0, 7);
	good = wait_for(to, COMES, &seen) && seen.bytes == FRAME_BYTES && good;
	/* A frame that finds no RECV is lost. */
	send_frame(own_mac, 0, 7);
	good = stays_away(to) && good;
	for (int i = 0; i < 4; i++)
		post_receive(to, SLOT_BYTES);
	good = stays_away(to) && good;
	forget(flow);
	return good;
}

static bool lengths_that_no_frame_has(void)
{
	static const uint32_t lengths[] = { 0, 13, 16000 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	for (unsigned i = 0; i < 3; i++) {
		if (send_bytes(from, lengths[i]) != IBV_WC_LOC_LEN_ERR)
			return false;
		/* The error moved the QP to SQE; IBA 10.3.1.7: to RTS. */
		if (ibv_modify_qp(from->qp, &attr, IBV_QP_STATE))
			return false;
	}
	return true;
}

/* A program that sleeps without polling is woken by a frame. */
static bool who_sleeps_is_woken(void)
{
	struct ibv_flow *flow = steer(to, rule_for(own_mac, 7));
	struct ibv_cq *cq = ibv_cq_ex_to_cq(to->cq);
	struct pollfd event = { to->channel->fd, POLLIN, 0 };
	void *context;
	bool good;

	usleep(20000);
	must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	send_frame(own_mac, 0, 7);
	good = poll(&event, 1, 1000) == 1;
	if (good) {
		must(!ibv_get_cq_event(to->channel, &cq, &context), "event");
		ibv_ack_cq_events(cq, 1);
	}
	good = arrives(to, FRAME_BYTES, 7) && good;
	forget(flow);
	return good;
}

static bool a_queue_pair_with_rules_stays(void)
{
	struct ibv_flow *flow = steer(to, rule_for(own_mac, 7));
	bool good = ibv_destroy_qp(to->qp) == EBUSY;

	forget(flow);
	return good;
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "nothing comes without a rule", nothing_without_a_rule },
	{ "a rule, its tag and its end", a_rule_its_tag_and_its_end },
	{ "groups and the port itself are looped back",
	  only_what_an_adapter_loops_back },
	{ "own frames do not come back", own_frames_do_not_come_back },
	{ "the same rule is for both", the_same_rule_is_for_both },
	{ "the higher priority has it", the_higher_priority_has_it },
	{ "a sniffer takes nothing away", a_sniffer_takes_nothing_away },
	{ "VLAN tags, in frames and rules", tags_stay_in_frames_and_rules },
	{ "drop and count", drops_and_counts },
	{ "too long for a receive", too_long_for_a_receive },
	{ "lengths that no frame has", lengths_that_no_frame_has },
	{ "who sleeps is woken", who_sleeps_is_woken },
	{ "a queue pair with rules stays", a_queue_pair_with_rules_stays },
};

static void read_mac(const char *interface)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", interface);
	must(fd >= 0 && !ioctl(fd, SIOCGIFHWADDR, &r), interface);
	memcpy(own_mac, r.ifr_hwaddr.sa_data, 6);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: raw_test DEVICE INTERFACE");
	options.device = argv[1];
	read_mac(argv[2]);
	rc_open(&device, &options);
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE);
	must(mr, "ibv_reg_mr");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool good;

		for (int s = 0; s < 3; s++)
			open_side(&sides[s]);
		good = cases[i].run();
		for (int s = 0; s < 3; s++)
			close_side(&sides[s]);
		printf("%s %s\n", good ? "ok" : "not ok", cases[i].name);
		failed = failed || !good;
	}
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return failed;
}
