/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: callers and listeners that send too little, too much, or nothing. */
#include "iwarp_test.h"

/* One TCP client sends nothing to the listener, another sends nonsense. */
void callers_that_are_no_mpa(void)
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

struct rdma_cm_id *listen_at(uint16_t port, int backlog)
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

/* Requests that the program has not read use no more descriptors than the
 * backlog, and each of them is served in turn. */
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
	/* A request with CRC, revision 2, and 4 bytes of private data: depths
	 * of 1. */
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

void more_callers_than_backlog(void)
{
	struct rdma_cm_id *id = listen_at(PORT + 4, BACKLOG);
	unsigned before, now;
	int fd[CALLERS];

	sleep(1); /* wait until the listeners of earlier cases are closed */
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

/* A client that sends an MPA request is served within a second, even while many
 * clients send nothing. Of these, the listener closes the first connections and
 * keeps the last ones. */
void silent_callers(void)
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

/* A caller that sends its request and a FIN is served, and nothing waits for
 * more bytes. */
void callers_that_close_half(void)
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
		/* The request asks for no RTR, so the acceptor awaits none. */
		expect_event(RDMA_CM_EVENT_ESTABLISHED);
		expect_event(RDMA_CM_EVENT_DISCONNECTED);
		expect_error_state(&b, "who was left");
	}
	close(p.fd);
}

/* Two peers that do not speak MPA: one closes the connection, one never
 * replies. A client waits 10 seconds for a reply, like siw; the test shortens
 * this time. */
int listen_without_mpa(struct sockaddr_in *at)
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

void called_without_an_answer(void)
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

/* A peer that has just replied may close its listener and open another one. So
 * a client whose connect is refused tries again for half a second, and only
 * then fails. */
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

void listener_that_comes_back(void)
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

/* A peer that accepts the connection and then reads no bytes. The sender waits
 * until the socket has space again; meanwhile it must use no processor time. */
static int accept_and_read_nothing(int listens)
{
	/* A reply with CRC, revision 2, peer-to-peer by WRITE, and depths of
	 * 1. */
	static const uint8_t reply[24] = "MPA ID Rep Frame\x50\x02\0\4"
					 "\x80\1\x80\1";
	char request[64];
	int fd = accept(listens, NULL, NULL);

	must(fd >= 0 && recv(fd, request, sizeof(request), 0) >= 20,
	     "a request");
	must(send(fd, reply, sizeof(reply), MSG_NOSIGNAL) == 24, "send");
	return fd;
}

void peer_that_reads_nothing(void)
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
	/* wait until the engine's thread has stopped looking for work */
	sleep(1);
	before = clock();
	sleep(1);
	if (clock() - before > CLOCKS_PER_SEC / 5)
		wrong("waiting for room took %ld ms of a second",
		      (long)((clock() - before) * 1000 / CLOCKS_PER_SEC));
	close(fd);
	close(listens);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
}
