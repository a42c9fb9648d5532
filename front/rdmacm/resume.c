/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery from the loss of the broker. The broker process may end while
 * connections are open; another process then becomes the broker and knows
 * nothing of this process's ids. So each id keeps a record of the messages to
 * and from the broker, and this file replays the records to the next broker:
 * bound ports and listeners come back, open connections continue under the
 * communication ids that their peers know, and half-open ones send their
 * request or reply again, as if a datagram had been lost.
 */
#include "front/rdmacm/rdmacm.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "base/log.h"

/* How long to wait for the next broker to start. */
#define PATIENCE (10 * VB_SEC)
/* pause between two attempts to connect to the broker */
#define NAP (5 * VB_MSEC)
/* How long to wait for the process whose port this process shares to bind the
 * port again; that process may have ended. */
#define FOR_HOST (2 * VB_SEC)

/* Functions that update the records of ids. */

void rcm_note_said(const struct vb_ipc_cm *m)
{
	struct rcm_id *id = rcm_id_find(m->id);
	struct rcm_record *r = id ? &id->record : NULL;

	if (!r)
		return;
	switch (m->kind) {
	case IPC_CM_CONNECT:
	case IPC_CM_ACCEPT:
		r->said = *m;
		r->stage =
			m->kind == IPC_CM_CONNECT ? RCM_CALLED : RCM_ANSWERED;
		break;
	case IPC_CM_ESTABLISH:
		if (r->stage == RCM_REPLIED || r->stage == RCM_ANSWERED)
			r->stage = RCM_UP;
		break;
	case IPC_CM_DISCONNECT:
		r->leaves = true;
		break;
	case IPC_CM_REJECT:
		r->stage = RCM_IDLE;
		break;
	case IPC_CM_PATH:
	case IPC_CM_SERVICE:
		r->path = *m;
		break;
	default:
		break;
	}
}

void rcm_note_done(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *m)
{
	struct rcm_id *id = rcm_id_find(asked->id);

	if (!id || m->status)
		return;
	if (asked->kind == IPC_CM_BIND) {
		id->record.bound = *asked;
		id->record.bound.src_port = m->src_port;
	} else if (asked->kind == IPC_CM_LISTEN) {
		id->record.listens = true;
		id->record.backlog = asked->backlog;
	}
}

void rcm_note_heard(struct rcm_id *id, const struct vb_ipc_cm *m)
{
	struct rcm_record *r = &id->record;

	switch (m->event) {
	case IPC_CM_REPLY:
		r->ticket = *m;
		r->stage = RCM_REPLIED;
		break;
	case IPC_CM_ESTABLISHED:
		r->stage = RCM_UP;
		break;
	case IPC_CM_ROUTE:
	case IPC_CM_SERVICES:
		r->path.kind = 0;
		break;
	case IPC_CM_GROUP:
		break;
	default:
		r->stage = RCM_IDLE;
		break;
	}
}

/* Functions that replay the records of ids to the next broker. */

/* The messages for the next broker, in order; lines[0] is the HELLO. */
struct script {
	struct vb_ipc_cm *lines;
	size_t count, room;
	int rc; /* -ENOMEM: some messages could not be stored; else 0 */
};

static void resume_add(struct script *s, const struct vb_ipc_cm *m)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		void *lines = realloc(s->lines, room * sizeof(*m));

		if (!lines) {
			s->rc = -ENOMEM;
			return;
		}
		s->lines = lines;
		s->room = room;
	}
	s->lines[s->count++] = *m;
}

static void add_bound(struct script *s, const struct rcm_id *id)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_LISTEN);

	if (id->record.bound.kind != IPC_CM_BIND)
		return;
	resume_add(s, &id->record.bound);
	m.backlog = id->record.backlog;
	if (id->record.listens)
		resume_add(s, &m);
	if (id->record.path.kind)
		resume_add(s, &id->record.path);
}

static void add_group(void *script, const struct vb_ipc_cm *m)
{
	resume_add(script, m);
}

static void add_resume(struct script *s, const struct rcm_id *id,
		       enum vb_ipc_cm_stage stage)
{
	const struct rcm_record *r = &id->record;
	struct vb_ipc_cm m = id->path, bye;

