/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ends an iWARP stream, and how each side hears of it; what connecting
 * carries along; what an RNIC has not. One program, connected to itself by
 * librdmacm; a case a function.
 *
 *	iwarp_test ADDRESS [CASE]
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc.h"

#define BYTES (1u << 20)
#define PORT  7479
#define WAIT  10.0

static struct sockaddr_in address;
static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct ibv_context *verbs;
static struct ibv_pd *pd;
static char problem[256];

static void wrong(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void wrong(const char *format, ...)
{
	va_list args;

	if (problem[0]) /* the first is the cause */
		return;
	va_start(args, format);
	vsnprintf(problem, sizeof(problem), format, args);
	va_end(args);
}

struct side {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	bool over; /* DISCONNECTED was heard */
};
static struct side a, b; /* who connects, who accepts */

/* The next event within @seconds_left, its status and private data kept. */
static struct {
	enum rdma_cm_event_type what;
	int status;
	struct rdma_cm_id *id;
	uint8_t bytes, data[256];
	uint8_t responder_resources, initiator_depth;
} event;

static bool next_event(double seconds_left)
{
	struct pollfd p = { channel->fd, POLLIN, 0 };
	struct rdma_cm_event *e;

	event.what = (enum rdma_cm_event_type) - 1;
	if (poll(&p, 1, (int)(seconds_left * 1000)) != 1)
		return false;
	must(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	event.what = e->event;
	event.status = e->status;
	event.id = e->id;
	event.bytes = e->param.conn.private_data_len;
	event.responder_resources = e->param.conn.responder_resources;
	event.initiator_depth = e->param.conn.initiator_depth;
	if (event.bytes)
		memcpy(event.data, e->param.conn.private_data, event.bytes);
	must(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
	return true;
}

static bool expect_event(enum rdma_cm_event_type what)
{
	if (!next_event(WAIT))
		wrong("no %s came", rdma_event_str(what));
	else if (event.what != what)
		wrong("%s (%d) came, and not %s", rdma_event_str(event.what),
		      event.status, rdma_event_str(what));
	return event.what == what;
}

static void equip(struct side *s)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 2,
			 .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	verbs = s->id->verbs;
	if (!pd)
		pd = ibv_alloc_pd(verbs);
	must(pd, "ibv_alloc_pd");
	s->cq = ibv_create_cq(verbs, 256, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	s->memory = calloc(1, BYTES);
	must(s->memory, "memory");
	s->mr = ibv_reg_mr(pd, s->memory, BYTES, RC_ALL_ACCESS);
	must(s->mr, "ibv_reg_mr");
	attr.send_cq = attr.recv_cq = s->cq;
	must(!rdma_create_qp(s->id, pd, &attr), "rdma_create_qp");
}

static void drop(struct side *s)
{
	if (!s->id)
		return;
	rdma_destroy_qp(s->id);
	if (rdma_destroy_id(s->id))
		wrong("rdma_destroy_id");
	if (s->mr && ibv_dereg_mr(s->mr))
		wrong("ibv_dereg_mr");
	if (s->cq && ibv_destroy_cq(s->cq))
		wrong("ibv_destroy_cq");
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

static void begin_connect(struct side *s, const struct sockaddr_in *to,
			  struct rdma_conn_param *p)
{
	must(!rdma_create_id(channel, &s->id, s, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(s->id, NULL, (struct sockaddr *)to, 1000),
	     "rdma_resolve_addr");
	expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(s->id, 1000), "rdma_resolve_route");
	expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	equip(s);
	must(!rdma_connect(s->id, p), "rdma_connect");
}

static struct rdma_conn_param params(const char *data)
{
	return (struct rdma_conn_param){
		.responder_resources = 5,
		.initiator_depth = 3,
		.private_data = data,
		.private_data_len = data ? (uint8_t)strlen(data) : 0,
	};
}

/* Both sides stand; each has heard so. */
static void connected(void)
{
	struct rdma_conn_param p = params(NULL);

	begin_connect(&a, &address, &p);
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	b.id = event.id;
	equip(&b);
	must(!rdma_accept(b.id, &p), "rdma_accept");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
}

static void post_from(struct side *s, struct ibv_send_wr wr, uint64_t id,
		      uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, 4096, lkey };
	struct ibv_send_wr *bad;

	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	must(!ibv_post_send(s->id->qp, &wr, &bad), "ibv_post_send");
}

static void post(struct side *s, struct ibv_send_wr wr, uint64_t id)
{
	post_from(s, wr, id, s->mr->lkey);
}

static struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	return (struct ibv_send_wr){
		.opcode = opcode,
		.wr.rdma = { (uintptr_t)b.memory, rkey },
	};
}

static void post_recv(struct side *s, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, bytes, s->mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(s->id->qp, &wr, &bad), "ibv_post_recv");
}

static void expect_status(struct side *s, uint64_t id,
			  enum ibv_wc_status status, enum ibv_wc_status or)
{
	struct ibv_wc wc;

	if (!rc_wait(s->cq, WAIT, &wc))
		wrong("work request %d: no completion", (int)id);
	else if (wc.wr_id != id || (wc.status != status && wc.status != or))
		wrong("work request %d: %s of %d, and not %s", (int)id,
		      ibv_wc_status_str(wc.status), (int)wc.wr_id,
		      ibv_wc_status_str(status));
}

static void expect_error_state(struct side *s, const char *who)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(s->id->qp, &attr, IBV_QP_STATE, &init) ||
	    attr.qp_state != IBV_QPS_ERR)
		wrong("%s: in state %d, and not in ERR", who,
		      (int)attr.qp_state);
}

