/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the library row by row against three tables. Two are written here from
 * the InfiniBand specification, and not from the library: which transitions of
 * a queue pair's state permit which attributes (IBA 11.2.5.2,
 * ibv_modify_qp(3)), and what follows from each fault (IBA 9.9.2, 9.9.3,
 * 11.6.2). The third says what happens to messages with tags. Each row gets two
 * new queue pairs. Both are in this process; or, except for tags, the
 * responder's is in a server process, to which a client connects.
 *
 *	conformance_test [-d DEVICE] [-4|-6] [-p PORT] [HOST | -]
 *
 * "-": this process is the server. An RNIC has other tables: a stream moves its
 * queue pairs to RTS, and not the program, and the consequences of faults are
 * those of RFC 5040 and 5041, as completion statuses. HOST is then the RNIC's
 * own address, and both ends are in this process.
 */
#include "conformance.h"

static void get_to_know(void)
{
	struct far mine = { .gid = device.gid,
			    .lid = device.lid,
			    .memory = (uintptr_t)memory,
			    .gone = (uintptr_t)gone->addr,
			    .rkey = mr->rkey,
			    .read_only = read_only->rkey,
			    .gone_rkey = gone->rkey };

	far = mine;
	if (wire >= 0)
		tcp_swap(wire, &mine, &far, sizeof(far));
}

/* Only the client, or a single process, runs the tables of moves. */
static void find_other(const char *host)
{
	if (is_rnic())
		stream_begin(host);
	if (!host || is_rnic())
		return;
	is_a = strcmp(host, "-") != 0;
	is_b = !is_a;
	options.host = is_a ? host : NULL;
	wire = tcp_meet(&options);
}

static void set_up(void)
{
	struct ibv_xrcd_init_attr no_file = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_ah_attr to;
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED && page != MAP_FAILED, "mmap");
	mr = ibv_reg_mr(device.pd, memory, 2 * BYTES, RC_ALL_ACCESS);
	read_only = ibv_reg_mr(device.pd, memory, 2 * BYTES,
			       IBV_ACCESS_REMOTE_READ);
	gone = ibv_reg_mr(device.pd, page, 4096, RC_ALL_ACCESS);
	must(mr && read_only && gone, "regions");
	munmap(page, 4096);
	get_to_know();
	to = way();
	ah = ibv_create_ah(device.pd, &to);
	must(ah || is_rnic(), "ibv_create_ah");
	cq_a = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	cq_b = ibv_create_cq(device.context, 64, NULL, NULL, 0);
	must(cq_a && cq_b, "ibv_create_cq");
	xrcd = ibv_open_xrcd(device.context, &no_file);
	other_xrcd = ibv_open_xrcd(device.context, &no_file);
	must(!fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
}

int main(int argc, char **argv)
{
	char **rest = rc_read_options(&options, argc, argv);

	rc_open(&device, &options);
	find_other(rest[0]);
	set_up();
	for (size_t i = 0; is_a && i < TYPES; i++)
		if ((types[i].bit == IW) == is_rnic())
			judge_moves(&types[i]);
	for (size_t i = 0; i < TYPES; i++)
		if (!(types[i].bit & XRC) && (types[i].bit == IW) == is_rnic())
			judge_faults(&types[i], &types[i], types[i].name);
	if (xrcd)
		judge_faults(&types[3], &types[4], "XRC");
	/* iWARP devices have neither tag matching nor XRC */
	if (wire < 0 && xrcd)
		judge_tags();
	return 0;
}