	m.kind = IPC_CM_RESUME;
	m.version = VB_IPC_CM_VERSION;
	m.id = id->number;
	m.status = (int32_t)stage;
	m.type = r->bound.kind ? r->bound.type : r->ticket.type;
	m.space = r->bound.space;
	m.src_port = r->bound.src_port;
	m.flags = (uint8_t)(r->bound.flags | (id->path.flags & IPC_CM_V1));
	m.qpn = stage == IPC_CM_AT_REQUEST ? 0 : r->said.qpn;
	m.local_id = r->ticket.local_id;
	m.remote_id = r->ticket.remote_id;
	m.peer_qpn = r->ticket.peer_qpn;
	m.guid = r->ticket.guid;
	m.tid = r->ticket.tid;
	m.private_bytes = 0;
	resume_add(s, &m);
	bye = rcm_message(id, IPC_CM_DISCONNECT);
	if (r->leaves)
		resume_add(s, &bye);
}

static void add_call(struct script *s, const struct rcm_id *id)
{
	struct vb_ipc_cm m = id->record.said;

	add_bound(s, id);
	m.flags |= IPC_CM_AGAIN;
	resume_add(s, &m);
}

static void add_id(struct script *s, const struct rcm_id *id)
{
	enum rcm_stage stage = id->record.stage;

	if (rcm_is_ud(id) && stage != RCM_CALLED)
		stage = RCM_IDLE;
	if (stage == RCM_IDLE) {
		add_bound(s, id);
		rcm_groups_each(id, add_group, s);
		return;
	}
	switch (stage) {
	case RCM_IDLE:
		break;
	case RCM_CALLED:
		add_call(s, id);
		break;
	case RCM_ASKED:
		add_resume(s, id, IPC_CM_AT_REQUEST);
		break;
	case RCM_ANSWERED:
		add_resume(s, id, IPC_CM_AT_REQUEST);
		resume_add(s, &id->record.said);
		break;
	case RCM_REPLIED:
		add_resume(s, id, IPC_CM_AT_REPLY);
		break;
	case RCM_UP:
		add_resume(s, id, IPC_CM_AT_END);
		break;
	}
}

/* Add a request that the program has not read, so that it has no rcm_id yet. */
static void add_unseen(struct script *s, const struct rcm_event *e)
{
	const struct rcm_id id = { .number = e->m.id,
				   .forks = rcm.forks,
				   .path = e->m,
				   .record.ticket = e->m };

	add_resume(s, &id, IPC_CM_AT_REQUEST);
}

/* Writes the messages. The first is a HELLO that names a queue pair of this
 * process. The broker answers whether this process's engine has registered with
 * it again; before that the broker would refuse to connect the queue pairs. */
static void write_script(struct script *s)
{
	struct vb_ipc_cm hello = { .kind = IPC_CM_HELLO,
				   .version = VB_IPC_CM_VERSION };

	pthread_mutex_lock(&rcm.lock);
	resume_add(s, &hello);
	for (unsigned i = 0; i < VB_COUNT(rcm.ids); i++)
		for (const struct rcm_id *id = rcm.ids[i]; id; id = id->next) {
			if (id->record.said.qpn && !id->record.said.place)
				hello.qpn = id->record.said.qpn;
			add_id(s, id);
		}
	if (rcm.known_qpn)
		hello.qpn = rcm.known_qpn;
	for (const struct rcm_event *e = rcm.unseen; e; e = e->next_unseen)
		add_unseen(s, e);
	pthread_mutex_unlock(&rcm.lock);
	if (s->rc == 0 && hello.qpn)
		s->lines[0] = hello;
	else if (s->rc == 0)
		/* there is no queue pair, so no HELLO is needed */
		s->lines[0].kind = 0;
}

/* True if the broker answers messages of this kind with DONE. */
static bool is_answered(const struct vb_ipc_cm *m)
{
	return m->kind == IPC_CM_BIND || m->kind == IPC_CM_LISTEN ||
	       m->kind == IPC_CM_HELLO;
}

/* Sends @m and, if the broker answers that kind, waits for the answer and
 * stores it in *@done. -errno: the session failed; an error of the broker is in
 * done->status. */