/* Each side hears once, in whichever order. */
static void expect_end(void)
{
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	expect_error_state(&a, "who asked");
	expect_error_state(&b, "who was asked");
}

/*
 * Cases.
 */

/* What is sent over TCP is complete when it has left: nobody has looked at its
 * key. What goes without is complete when it is done. */
static bool goes_near(void)
{
	const char *near = getenv("VERBENA_NEAR");

	return !near || strcmp(near, "off");
}

static enum ibv_wc_status told(enum ibv_wc_status status)
{
	return goes_near() ? status : IBV_WC_SUCCESS;
}

static void faulty(struct ibv_send_wr wr, enum ibv_wc_status status)
{
	connected();
	post_recv(&a, 4096);
	post(&a, wr, 1);
	expect_status(&a, 1, status, status);
	expect_end();
	expect_status(&a, 99, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	post(&a, wr, 2);
	expect_status(&a, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
}

static void write_with_a_wrong_key(void)
{
	faulty(rdma(IBV_WR_RDMA_WRITE, 0x12345600),
	       told(IBV_WC_REM_ACCESS_ERR));
}

static void read_with_a_wrong_key(void)
{
	faulty(rdma(IBV_WR_RDMA_READ, 0x12345600), IBV_WC_REM_ACCESS_ERR);
}

/* Of revision 1, in which nobody says how many READs he bears: none here. */
static void read_where_none_is_taken(void)
{
	struct rdma_conn_param p = params(NULL);

	setenv("VERBENA_IWARP", "revision-1", 1);
	begin_connect(&a, &address, &p);
	unsetenv("VERBENA_IWARP");
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	b.id = event.id;
	equip(&b);
	p.responder_resources = 0;
	must(!rdma_accept(b.id, &p), "rdma_accept");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	post(&a, rdma(IBV_WR_RDMA_READ, b.mr->rkey), 1);
	expect_status(&a, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	expect_end();
}

static void send_without_a_receive(void)
{
	faulty((struct ibv_send_wr){ .opcode = IBV_WR_SEND },
	       told(IBV_WC_RNR_RETRY_EXC_ERR));
}

/* The peer hears at once, and not when it is waited for no longer. */
static void write_from_a_wrong_key(void)
{
	double from, lasted;

	connected();
	post_recv(&b, 4096);
	from = seconds();
	post_from(&a, rdma(IBV_WR_RDMA_WRITE, b.mr->rkey), 1, 0x12345600);
	expect_status(&a, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
	expect_end();
	expect_status(&b, 99, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	lasted = seconds() - from;
	if (lasted > 1)
		wrong("the end came after %.1f s", lasted);
}

static void send_too_long(void)
{
	connected();
	post_recv(&b, 100);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, told(IBV_WC_REM_INV_REQ_ERR), IBV_WC_SUCCESS);
	expect_status(&b, 99, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
	expect_end();
}

/* What was sent before arrives: a disconnect is not a reset. */
static void disconnect_after_sends(void)
{
	connected();
	for (int i = 0; i < 20; i++)
		post_recv(&b, 4096);
	for (int i = 0; i < 20; i++)
		post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	for (int i = 0; i < 20; i++)
		expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	must(!rdma_disconnect(a.id), "rdma_disconnect");
	for (int i = 0; i < 20; i++)
		expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_end();
}

static void destroyed_without_a_word(void)
{
	connected();
	drop(&a);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	expect_error_state(&b, "who was left");
}

static void private_data_and_depths(void)
{
	struct rdma_conn_param p = params("how do you do?");

	begin_connect(&a, &address, &p);
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	if (event.bytes != 14 || memcmp(event.data, "how do you do?", 14))
		wrong("the request's private data (%u bytes)", event.bytes);
	if (event.responder_resources != 3 || event.initiator_depth != 5)
		wrong("the request's depths: %u, %u", event.responder_resources,
		      event.initiator_depth);
	b.id = event.id;
	equip(&b);
	p = params("very well");
	p.responder_resources = 2;
	must(!rdma_accept(b.id, &p), "rdma_accept");
	for (int i = 0; i < 2; i++) {
		if (!expect_event(RDMA_CM_EVENT_ESTABLISHED) ||
		    event.id != a.id)
			continue;
		if (event.bytes != 9 || memcmp(event.data, "very well", 9))
			wrong("the reply's private data");
		if (event.initiator_depth != 2)
			wrong("the reply's depth: %u", event.initiator_depth);
	}
}

static void rejected(void)
{
	struct rdma_conn_param p = params("please");
	struct rdma_cm_id *id;

	begin_connect(&a, &address, &p);
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	id = event.id;
	must(!rdma_reject(id, "no", 2), "rdma_reject");
	expect_event(RDMA_CM_EVENT_REJECTED);
	if (event.bytes != 2 || memcmp(event.data, "no", 2) ||
	    event.status != -ECONNRESET)
		wrong("status %d, %u bytes of private data", event.status,
		      event.bytes);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* Each connects to the other while it is connected to. */
static void connects_that_cross(void)
{
	struct rdma_conn_param p = params(NULL);
	struct side c = { 0 }, d = { 0 }, *accepts[] = { &b, &d };
	unsigned asked = 0, up = 0;

	begin_connect(&a, &address, &p);
	must(!rdma_create_id(channel, &c.id, &c, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&address, 1000),
	     "rdma_resolve_addr");
	while (up < 4 && next_event(WAIT)) {
		switch (event.what) {
		case RDMA_CM_EVENT_ADDR_RESOLVED:
			must(!rdma_resolve_route(c.id, 1000), "resolve_route");
			break;
		case RDMA_CM_EVENT_ROUTE_RESOLVED:
			equip(&c);
			must(!rdma_connect(c.id, &p), "rdma_connect");
			break;
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			accepts[asked]->id = event.id;
			equip(accepts[asked]);
			must(!rdma_accept(event.id, &p), "rdma_accept");
			asked++;
			break;
		case RDMA_CM_EVENT_ESTABLISHED:
			up++;
			break;
		default:
			wrong("%s came", rdma_event_str(event.what));
		}
	}
	if (up != 4)
		wrong("%u of 4 ends stand", up);
	drop(&c);
	drop(&d);
}

/* Memory that changes while it is read is read all the same: mixed, and under
 * a CRC that is right. */
static _Atomic bool changing;

static void *change(void *memory)
{
	volatile uint64_t *word = memory;

	for (uint64_t i = 0; changing; i++)
		word[i % (BYTES / 8)] = i;
	return NULL;
}

static void memory_that_changes(void)
{
	pthread_t thread;

	connected();
	changing = true;
	pthread_create(&thread, NULL, change, b.memory);
	for (int i = 0; i < 2000 && !problem[0]; i++) {
		struct ibv_sge sge = { (uintptr_t)a.memory, BYTES / 4,
				       a.mr->lkey };
		struct ibv_send_wr *bad,
			wr = rdma(IBV_WR_RDMA_READ, b.mr->rkey);

		wr.wr_id = 1;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		must(!ibv_post_send(a.id->qp, &wr, &bad), "ibv_post_send");
		expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	}
	changing = false;
	pthread_join(thread, NULL);
}

/* A caller that says nothing, and one that talks nonsense. */
static void callers_that_are_no_mpa(void)
{
	static const char nonsense[64] = "GET / HTTP/1.1\r\n\r\n";
	struct sockaddr_in to = address;
	struct pollfd p = { .events = POLLIN };
	char answer[16];

	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(p.fd >= 0 && !connect(p.fd, (struct sockaddr *)&to, sizeof(to)),
	     "connect");
	must(send(p.fd, nonsense, sizeof(nonsense), 0) > 0, "send");
	if (poll(&p, 1, 3000) != 1 || recv(p.fd, answer, 16, 0) > 0)
		wrong("nonsense was not hung up on");
	close(p.fd);
	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(p.fd >= 0 && !connect(p.fd, (struct sockaddr *)&to, sizeof(to)),
	     "connect");
	if (poll(&p, 1, 8000) != 1 || recv(p.fd, answer, 16, 0) != 0)
		wrong("silence was not hung up on");
	close(p.fd);
}

static struct rdma_cm_id *listen_at(uint16_t port, int backlog)
{
	struct sockaddr_in at = address;
	struct rdma_cm_id *id;

	at.sin_port = htons(port);
	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&at) ||
	    rdma_listen(id, backlog))
		wrong("to listen at %u: %s", port, strerror(errno));
	return id;
}

/* A child of fork: what it has to do, within 10 seconds, and what is wrong. */
static pid_t child_of(void (*does)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	alarm(10);
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	does();
	if (problem[0])
		fprintf(stderr, "a child: %s\n", problem);
	_exit(problem[0] != '\0');
}

static void expect_child(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		wrong("no child");
	else if (status)
		wrong("a child of fork ended with 0x%x", status);
}

/* Its own streams are not among those that its parent's ids know. */
static void child_that_destroys(void)
{
	struct side inherited[] = { a, b };

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	pd = NULL;
	address.sin_port = htons(PORT + 1);
	listener = listen_at(PORT + 1, 16);
	connected();
	for (int i = 0; i < 2; i++)
		if (rdma_destroy_id(inherited[i].id))
			wrong("rdma_destroy_id of what was inherited");
	rdma_disconnect(a.id);
	expect_end();
}

static void ids_inherited_by_fork(void)
{
	connected();
	expect_child(child_of(child_that_destroys));
	post_recv(&b, 4096);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

/* A parent's port is not held open by its child. */
static int until_told[2];

static void child_that_waits(void)
{
	char word;

	close(until_told[1]);
	(void)!read(until_told[0], &word, 1);
}

static void ports_inherited_by_fork(void)
{
	struct rdma_cm_id *id = listen_at(PORT + 2, 4);
	pid_t pid;

	must(!pipe(until_told), "pipe");
	pid = child_of(child_that_waits);
	rdma_destroy_id(id);
	sleep(1); /* it lingers */
	rdma_destroy_id(listen_at(PORT + 2, 4));
	close(until_told[0]);
	close(until_told[1]);
	expect_child(pid);
}

/* Requests that the program has not taken cost no more descriptors than the
 * backlog, and each has its turn. */
enum { CALLERS = 8, BACKLOG = 4 };

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	must(d, "/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int call_with_request(uint16_t port)
{
	/* CRC, revision 2; 4 bytes of private data: its depths of 1 */
	static const uint8_t request[24] = "MPA ID Req Frame\x50\x02\0\4"
					   "\0\1\0\1";
	struct sockaddr_in to = address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(port);
	must(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)),
	     "connect");
	must(send(fd, request, sizeof(request), MSG_NOSIGNAL) == 24, "send");
	return fd;
}

static void more_callers_than_backlog(void)
{
	struct rdma_cm_id *id = listen_at(PORT + 4, BACKLOG);
	unsigned before, now;
	int fd[CALLERS];

	sleep(1); /* listeners of other cases linger */
	before = descriptors();
	for (int i = 0; i < CALLERS; i++)
		fd[i] = call_with_request(PORT + 4);
	usleep(300000);
	now = descriptors() - before - CALLERS;
	if (now != BACKLOG)
		wrong("%u callers have a descriptor here", now);
	for (int i = 0; i < CALLERS; i++) {
		if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
			break;
		if (rdma_reject(event.id, NULL, 0))
			wrong("rdma_reject: %s", strerror(errno));
		rdma_destroy_id(event.id);
	}
	for (int i = 0; i < CALLERS; i++)
		close(fd[i]);
	rdma_destroy_id(id);
}

static int call_without_request(uint16_t port)
{
	struct sockaddr_in to = address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(port);
	must(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)),
	     "connect");
	return fd;
}

static bool is_hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Whoever has something to say has its turn within a second. Of too many that
 * say nothing the first are hung up on, and the last are not. */
static void silent_callers(void)
{
	enum { SILENT = 24, ROOM = 3 };
	struct rdma_cm_id *id = listen_at(PORT + 5, ROOM);
	int silent[SILENT], fd;

	for (int i = 0; i < ROOM; i++)
		silent[i] = call_without_request(PORT + 5);
	fd = call_with_request(PORT + 5);
	if (!next_event(1) || event.what != RDMA_CM_EVENT_CONNECT_REQUEST)
		wrong("%d that say nothing shut out who asks", ROOM);
	else
		rdma_destroy_id(event.id);
	for (int i = ROOM; i < SILENT; i++)
		silent[i] = call_without_request(PORT + 5);
	usleep(1200000);
	if (!is_hung_up(silent[0]))
		wrong("%d that say nothing are borne", SILENT);
	for (int i = SILENT / 2; i < SILENT; i++)
		if (is_hung_up(silent[i]))
			wrong("number %d was hung up on", i);
	for (int i = 0; i < SILENT; i++)
		close(silent[i]);
	close(fd);
	rdma_destroy_id(id);
}

/* Whoever calls and says no more is heard to its end, and not waited for. */
static void callers_that_close_half(void)
{
	struct pollfd p = { .events = POLLIN };
	struct rdma_conn_param param = params(NULL);
	struct sockaddr_in to = address;
	char answer[64];

	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(p.fd >= 0 && !connect(p.fd, (struct sockaddr *)&to, sizeof(to)),
	     "connect");
	must(send(p.fd, "MPA ID Req", 10, 0) == 10, "send");
	must(!shutdown(p.fd, SHUT_WR), "shutdown");
	if (poll(&p, 1, 3000) != 1 || recv(p.fd, answer, sizeof(answer), 0) > 0)
		wrong("half a request was not hung up on");
	close(p.fd);
	p.fd = call_with_request(PORT);
	must(!shutdown(p.fd, SHUT_WR), "shutdown");
	if (expect_event(RDMA_CM_EVENT_CONNECT_REQUEST)) {
		b.id = event.id;
		equip(&b);
		must(!rdma_accept(b.id, &param), "rdma_accept");
		if (poll(&p, 1, 3000) != 1 ||
		    recv(p.fd, answer, sizeof(answer), 0) < 20 ||
		    memcmp(answer, "MPA ID Rep Frame", 16))
			wrong("no reply came");
		expect_event(
			RDMA_CM_EVENT_ESTABLISHED); /* it asks for no RTR */
		expect_event(RDMA_CM_EVENT_DISCONNECTED);
		expect_error_state(&b, "who was left");
	}
	close(p.fd);
}

/* Who is called and hangs up, and who never says a word: 10 seconds, as siw,
 * and they pass here. */
static int listen_without_mpa(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);

	*at = address;
	at->sin_port = 0;
	must(fd >= 0 && !bind(fd, (struct sockaddr *)at, len) &&
		     !listen(fd, 4) &&
		     !getsockname(fd, (struct sockaddr *)at, &len),
	     "a listener");
	return fd;
}

static void called_without_an_answer(void)
{
	struct rdma_conn_param param = params(NULL);
	struct sockaddr_in at;
	int fd = listen_without_mpa(&at);

	begin_connect(&a, &at, &param);
	close(accept(fd, NULL, NULL));
	expect_event(RDMA_CM_EVENT_REJECTED);
	drop(&a);
	begin_connect(&a, &at, &param);
	if (next_event(WAIT - 1))
		wrong("%s came early", rdma_event_str(event.what));
	else if (expect_event(RDMA_CM_EVENT_UNREACHABLE) &&
		 event.status != -ETIMEDOUT)
		wrong("status %d", event.status);
	close(fd);
}

/* Who has just replied may have left its listener for another: it is asked
 * again for half a second, and then believed. */
static struct sockaddr_in listens_late_at;

static int accept_and_read_nothing(int listens);

static int listen_again(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(fd >= 0 &&
		     !bind(fd, (struct sockaddr *)&listens_late_at,
			   sizeof(listens_late_at)) &&
		     !listen(fd, 4),
	     "to listen again");
	return fd;
}

static void *listen_late(void *none)
{
	int fd;

	usleep(200000);
	fd = listen_again();
	close(accept_and_read_nothing(fd));
	close(fd);
	return none;
}

static void listener_that_comes_back(void)
{
	struct rdma_conn_param param = params(NULL);
	int listens = listen_without_mpa(&listens_late_at);
	pthread_t thread;
	double from;

	close(listens);
	listens = listen_again();
	begin_connect(&a, &listens_late_at, &param);
	close(accept_and_read_nothing(listens));
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	close(listens);
	drop(&a);
	pthread_create(&thread, NULL, listen_late, NULL);
	begin_connect(&a, &listens_late_at, &param);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	pthread_join(thread, NULL);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	drop(&a);
	from = seconds();
	begin_connect(&a, &listens_late_at, &param);
	if (expect_event(RDMA_CM_EVENT_REJECTED) &&
	    (event.status != -ECONNREFUSED || seconds() - from > 2))
		wrong("refused with %d after %.1f s", event.status,
		      seconds() - from);
}

/* A peer that reads nothing any more: what is to be sent waits for room, and
 * costs nothing meanwhile. */
static int accept_and_read_nothing(int listens)
{
	/* CRC, revision 2, peer-to-peer by WRITE, depths of 1 */
	static const uint8_t reply[24] = "MPA ID Rep Frame\x50\x02\0\4"
					 "\x80\1\x80\1";
	char request[64];
	int fd = accept(listens, NULL, NULL);

	must(fd >= 0 && recv(fd, request, sizeof(request), 0) >= 20,
	     "a request");
	must(send(fd, reply, sizeof(reply), MSG_NOSIGNAL) == 24, "send");
	return fd;
}

static void peer_that_reads_nothing(void)
{
	struct rdma_conn_param param = params(NULL);
	struct ibv_send_wr *bad, wr = rdma(IBV_WR_RDMA_WRITE, 0x12345600);
	struct sockaddr_in at;
	struct ibv_sge sge;
	int listens = listen_without_mpa(&at), fd;
	clock_t before;

	begin_connect(&a, &at, &param);
	fd = accept_and_read_nothing(listens);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	sge = (struct ibv_sge){ (uintptr_t)a.memory, BYTES, a.mr->lkey };
	wr.sg_list = &sge;
	wr.num_sge = 1;
	for (int i = 0; i < 64; i++)
		must(!ibv_post_send(a.id->qp, &wr, &bad), "ibv_post_send");
	sleep(1); /* the thread may have been looking for something */
	before = clock();
	sleep(1);
	if (clock() - before > CLOCKS_PER_SEC / 5)
		wrong("waiting for room took %ld ms of a second",
		      (long)((clock() - before) * 1000 / CLOCKS_PER_SEC));
	close(fd);
	close(listens);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
}

/* Bytes of a stream, all of them. */
static void hear(int fd, void *bytes, size_t len)
{
	if (recv(fd, bytes, len, MSG_WAITALL) != (ssize_t)len)
		wrong("no %zu bytes came", len);
}

/*
 * A peer of this host that is no Verbena, and replies with the bits that it
 * was asked with, as Linux's siw does: all goes over TCP, and nothing that
 * only a Verbena understands.
 */
static void stranger_of_this_host(void)
{
	struct rdma_conn_param param = params(NULL);
	struct timeval limit = { .tv_sec = 3 };
	uint8_t frame[24], fpdu[4500];
	struct sockaddr_in at;
	int fd = listen_without_mpa(&at), peer;

	begin_connect(&a, &at, &param);
	peer = accept(fd, NULL, NULL);
	setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	hear(peer, frame, sizeof(frame));
	if ((frame[16] & 15) != goes_near())
		wrong("flags 0x%02x in the request", frame[16]);
	memcpy(frame, "MPA ID Rep Frame", 16);
	must(send(peer, frame, sizeof(frame), 0) == sizeof(frame), "send");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	hear(peer, fpdu, 2 + 14 + 4); /* who asked begins, with nothing */
	if (fpdu[1] != 14 || (fpdu[3] & 15) != 0)
		wrong("it begins with RDMAP opcode %u", fpdu[3] & 15);
	hear(peer, fpdu, 2 + 18 + 4096 + 4);
	if ((fpdu[0] << 8 | fpdu[1]) != 18 + 4096 || (fpdu[3] & 15) != 3)
		wrong("RDMAP opcode %u, and not the SEND", fpdu[3] & 15);
	close(peer);
	close(fd);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
}

/* And one that says that it is a Verbena, and never who. */
static void stranger_that_pretends(void)
{
	struct rdma_conn_param param = params(NULL);
	struct sockaddr_in at;
	int fd = listen_without_mpa(&at), peer;
	uint8_t frame[24];

	begin_connect(&a, &at, &param);
	peer = accept(fd, NULL, NULL);
	hear(peer, frame, sizeof(frame));
	memcpy(frame, "MPA ID Rep Frame", 16);
	frame[16] = 0x52;
	must(send(peer, frame, sizeof(frame), 0) == sizeof(frame), "send");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	close(peer);
	close(fd);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
}

/* A RoCE device that is opened when iWARP is at work. */
static void roce_device_opened_later(void)
{
	struct rc_options o = RC_OPTIONS;
	struct rc_address to;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.sg_list = &sge,
					.num_sge = 1 };
	char bytes[8192] = "from here to there";
	struct rc_device d;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	connected();
	o.device = getenv("ROCE_DEVICE");
	if (!o.device)
		return;
	rc_open(&d, &o);
	cq = ibv_create_cq(d.context, 16, NULL, NULL, 0);
	mr = ibv_reg_mr(d.pd, bytes, sizeof(bytes), RC_ALL_ACCESS);
	must(cq && mr, "a completion queue, a region");
	qp = rc_qp(&d, cq, 4, 1, 0);
	to = rc_address(&d, qp, 7);
	rc_connect(&d, qp, &o, 7, &to);
	sge = (struct ibv_sge){ (uintptr_t)bytes, 4096, mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)bytes + 4096;
	wr.wr.rdma.rkey = mr->rkey;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	if (!rc_wait(cq, WAIT, &wc) || wc.status != IBV_WC_SUCCESS ||
	    memcmp(bytes, bytes + 4096, 4096))
		wrong("RoCE: status %d", (int)wc.status);
	post_recv(&b, 4096);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	must(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq),
	     "to destroy");
	rc_close(&d);
}

