/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One adapter with two ports, in one program: a protection domain, a memory key
 * and a completion queue over both.
 *
 *	vpi_test listen PATH
 *	vpi_test connect PATH
 *
 * The two sides find each other by a socket in the file system, which does not
 * depend on an interface. Each side connects one queue pair by each port, and
 * writes to the other side by both ports at once, into one region with one key;
 * then every byte is compared. Then both sides wait until one port goes down,
 * write by the other port, and print which port the event named. "vpi_test
 * rules" tests one side alone.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORTS  2
#define CHUNK  65536u
#define WRITES 64u /* number of writes by each port */
#define HALF   ((size_t)CHUNK * WRITES)
#define ROUND  2 /* rounds of writes */

static int failed;

static bool say(bool good, const char *what)
{
	printf("%s vpi: %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
	failed += !good;
	return good;
}

static void die(const char *what)
{
	printf("not ok vpi: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* What each side sends to the other one to connect. */
struct side {
	uint64_t address;
	uint32_t rkey;
	struct {
		uint32_t qpn;
		uint16_t lid;
		uint8_t gid[16];
	} port[PORTS];
};

static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[PORTS];
	struct ibv_port_attr port[PORTS];
	int gid_index[PORTS];
	/* what is sent, and what comes: a half for each port */
	uint8_t *from, *to;
	struct side own, peer;
	int talk;
} t;

/* --- the adapter --- */

static void open_adapter(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no device");
	t.context = ibv_open_device(list[0]);
	if (!t.context)
		die("the device does not open");
	ibv_free_device_list(list);
	for (uint8_t p = 0; p < PORTS; p++)
		if (ibv_query_port(t.context, p + 1, &t.port[p]))
			die("a port cannot be queried");
}

/* Returns the index of the last RoCE v2 GID of the port that is an IPv4
 * address. An InfiniBand port has none: the result is 0. */
static int find_gid(uint8_t port)
{
	struct ibv_gid_entry e;
	int found = 0;

	for (int i = 0; i < t.port[port].gid_tbl_len; i++)
		if (ibv_query_gid_ex(t.context, port + 1, (uint32_t)i, &e, 0) ==
			    0 &&
		    e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[0] == 0)
			found = i;
	return found;
}

static void make_objects(void)
{
	t.pd = ibv_alloc_pd(t.context);
	t.cq = ibv_create_cq(t.context, 4 * PORTS * WRITES, NULL, NULL, 0);
	t.from = malloc(2 * PORTS * HALF);
	if (!t.pd || !t.cq || !t.from)
		die("no domain, queue or memory");
	t.to = t.from + PORTS * HALF;
	t.mr = ibv_reg_mr(t.pd, t.from, 2 * PORTS * HALF,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!t.mr)
		die("no region");
}

static void make_qp(uint8_t port)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t.cq,
		.recv_cq = t.cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = WRITES,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = port + 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	t.qp[port] = ibv_create_qp(t.pd, &init);
	if (!t.qp[port] ||
	    ibv_modify_qp(t.qp[port], &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS))
		die("no queue pair");
}

static void describe(void)
{
	union ibv_gid gid;

	t.own.address = (uintptr_t)t.to;
	t.own.rkey = t.mr->rkey;
	for (uint8_t p = 0; p < PORTS; p++) {
		t.gid_index[p] = find_gid(p);
		if (ibv_query_gid(t.context, p + 1, t.gid_index[p], &gid))
			die("no GID");
		memcpy(t.own.port[p].gid, gid.raw, sizeof(gid.raw));
		t.own.port[p].qpn = t.qp[p]->qp_num;
		t.own.port[p].lid = t.port[p].lid;
	}
}

static void connect_qp(uint8_t p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = t.peer.port[p].qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = p + 1, .dlid = t.peer.port[p].lid },
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	if (t.port[p].link_layer == IBV_LINK_LAYER_ETHERNET) {
		a.ah_attr.is_global = 1;
		a.ah_attr.grh.hop_limit = 64;
		a.ah_attr.grh.sgid_index = (uint8_t)t.gid_index[p];
		memcpy(a.ah_attr.grh.dgid.raw, t.peer.port[p].gid, 16);
	}
	if (ibv_modify_qp(t.qp[p], &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER))
		die("a queue pair does not reach RTR");
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(t.qp[p], &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC))
		die("a queue pair does not reach RTS");
}

