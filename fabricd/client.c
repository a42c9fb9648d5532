/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of programs. A program that opens a port of a node has one
 * connection for it. This file checks everything that a program sends. Answers
 * that a program does not read wait in this process up to a limit, and further
 * ones are dropped, so that no program uses up the memory or the time of
 * others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>
#include <linux/sockios.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "fabricd/client_priv.h"

/* most bytes that may wait for one program in this process and in its socket */
#define OUTBOX_MOST ((size_t)64 << 20)
/* the commands that this file handles itself begin with these words */
#define JOIN	"join\n"
#define CAPTURE "capture\n"
/* most bytes of a capture that may wait for one program */
#define CAPTURE_MOST ((size_t)8 << 20)
/* most messages of one program that are handled before other descriptors are
 * looked at */
#define MESSAGES_RUN 64
#define RECEIVE	     (sizeof(struct vb_umad_mad) + VB_UMAD_INLINE)

/* --- messages to a program --- */

void vb_queued_message_free(struct queued_message *l)
{
	if (l->memory >= 0)
		close(l->memory);
	free(l);
}

static size_t queued_size(const struct queued_message *l)
{
	return l->len + (l->memory >= 0 ? l->memory_len : 0);
}

static int send_message(struct client *c, const struct queued_message *l)
{
	int rc = vb_fdmail_send(c->watch.fd, l->bytes, l->len, &l->memory,
				l->memory >= 0, MSG_DONTWAIT);

	if (!rc && l->memory >= 0)
		c->unread += l->memory_len;
	return rc;
}

/* True if @more bytes may wait for the program. The kernel bounds what a
 * socket's queue holds, but does not count the memfds in it. c->unread counts
 * those until the queue is empty. */
static bool may_queue(struct client *c, size_t more)
{
	int left = 0;

	if (c->unread && ioctl(c->watch.fd, SIOCOUTQ, &left) == 0 && left == 0)
		c->unread = 0;
	return c->waiting + c->unread + more <= OUTBOX_MOST;
}

static void watch_for(struct client *c)
{
	uint32_t events = EPOLLIN | (c->first ? EPOLLOUT : 0u);

	if (vb_fabricd_watch(c->f, &c->watch, events, true))
		c->gone = true;
}

static void send_queued(struct client *c)
{
	while (c->first) {
		struct queued_message *l = c->first;
		int rc = send_message(c, l);

		if (rc == -EAGAIN)
			return;
		if (rc) {
			c->gone = true;
			return;
		}
		c->first = l->next;
		if (!c->first)
			c->last = &c->first;
		c->waiting -= queued_size(l);
		vb_queued_message_free(l);
	}
	watch_for(c);
}

/* A message without a memfd is dropped only if the socket has no room. */
void vb_client_post(struct client *c, struct queued_message *l)
{
	bool room = may_queue(c, queued_size(l));
	int rc = -EAGAIN;

	if (!c->first && (room || l->memory < 0))
		rc = send_message(c, l);
	if (rc != -EAGAIN || !room) {
		vb_queued_message_free(l);
		return;
	}
	l->next = NULL;
	*c->last = l;
	c->last = &l->next;
	c->waiting += queued_size(l);
	if (c->first == l)
		watch_for(c);
}

void vb_fabricd_mail(void *client, const void *bytes, size_t len)
{
	struct queued_message *l = malloc(sizeof(*l) + len);

	if (!l)
		return;
	*l = (struct queued_message){ .memory = -1, .len = len };
	memcpy(l->bytes, bytes, len);
	vb_client_post(client, l);
}

/* After shutdown() the connection reads as ended, and this process, which
 * watches it, closes the client. */
void vb_fabricd_expel(void *client)
{
	struct client *c = client;

	(void)shutdown(c->watch.fd, SHUT_RDWR);
}

/* --- questions --- */

static void answer(int fd, uint32_t kind, int result)
{
	const struct vb_umad_head h = { .magic = VB_UMAD_MAGIC,
					.kind = kind,
					.result = result };

	(void)!vb_fdmail_send(fd, &h, sizeof(h), NULL, 0, MSG_DONTWAIT);
}