/* What there is on RoCE and not here; errno as Linux's siw has it. */
static void refuses(bool made, const char *what)
{
	if (made || errno != EOPNOTSUPP)
		wrong("%s: errno %d", what, made ? 0 : errno);
	errno = 0;
}

static void queue_pairs_an_rnic_has_not(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr opened = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = a.id->qp->qp_num,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_UC,
						  IBV_QPT_RAW_PACKET,
						  IBV_QPT_XRC_SEND,
						  IBV_QPT_XRC_RECV };
	char what[32];

	attr.send_cq = attr.recv_cq = a.cq;
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.qp_type = types[i];
		snprintf(what, sizeof(what), "queue pair type %d", types[i]);
		refuses(ibv_create_qp(pd, &attr), what);
	}
	refuses(ibv_create_qp_ex(verbs, &target), "an XRC target");
	refuses(ibv_open_qp(verbs, &opened), "an XRC target opened");
}

static void shared_queues_an_rnic_has_not(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ,
		.pd = pd,
		.cq = a.cq,
	};

	attr.srq_type = IBV_SRQT_XRC;
	refuses(ibv_create_srq_ex(verbs, &attr), "an XRC shared queue");
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	attr.tm_cap = (struct ibv_tm_cap){ .max_num_tags = 1, .max_ops = 1 };
	attr.srq_type = IBV_SRQT_TM;
	refuses(ibv_create_srq_ex(verbs, &attr), "tag matching");
}