/* --- the two sides --- */

static void dial(bool listens, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	t.talk = fd;
	if (listens) {
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
			die("cannot listen");
		t.talk = accept(fd, NULL, NULL);
		close(fd);
		return;
	}
	for (int i = 0; connect(fd, (struct sockaddr *)&a, sizeof(a)); i++) {
		if (i == 200)
			die("no connection");
		usleep(50000);
	}
}

static void swap(const void *out, void *in, size_t len)
{
	if (send(t.talk, out, len, 0) != (ssize_t)len ||
	    recv(t.talk, in, len, MSG_WAITALL) != (ssize_t)len)
		die("the other side is gone");
}

static void meet(void)
{
	char out = 'x', in;

	swap(&out, &in, 1);
}

/* --- bytes --- */

static uint8_t byte_of(bool listens, unsigned round, size_t i)
{
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + round * 77 + listens;

	return (uint8_t)(x >> 33);
}

static void fill(bool listens, unsigned round)
{
	memset(t.to, 0, PORTS * HALF);
	for (size_t i = 0; i < PORTS * HALF; i++)
		t.from[i] = byte_of(listens, round, i);
}

static bool has_come(bool listens, unsigned round, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (t.to[i] != byte_of(!listens, round, i))
			return false;
	return true;
}

static void post_write(uint8_t port, unsigned n)
{
	size_t at = port * HALF + (size_t)n * CHUNK;
	struct ibv_sge sge = { (uintptr_t)t.from + at, CHUNK, t.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = port,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { t.peer.address + at, t.peer.rkey },
	};

	if (ibv_post_send(t.qp[port], &wr, &bad))
		die("a write is not posted");
}

/* Poll for @count completions, of which *@by counts those of each port. */
static bool complete(unsigned count, unsigned by[PORTS])
{
	struct ibv_wc wc;

	while (count > 0) {
		if (ibv_poll_cq(t.cq, 1, &wc) == 0)
			continue;
		if (wc.status != IBV_WC_SUCCESS) {
			printf("# port %u: %s\n", (unsigned)wc.wr_id + 1,
			       ibv_wc_status_str(wc.status));
			return false;
		}
		by[wc.wr_id]++;
		count--;
	}
	return true;
}

/* Write by all ports in turns, so that both carry at once. */
static void write_by_both(bool listens)
{
	unsigned by[PORTS] = { 0 };
	bool good;

	for (unsigned round = 0; round < ROUND; round++) {
		fill(listens, round);
		meet();
		for (unsigned n = 0; n < WRITES; n++)
			for (uint8_t p = 0; p < PORTS; p++)
				post_write(p, n);
		good = complete(PORTS * WRITES, by);
		meet();
		say(good && has_come(listens, round, 0, PORTS * HALF),
		    "every byte by two ports at once, one key, one queue");
	}
	say(by[0] == ROUND * WRITES && by[1] == ROUND * WRITES,
	    "each port has completed its writes");
}

/* Wait for the event of a port that goes down. Returns its number. */
static unsigned await_down(void)
{
	struct pollfd p = { .fd = t.context->async_fd, .events = POLLIN };
	struct ibv_async_event e;
	unsigned port = 0;

	puts("waiting");
	fflush(stdout);
	while (!port && poll(&p, 1, 20000) > 0 &&
	       ibv_get_async_event(t.context, &e) == 0) {
		if (e.event_type == IBV_EVENT_PORT_ERR)
			port = (unsigned)e.element.port_num;
		else if (e.event_type == IBV_EVENT_DEVICE_FATAL)
			port = 99;
		ibv_ack_async_event(&e);
	}
	return port;
}

static enum ibv_port_state state_of(uint8_t port)
{
	struct ibv_port_attr a;

	if (ibv_query_port(t.context, port, &a))
		die("a port cannot be queried");
	return a.state;
}