static struct vb_fab_node *find_node(const struct vb_fabricd *f,
				     const struct vb_umad_where *w)
{
	char name[VB_UMAD_NAME];

	snprintf(name, sizeof(name), "%.*s", VB_UMAD_NAME - 1, w->node);
	return vb_fabricd_node(f, name);
}

static void answer_query(struct client *c, const struct vb_umad_where *w,
			 vb_time now)
{
	struct vb_fab_node *n = find_node(c->f, w);
	struct vb_umad_info i;

	/* a connection that asks about a node serves for nothing else */
	c->gone = true;
	if (!n) {
		answer(c->watch.fd, UMAD_QUERY, -ENODEV);
		return;
	}
	vb_fabricd_describe(c->f, n, w->port, &i, now);
	(void)!vb_fdmail_send(c->watch.fd, &i, sizeof(i), NULL, 0,
			      MSG_DONTWAIT);
}

static void attach(struct client *c, const struct vb_umad_where *w)
{
	struct vb_fab_node *n = find_node(c->f, w);

	if (n && vb_fabricd_has_own_port(n, w->port))
		c->agents = vb_mgmt_agents(c->f->mgmt, n, w->port);
	c->node = n;
	c->port = w->port;
	c->gone = !c->agents;
	answer(c->watch.fd, UMAD_ATTACH, c->agents ? 0 : -ENODEV);
}

static void attach_verbs(struct client *c, const struct vb_umad_where *w)
{
	struct vb_fab_node *n = find_node(c->f, w);
	int rc = -ENODEV;

	if (n)
		rc = vb_fabricd_verbs_attach(c->f, c, c->watch.fd, n, w,
					     &c->verbs);
	if (!rc)
		return;
	answer(c->watch.fd, VERBS_ATTACH, rc);
	c->gone = true;
}

/* The client wants to know its port: tell it now, and at each change. */
static void watch_port(struct client *c)
{
	if (!c->port_watch)
		c->port_watch =
			vb_fabricd_verbs_watch(c->f, c, c->node, c->port);
	c->gone = !c->port_watch;
}

static int register_agent(struct client *c, const struct vb_umad_wish *w)
{
	const struct vb_agent_wish wish = {
		.class = w->class,
		.class_version = w->class_version,
		.rmpp_version = w->rmpp_version,
		.oui = w->oui,
		.methods = { w->methods[0], w->methods[1] },
	};

	return vb_agents_register(c->agents, c, &wish);
}

/* --- commands --- */

/* Send @text to the program as one message of an answer, with @result in its
 * head. If the socket has no room, the message waits in the client's queue, so
 * that this thread never blocks. */
static void post_text(struct client *c, int result, const char *text,
		      size_t len)
{
	struct vb_umad_head h = {
		.magic = VB_UMAD_MAGIC,
		.kind = UMAD_COMMAND,
		.result = result,
		.length = (uint32_t)len,
	};
	struct queued_message *l = malloc(sizeof(*l) + sizeof(h) + len);

	if (!l) {
		/* the client cannot tell a truncated answer from a complete
		 * one, so end the connection */
		c->gone = true;
		return;
	}
	l->memory = -1;
	l->memory_len = 0;
	l->len = sizeof(h) + len;
	memcpy(l->bytes, &h, sizeof(h));
	memcpy(l->bytes + sizeof(h), text, len);
	vb_client_post(c, l);
}

static bool put_capture(void *arg, const uint8_t *bytes, size_t len)
{
	struct client *c = arg;

	if (c->waiting + len > CAPTURE_MOST)
		return false;
	post_text(c, 0, (const char *)bytes, len);
	return true;
}

static void end_capture(void *arg, int result, const char *said)
{
	struct client *c = arg;

	c->capture = NULL;
	post_text(c, result, said, strlen(said));
}

static void begin_capture(struct client *c, const char *text, vb_time now)
{
	const struct capture_outlet to = { put_capture, end_capture, c };
	char error[VB_TOPO_ERROR] = "";
	int rc = vb_fabricd_capture_begin(c->f, text, &to, &c->capture, error,
					  now);

	if (rc)
		post_text(c, rc, error, strlen(error));
}