static void addresses_an_rnic_has_not(void)
{
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = 3,
					   .fd = -1,
					   .oflags = 0100 };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ,
				       .max_wr = 1,
				       .max_sge = 1,
				       .pd = pd,
				       .cq = a.cq };
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_SNIFFER,
				      .size = sizeof(flow),
				      .port = 1 };
	union ibv_gid group = { .raw = { 0xff, 0x12 } };
	__be16 pkey;

	refuses(ibv_create_ah(pd, &ah), "an address handle");
	refuses(ibv_create_ah_from_wc(pd, &wc, NULL, 1), "a way back");
	refuses(ibv_open_xrcd(verbs, &xrcd), "an XRC domain");
	refuses(ibv_create_wq(verbs, &wq), "a work queue");
	refuses(ibv_create_flow(a.id->qp, &flow), "a flow");
	errno = ibv_attach_mcast(a.id->qp, &group, 0);
	refuses(false, "a multicast group");
	errno = ibv_detach_mcast(a.id->qp, &group, 0);
	refuses(false, "to leave a multicast group");
	if (ibv_query_pkey(verbs, 1, 0, &pkey) != -1 || errno != EINVAL)
		wrong("a P_Key");
}

static void what_an_rnic_has_not(void)
{
	connected();
	queue_pairs_an_rnic_has_not();
	shared_queues_an_rnic_has_not();
	addresses_an_rnic_has_not();
}