/* One port is down: the writes by the other port still succeed. */
static void write_by_the_other(bool listens)
{
	unsigned by[PORTS] = { 0 }, down = await_down();
	uint8_t other;
	bool good;

	printf("# port %u is down\n", down);
	if (!say(down >= 1 && down <= PORTS, "an event names the port"))
		exit(1);
	other = down == 1 ? 1 : 0;
	printf("# states: %d, %d\n", state_of(1), state_of(2));
	say(state_of((uint8_t)down) != IBV_PORT_ACTIVE &&
		    state_of(other + 1) == IBV_PORT_ACTIVE,
	    "one port is down, the other active");
	fill(listens, 9);
	meet();
	for (unsigned n = 0; n < WRITES; n++)
		post_write(other, n);
	good = complete(WRITES, by);
	meet();
	say(good && has_come(listens, 9, other * HALF, (other + 1) * HALF),
	    "the other port goes on, every byte");
}

static void play(bool listens)
{
	make_objects();
	for (uint8_t p = 0; p < PORTS; p++)
		make_qp(p);
	describe();
	swap(&t.own, &t.peer, sizeof(t.own));
	for (uint8_t p = 0; p < PORTS; p++)
		connect_qp(p);
	write_by_both(listens);
	write_by_the_other(listens);
}

/* --- one side alone --- */

static struct ibv_ah *ah_of(uint8_t port, uint16_t dlid, bool global)
{
	struct ibv_ah_attr a = { .port_num = port + 1, .dlid = dlid };
	union ibv_gid gid;

	if (global) {
		if (ibv_query_gid(t.context, port + 1, find_gid(port), &gid))
			die("no GID");
		a.is_global = 1;
		a.grh.dgid = gid;
		a.grh.sgid_index = (uint8_t)find_gid(port);
	}
	return ibv_create_ah(t.pd, &a);
}

static bool is_ethernet(uint8_t port)
{
	return t.port[port].link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* A datagram leaves by the port of its queue pair, and needs an address handle
 * of that port. */
static void datagrams(uint8_t port)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t.cq,
		.recv_cq = t.cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(t.pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = port + 1 };
	uint8_t other = !port;
	struct ibv_ah *here = ah_of(port, t.port[port].lid, is_ethernet(port));
	struct ibv_ah *there =
		ah_of(other, t.port[other].lid, is_ethernet(other));
	struct ibv_sge sge = { (uintptr_t)t.from, 8, t.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = port,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	unsigned by[PORTS] = { 0 };

	if (!qp || !here || !there)
		die("no queue pair or address handle");
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_QKEY))
		die("no INIT");
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		die("no RTR");
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("no RTS");
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.ah = there;
	say(ibv_post_send(qp, &wr, &bad) == EINVAL,
	    "an address of the other port is refused");
	wr.wr.ud.ah = here;
	say(ibv_post_send(qp, &wr, &bad) == 0 && complete(1, by),
	    "a datagram leaves by its port");
	ibv_destroy_ah(here);
	ibv_destroy_ah(there);
	ibv_destroy_qp(qp);
}

static void rules(void)
{
	struct ibv_device_attr d;
	struct ibv_gid_entry *table = calloc(1024, sizeof(*table));
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 3 };
	struct ibv_port_attr p;
	unsigned of[PORTS + 1] = { 0 };
	ssize_t n;

	make_objects();
	make_qp(0);
	say(ibv_query_device(t.context, &d) == 0 && d.phys_port_cnt == PORTS,
	    "the device has two ports");
	say(ibv_query_port(t.context, 0, &p) == EINVAL &&
		    ibv_query_port(t.context, 3, &p) == EINVAL,
	    "ports 0 and 3 do not exist");
	n = ibv_query_gid_table(t.context, table, 1024, 0);
	for (ssize_t i = 0; i < n; i++)
		of[table[i].port_num <= PORTS ? table[i].port_num : 0]++;
	say(n > 0 && of[0] == 0 && of[1] && of[2],
	    "the GID table has both ports' entries");
	say(ibv_modify_qp(t.qp[0], &a, IBV_QP_STATE | IBV_QP_PORT) == EINVAL,
	    "a queue pair cannot take port 3");
	for (uint8_t port = 0; port < PORTS; port++)
		datagrams(port);
	free(table);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	open_adapter();
	if (strcmp(argv[1], "rules") == 0) {
		rules();
	} else if (argc > 2) {
		bool listens = strcmp(argv[1], "listen") == 0;

		dial(listens, argv[2]);
		play(listens);
	}
	return failed > 0;
}