/* Returns how many bytes an answer of @len bytes of text takes in the client's
 * queue. */
static size_t answer_weight(size_t len)
{
	size_t pieces = len / VB_UMAD_INLINE + 2;

	return len + pieces * sizeof(struct vb_umad_head);
}

static void post_answer(struct client *c, const char *text, size_t len)
{
	for (size_t at = 0; at < len; at += VB_UMAD_INLINE)
		post_text(c, 0, text + at,
			  VB_MIN(len - at, (size_t)VB_UMAD_INLINE));
	post_text(c, 0, "", 0);
}

/* Carry out a command. After "join" the program's host keeps its adapter for as
 * long as the program's connection lives. */
static int do_command(struct client *c, const char *text, int fd, FILE *to,
		      char *error, vb_time now)
{
	if (strncmp(text, JOIN, strlen(JOIN)) != 0)
		return vb_fabricd_do(c->f, text, fd, to, error, now);
	return vb_fabricd_join(c->f, &c->host, text + strlen(JOIN), to, error,
			       now);
}

/* Carry out a command and answer it. A command that comes while the client
 * reads a capture ends the capture. The program gets either the whole answer or
 * an error; if not even the error has room, the connection ends. */
static void run_client_command(struct client *c, const char *text, int fd,
			       vb_time now)
{
	char error[VB_TOPO_ERROR] = "", *said = NULL;
	int rc = -ENOMEM;
	size_t len = 0;
	FILE *to;

	if (c->capture) {
		vb_fabricd_capture_end(c->capture, now);
		return;
	}
	if (strncmp(text, CAPTURE, strlen(CAPTURE)) == 0) {
		begin_capture(c, text, now);
		return;
	}
	to = open_memstream(&said, &len);
	if (to) {
		rc = do_command(c, text, fd, to, error, now);
		if (fclose(to) && !rc)
			rc = -ENOMEM;
	}
	if (!rc && !may_queue(c, answer_weight(len))) {
		rc = -EMSGSIZE;
		snprintf(error, sizeof(error),
			 "an answer of %zu bytes is longer than this program "
			 "may have unread",
			 len);
	}
	if (rc && !error[0])
		snprintf(error, sizeof(error), "%s", strerror(-rc));
	if (!rc)
		post_answer(c, said, len);
	else if (may_queue(c, answer_weight(strlen(error))))
		post_text(c, rc, error, strlen(error));
	else
		c->gone = true;
	free(said);
}

/* --- messages from a program --- */

struct message {
	union {
		struct vb_umad_head head;
		struct vb_umad_where where;
		struct vb_umad_wish wish;
		struct vb_umad_agent agent;
		struct vb_umad_mad mad;
		struct vb_verbs_group group;
		uint8_t bytes[RECEIVE + 1];
	};
	size_t len;
	int fd; /* the descriptor that came with the message; -1: none */
};

static void take_port_message(struct client *c, struct message *m, vb_time now)
{
	size_t data = m->len - sizeof(m->mad);

	if (m->head.kind == UMAD_REGISTER && m->len == sizeof(m->wish))
		answer(m->fd, UMAD_REGISTER, register_agent(c, &m->wish));
	else if (m->head.kind == UMAD_UNREGISTER && m->len == sizeof(m->agent))
		answer(m->fd, UMAD_UNREGISTER,
		       vb_agents_unregister(c->agents, c, m->agent.agent));
	else if (m->head.kind == UMAD_WATCH && m->len == sizeof(m->head))
		watch_port(c);
	else if (m->head.kind == UMAD_MAD && m->len == sizeof(m->mad))
		vb_client_send_long(c, &m->mad, m->fd, now);
	else if (m->head.kind == UMAD_MAD && m->len > sizeof(m->mad) &&
		 m->mad.head.length == data)
		vb_client_send(c, &m->mad, m->bytes + sizeof(m->mad), now);
	else
		c->gone = true;
}

static void take_verbs_message(struct client *c, const struct message *m)
{
	uint32_t kind = m->head.kind;

	if ((kind == VERBS_JOIN || kind == VERBS_LEAVE) &&
	    m->len == sizeof(m->group))
		answer(m->fd, kind,
		       vb_fabricd_verbs_group(c->verbs, &m->group));
	else
		c->gone = true;
}