/* The same by librdmacm: what ids of a connection make for themselves. */
static void what_ids_have_not(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC,
	};
	static const enum ibv_qp_type types[] = { IBV_QPT_UD, IBV_QPT_XRC_SEND,
						  IBV_QPT_XRC_RECV };
	struct rdma_cm_id *id;
	char what[32];

	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000),
	     "rdma_resolve_addr");
	expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.qp_type = types[i];
		snprintf(what, sizeof(what), "an id's type %d", types[i]);
		refuses(!rdma_create_qp(id, NULL, &attr), what);
	}
	refuses(!rdma_create_srq_ex(id, &srq), "an id's XRC shared queue");
	if (!rdma_join_multicast(id, (struct sockaddr *)&address, NULL) ||
	    errno != EINVAL)
		wrong("an id's group: errno %d", errno);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* Datagrams are for a RoCE device on the same interface, if there is one. */
static void try_datagrams(enum rdma_port_space space)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, at = address;
	bool roce = getenv("ROCE_DEVICE");
	struct rdma_cm_id *id[3];

	at.sin_port = 0;
	for (int i = 0; i < 3; i++)
		must(!rdma_create_id(channel, &id[i], NULL, space),
		     "rdma_create_id");
	if (roce) {
		must(!rdma_bind_addr(id[0], (struct sockaddr *)&at) &&
			     !rdma_bind_addr(id[1], (struct sockaddr *)&any) &&
			     !rdma_resolve_addr(id[2], NULL,
						(struct sockaddr *)&address,
						1000),
		     "datagrams by RoCE");
		expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	} else {
		refuses(!rdma_bind_addr(id[0], (struct sockaddr *)&at),
			"to bind for datagrams");
		refuses(!rdma_bind_addr(id[1], (struct sockaddr *)&any),
			"to bind anywhere for datagrams");
		must(!rdma_resolve_addr(id[2], NULL,
					(struct sockaddr *)&address, 1000),
		     "rdma_resolve_addr");
		if (expect_event(RDMA_CM_EVENT_ADDR_ERROR) &&
		    event.status != -EOPNOTSUPP)
			wrong("to resolve for datagrams: %d", event.status);
	}
	for (int i = 0; i < 3; i++)
		must(!rdma_destroy_id(id[i]), "rdma_destroy_id");
}