static int say_line(int fd, const struct vb_ipc_cm *m, struct vb_ipc_cm *done)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	size_t len = vb_ipc_cm_put(bytes, m);
	int rc = vb_fdmail_send(fd, bytes, len, NULL, 0, 0);

	*done = (struct vb_ipc_cm){ 0 };
	while (rc == 0 && is_answered(m) &&
	       !(done->kind && rcm_is_answer(m, done)))
		rc = rcm_session_hear(fd, done);
	return rc;
}

static void resume_nap(void)
{
	nanosleep(&(struct timespec){ 0, (long)NAP }, NULL);
}

/* True if the broker refused the BIND @m of a child of fork() because the
 * parent, whose port the child shares, has not bound it again yet. */
static bool waits_for_host(const struct vb_ipc_cm *m,
			   const struct vb_ipc_cm *done)
{
	return m->kind == IPC_CM_BIND && m->flags & IPC_CM_JOIN &&
	       done->status == EACCES;
}

static int say_patiently(int fd, const struct vb_ipc_cm *m, vb_time until,
			 struct vb_ipc_cm *done)
{
	int rc = say_line(fd, m, done);

	while (rc == 0 && waits_for_host(m, done) && vb_clock_read() < until) {
		resume_nap();
		rc = say_line(fd, m, done);
	}
	return rc;
}

/*
 * Sends the messages of the script. Another program may have bound a port of
 * this process in the meantime. Then the port is lost, and the LISTEN of its id
 * is left out, because the broker does not know the id.
 */
static int say_lines(int fd, const struct script *s, vb_time until)
{
	struct vb_ipc_cm done;
	uint32_t lost = 0;
	int rc;

	for (size_t i = 1; i < s->count; i++) {
		const struct vb_ipc_cm *m = &s->lines[i];

		if (m->kind == IPC_CM_LISTEN && m->id == lost)
			continue;
		rc = say_patiently(fd, m, until, &done);
		if (rc)
			return rc;
		if (!done.status)
			continue;
		lost = m->id;
		vb_log(LOG_WARN, "rdmacm: port %u is lost: %s", m->src_port,
		       strerror(done.status));
	}
	return 0;
}

/* Replays the script. -EAGAIN: the broker has ended, or does not know this
 * process's engine yet. */
static int tell_all(int fd, const struct script *s)
{
	const vb_time until = vb_clock_read() + FOR_HOST;
	struct vb_ipc_cm done = { 0 };
	int rc = s->lines[0].kind ? say_line(fd, &s->lines[0], &done) : 0;

	if (rc || done.status)
		return -EAGAIN;
	return say_lines(fd, s, until) ? -EAGAIN : 0;
}

/* Gives the broker this process's adapters of fabrics, and follows the numbers
 * that it gives them. 0 or -EAGAIN. */
static int tell_places(int fd)
{
	uint8_t *was = calloc(rcm.device_count + 1, sizeof(*was));
	int rc;

	if (!was)
		return -EAGAIN;
	for (unsigned i = 0; i < rcm.device_count; i++)
		was[i] = rcm.devices[i].place;
	rc = rcm_places_tell(fd);
	pthread_mutex_lock(&rcm.lock);
	rcm_places_follow(was);
	pthread_mutex_unlock(&rcm.lock);
	free(was);
	return rc ? -EAGAIN : 0;
}

/* Tries to resume at a broker. The script is written anew for each broker,
 * because one that has ended may have sent events that changed the records.
 * Returns the descriptor of the session or -errno. */
static int try_once(void)
{
	struct script s = { 0 };
	int fd = rcm_session_connect();

	if (fd < 0)
		return -EAGAIN;
	s.rc = tell_places(fd);
	if (s.rc == 0)
		write_script(&s);
	if (s.rc == 0)
		s.rc = tell_all(fd, &s);
	free(s.lines);
	if (s.rc) {
		close(fd);
		return s.rc;
	}
	return fd;
}

int rcm_resume(void)
{
	const vb_time until = vb_clock_read() + PATIENCE;
	int rc;

	do {
		/* an engine of some program is about to start a broker */
		resume_nap();
		rc = try_once();
	} while (rc == -EAGAIN && vb_clock_read() < until);
	return rc;
}