static void take_message(struct client *c, struct message *m, vb_time now)
{
	if (m->len < sizeof(m->head) || m->head.magic != VB_UMAD_MAGIC) {
		c->gone = true;
	} else if (c->agents) {
		take_port_message(c, m, now);
	} else if (c->verbs) {
		take_verbs_message(c, m);
	} else if (m->head.kind == VERBS_ATTACH && m->len == sizeof(m->where)) {
		attach_verbs(c, &m->where);
	} else if (m->head.kind == UMAD_QUERY && m->len == sizeof(m->where)) {
		answer_query(c, &m->where, now);
	} else if (m->head.kind == UMAD_ATTACH && m->len == sizeof(m->where)) {
		attach(c, &m->where);
	} else if (m->head.kind == UMAD_COMMAND) {
		m->bytes[m->len] = '\0';
		run_client_command(c, (char *)m->bytes + sizeof(m->head), m->fd,
				   now);
	} else {
		c->gone = true;
	}
}

/* Read and handle one message of a program. False: no message has come, or the
 * connection ends. */
static bool receive_request(struct client *c, vb_time now)
{
	/* static, because the process has only one thread */
	static struct message m;
	unsigned count = 1;
	ssize_t n = vb_fdmail_recv(c->watch.fd, m.bytes, RECEIVE, &m.fd, &count,
				   MSG_DONTWAIT);

	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		c->gone = true;
		return false;
	}
	m.len = (size_t)n;
	if (!count)
		m.fd = -1;
	take_message(c, &m, now);
	if (m.fd >= 0)
		close(m.fd);
	return !c->gone;
}

/* Count a client that comes (@in) or goes. When the last client but the subnet
 * manager has gone, the timer starts after which an idle fabric ends. */
static void count_client(struct client *c, bool in, vb_time now)
{
	struct vb_fabricd *f = c->f;

	f->client_count += in ? 1u : -1u;
	if (c->manager)
		return;
	f->busy += in ? 1u : -1u;
	if (f->linger == VB_NEVER)
		return;
	if (f->busy)
		vb_fabricd_never(f, &f->idle);
	else
		vb_fabricd_later(f, &f->idle, now + f->linger);
}

static void close_client(struct client *c)
{
	vb_time now = vb_clock_read();

	if (c->agents)
		vb_agents_forget(c->agents, c);
	if (c->port_watch)
		vb_fabricd_verbs_unwatch(c->port_watch);
	if (c->verbs)
		vb_fabricd_verbs_detach(c->verbs);
	if (c->host)
		vb_fabricd_leave(c->host, now);
	if (c->capture)
		vb_fabricd_capture_free(c->capture);
	while (c->first) {
		struct queued_message *l = c->first;

		c->first = l->next;
		vb_queued_message_free(l);
	}
	close(c->watch.fd);
	vb_chain_del(&c->link);
	count_client(c, false, now);
	free(c);
}

static void serve_client(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct client *c = VB_CONTAINER_OF(w, struct client, watch);
	struct vb_fabricd *f = c->f;

	if (events & EPOLLOUT)
		send_queued(c);
	for (unsigned i = 0; i < MESSAGES_RUN && !c->gone; i++)
		if (!receive_request(c, now))
			break;
	if (c->gone)
		close_client(c);
	/* The client's end may have freed descriptors, the client's own or
	 * those of messages. */
	if (f->full && f->client_count < f->clients_most)
		vb_fabricd_accept_more(f, true);
}

bool vb_fabricd_take_client(struct vb_fabricd *f, int fd, bool manager,
			    vb_time now)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->f = f;
	c->watch.fd = fd;
	c->watch.ready = serve_client;
	c->last = &c->first;
	c->manager = manager;
	vb_chain_add(&f->clients, &c->link);
	count_client(c, true, now);
	if (vb_fabricd_watch(f, &c->watch, EPOLLIN, false))
		close_client(c);
	return true;
}

void vb_fabricd_close_clients(struct vb_fabricd *f)
{
	while (f->clients)
		close_client(VB_CONTAINER_OF(f->clients, struct client, link));
}