static void datagrams_by_librdmacm(void)
{
	try_datagrams(RDMA_PS_UDP);
	try_datagrams(RDMA_PS_IPOIB);
}

/* They are InfiniBand's. */
static void addresses_of_infiniband(void)
{
	struct sockaddr_ib any = { .sib_family = AF_IB };
	struct rdma_cm_id *id;
	int rc;

	must(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP),
	     "rdma_create_id");
	rc = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (getenv("ROCE_DEVICE") ? rc : !rc || errno != ENODEV)
		wrong("to bind: errno %d", rc ? errno : 0);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name)                                                             \
	{                                                                      \
#name, name                                                    \
	}
	CASE(write_with_a_wrong_key),	 CASE(read_with_a_wrong_key),
	CASE(write_from_a_wrong_key),	 CASE(read_where_none_is_taken),
	CASE(send_without_a_receive),	 CASE(send_too_long),
	CASE(disconnect_after_sends),	 CASE(destroyed_without_a_word),
	CASE(private_data_and_depths),	 CASE(rejected),
	CASE(connects_that_cross),	 CASE(memory_that_changes),
	CASE(callers_that_are_no_mpa),	 CASE(stranger_of_this_host),
	CASE(stranger_that_pretends),	 CASE(what_an_rnic_has_not),
	CASE(what_ids_have_not),	 CASE(datagrams_by_librdmacm),
	CASE(addresses_of_infiniband),	 CASE(roce_device_opened_later),
	CASE(ids_inherited_by_fork),	 CASE(ports_inherited_by_fork),
	CASE(more_callers_than_backlog), CASE(silent_callers),
	CASE(callers_that_close_half),	 CASE(called_without_an_answer),
	CASE(peer_that_reads_nothing),	 CASE(listener_that_comes_back),
#undef CASE
};

static void set_up(const char *host)
{
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons(PORT) };
	must(inet_pton(AF_INET, host, &address.sin_addr) == 1, "address");
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	must(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) &&
		     !rdma_bind_addr(listener, (struct sockaddr *)&address) &&
		     !rdma_listen(listener, 16),
	     "rdma_listen");
}

int main(int argc, char **argv)
{
	unsigned failed = 0, passed = 0;

	if (argc < 2)
		die("usage: iwarp_test ADDRESS [CASE]");
	set_up(argv[1]);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 2 && strcmp(argv[2], cases[i].name))
			continue;
		problem[0] = '\0';
		cases[i].run();
		drop(&a);
		drop(&b);
		while (next_event(0.05)) /* of the end */
			;
		if (problem[0]) {
			printf("not ok %s: %s\n", cases[i].name, problem);
			failed++;
		} else {
			printf("ok %s\n", cases[i].name);
			passed++;
		}
		fflush(stdout);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
