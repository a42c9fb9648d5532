/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's sessions: one thread and one poll loop, which never waits for a
 * program. */
#include "broker/broker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "broker/cm.h"
#include "broker/fd_limit.h"
#include "broker/foreign_names.h"
#include "broker/mail.h"
#include "broker/quota.h"
#include "broker/slots.h"
#include "link/udp.h"

#define MAX_SESSIONS 768 /* the most sessions; a program has up to two */
/* index of the first session; the listener and queue pair 1 precede it */
#define FIRST_FD 2
/* Descriptors that the broker needs besides those of sessions: the slots'
 * sockets and some more. */
#define OTHER_FDS	(VB_SLOTS_MADE + 64)
#define FEWEST_SESSIONS 128

/* A program's claim of a slot waits REJOIN_WAIT for another program to rejoin
 * with an earlier broker's sockets; the broker tries it each REJOIN_TICK. */
#define REJOIN_WAIT (2 * VB_SEC)
#define REJOIN_TICK (20 * VB_MSEC)
/* Without free descriptors the broker accepts no session for this long. */
#define ACCEPT_NAP (100 * VB_MSEC)
/* The broker closes a session that has no slot and sends nothing for this long,
 * because it uses a place that another program may need. */
#define SILENCE (5 * VB_SEC)
/* When a session has ended and the name of its slot is still bound, the broker
 * checks at this interval whether the slot is free. */
#define REST_RETRY (100 * VB_MSEC)
/* A claim also makes the broker check, but at most once in this time. */
#define REST_PAUSE (10 * VB_MSEC)
/* The broker ends a session when it has refused this many of its claims. */
#define MOST_REFUSALS 8
/* While users have limited sockets, the broker attaches the steering program
 * again at this interval, because each holder can detach it. */
#define STEER_RETRY VB_SEC
/* The shortest linger. The broker looks for taken slots once in each linger,
 * and must not spin while a slot stays taken without a session. */
#define LEAST_LINGER (100 * VB_MSEC)

struct session {
	int fd;
	struct vb_process who;
	/* client of the connection manager; set once the session sends messages
	 * about connections */
	struct vb_cm_client *cm;
	struct vb_user *user;
	bool trusted; /* the program belongs to the broker's user, or to root */
	unsigned refusals; /* number of claims that were refused */
	unsigned slot;	   /* the slot that was granted or rejoined; 0: none */
	/* the time when the program connected or last sent a message */
	vb_time heard;
	/* the time when a waiting claim fails; VB_NEVER: no claim waits */
	vb_time claim_by;
};

struct broker {
	int listener;
	vb_time linger;
	/* the time since when the broker is idle; VB_NEVER: it is not idle */
	vb_time idle_since;
	vb_time accept_after; /* the time before which no session is accepted */
	/* the next check of restless slots (see below), or VB_NEVER */
	vb_time rest_at;
	/* the time when a claim last caused such a check */
	vb_time rested_at;
	vb_time steer_at; /* the next time to steer packets, or VB_NEVER */
	/* A slot is restless if its program's session has ended, but the slot's
	 * name in the abstract socket namespace is still bound. */
	bool restless[VB_SLOTS_MADE];
	/* For each slot, the user of the program that holds the slot. NULL: the
	 * slot is free, or an earlier broker granted it to a program that has
	 * not rejoined. */
	struct vb_user *holders[VB_SLOTS_MADE];
	struct vb_users users;
	struct vb_slots slots;
	struct vb_foreign_names foreign;
	struct vb_host_cm *cm;
	uint64_t accepted; /* number of sessions accepted so far */
	/* number of sessions, and the most that are allowed */
	unsigned count, most;
	struct session sessions[MAX_SESSIONS];
};

/* Send an answer. Never blocks: if the program does not read, the send fails,
 * and the caller ends the session. */
static int broker_reply(const struct session *s, const struct vb_ipc *m,
			const int *fds, unsigned count)
{
	uint8_t bytes[VB_IPC_BYTES];
	size_t len = vb_ipc_put(bytes, m);

	return vb_fdmail_send(s->fd, bytes, len, fds, count, MSG_DONTWAIT);
}

static int refuse_with(const struct session *s, struct vb_ipc *m, int error)
{
	m->error = error;
	vb_log(LOG_INFO, "broker: a program is refused: %s", m->text);
	return broker_reply(s, m, NULL, 0);
}

static int refuse_program(const struct session *s, int error)
{
	struct vb_ipc m = vb_mail_compose(IPC_REFUSE);

	vb_mail_word_refusal(error, m.text);
	return refuse_with(s, &m, error);
}

static struct session *find_holder(struct broker *b, unsigned slot)
{
	for (unsigned i = 0; i < b->count; i++)
		if (b->sessions[i].slot == slot)
			return &b->sessions[i];
	return NULL;
}

static void drop_holder(struct broker *b, unsigned slot)
{
	struct vb_user *u = b->holders[slot];

	b->holders[slot] = NULL;
	if (!u)
		return;
	vb_user_give(u, VB_QUOTA_SLOTS, 1);
	vb_user_leave(u);
}

static void broker_hold(struct broker *b, struct session *s, unsigned slot)
{
	struct vb_user *u = vb_user_enter(&b->users, s->who.uid, s->trusted);
	struct session *before = find_holder(b, slot);

	/* The program that had the slot has closed the slot's name: it no
	 * longer has the slot, even if its session still lives. */
	if (before)
		before->slot = 0;
	drop_holder(b, slot);
	b->restless[slot] = false;
	b->holders[slot] = u;
	if (u)
		vb_user_count(u, VB_QUOTA_SLOTS, 1);
	s->slot = slot;
}

/* Frees restless slots whose names are no longer bound. True: none is left. */
static bool rest_all(struct broker *b)
{
	bool all = true;

	for (unsigned i = 1; i < VB_SLOTS_MADE; i++) {
		if (!b->restless[i])
			continue;
		if (vb_slots_rest(&b->slots, i)) {
			b->restless[i] = false;
			drop_holder(b, i);
		} else {
			all = false;
		}
	}
	return all;
}

/* Returns the number of slots that are taken. When more slots are taken than
 * the broker has granted, the broker asks the kernel for the users of the
 * others. */
static unsigned count_taken(struct broker *b, vb_time now)
{
	unsigned taken = vb_slots_taken_lately(&b->slots, now), known = 0;

	for (unsigned i = 0; i < VB_SLOTS_MADE; i++)
		known += b->holders[i] != NULL;
	if (taken > known || b->foreign.count)
		vb_foreign_names_look(&b->foreign, now);
	return taken;
}

/* Returns whether the quota of the user of @s allows a slot; if not, @text says
 * why. */
static bool has_share(struct broker *b, const struct session *s,
		      char text[VB_IPC_TEXT], vb_time now)
{
	unsigned taken;

	if (s->trusted)
		return true;
	if (now - b->rested_at >= REST_PAUSE) {
		b->rested_at = now;
		(void)rest_all(b);
	}
	taken = count_taken(b, now);
	if (!vb_user_may_have_last(s->user, VB_QUOTA_SLOTS,
				   VB_MAX_PROGRAMS - taken)) {
		vb_user_word_reserve(VB_QUOTA_SLOTS, text, VB_IPC_TEXT);
		return false;
	}
	if (vb_user_may_have(s->user, VB_QUOTA_SLOTS, 1))
		return true;
	vb_user_word_quota(s->user, VB_QUOTA_SLOTS, text, VB_IPC_TEXT);
	return false;
}

/* Refuses a claim with @m, or with the text for @error if @m is NULL. -EDQUOT:
 * the caller ends the session, because the broker has refused MOST_REFUSALS of
 * its claims, and each claim costs the broker milliseconds. */
static int refuse_claim(struct session *s, struct vb_ipc *m, int error)
{
	int rc = m ? refuse_with(s, m, error) : refuse_program(s, error);

	if (rc == 0 && ++s->refusals >= MOST_REFUSALS)
		return -EDQUOT;
	return rc;
}

/* Sends @slot and its descriptors. Only trusted programs get the vault, because
 * it opens the sockets of all programs. A program that the answer cannot reach
 * with its descriptors gets the reason instead. */
static int send_slot(struct broker *b, struct session *s, unsigned slot,
		     int name)
{
	struct vb_ipc m = vb_mail_compose(IPC_GRANT);
	const int fds[IPC_FDS] = { [IPC_FD_SOCKET] = b->slots.fds[slot],
				   [IPC_FD_NAME] = name,
				   [IPC_FD_VAULT] = b->slots.vault };
	int rc;

	m.slot = (uint16_t)slot;
	rc = broker_reply(s, &m, fds, s->trusted ? IPC_FDS : IPC_FD_VAULT);
	if (rc)
		return refuse_claim(s, NULL, -rc);
	broker_hold(b, s, slot);
	return 0;
}

/* Grants a slot, or refuses the claim. */
static int grant(struct broker *b, struct session *s, vb_time now)
{
	struct vb_ipc no = vb_mail_compose(IPC_REFUSE);
	struct vb_claimant who = { s->who.uid, s->trusted };
	unsigned slot;
	int name, rc;

	s->claim_by = VB_NEVER;
	if (vb_fdmail_is_stranger(who.uid))
		who.uid = VB_SLOTS_STRANGER;
	if (!has_share(b, s, no.text, now))
		return refuse_claim(s, &no, EUSERS);
	rc = vb_slots_claim(&b->slots, &who, &slot, &name);
	if (rc == -EUSERS)
		(void)count_taken(b, now);
	if (rc)
		return refuse_claim(s, NULL, -rc);
	rc = send_slot(b, s, slot, name);
	close(name);
	return rc;
}

/* Grants a slot. If no socket exists yet, makes the first ones; if an earlier
 * broker's sockets have the port, waits for a program that rejoins with
 * them. */
static int try_claim(struct broker *b, struct session *s, vb_time now)
{
	int rc = b->slots.vault >= 0 ? 0 : vb_slots_create(&b->slots);

	if (rc == 0)
		return grant(b, s, now);
	if (rc == -EADDRINUSE && now < s->claim_by)
		return 0;
	s->claim_by = VB_NEVER;
	return refuse_claim(s, NULL, -rc);
}

static int on_claim(struct broker *b, struct session *s, struct vb_mail *mail,
		    vb_time now)
{
	if (s->slot || s->claim_by != VB_NEVER)
		return -EPROTO; /* the session already has a slot */
	s->claim_by = now + REJOIN_WAIT;
	return try_claim(b, s, now);
}

/*
 * Compares the vault of @s with the broker's. The broker accepts a vault from a
 * trusted program only, because it gave none to any other. 0: the broker has
 * sockets, and they are those of the vault that @s sent, if it sent one.
 * -EAGAIN: the broker has none yet. -EEXIST: the broker's sockets are others;
 * or the -errno of adopting the vault.
 */
static int match_vault(struct broker *b, const struct session *s,
		       struct vb_mail *mail)
{
	bool has = s->trusted && mail->fd_count == IPC_FDS;
	int rc;

	if (!has)
		return b->slots.vault >= 0 ? 0 : -EAGAIN;
	if (b->slots.vault >= 0)
		return vb_slots_is_ours(&b->slots, mail->fds[IPC_FD_VAULT])
			       ? 0
			       : -EEXIST;
	rc = vb_slots_adopt(&b->slots, mail->fds[IPC_FD_VAULT]);
	if (rc == 0)
		mail->fd_count = IPC_FD_VAULT;
	return rc;
}

/*
 * Check that a program really has the slot that it claims from an earlier
 * broker. It proves this by the slot's socket and name, which no other user's
 * program can have; the proof also holds when the program has become another
 * user since. A child that the program made with clone(2), without the library,
 * has both as well; but such a child is not the process that listens at the
 * name.
 */
static int check_holder(struct broker *b, const struct session *s,
			const struct vb_mail *mail)
{
	const struct session *before = find_holder(b, mail->m.slot);

	if (!vb_slots_is_held(&b->slots, mail->m.slot, mail->fds[IPC_FD_NAME],
			      mail->fds[IPC_FD_SOCKET]) ||
	    !vb_process_may_listen(&s->who, mail->fds[IPC_FD_NAME]))
		return -EPERM;
	if (before && !vb_process_speaks_for(&s->who, &before->who))
		return -EPERM;
	return 0;
}

static int on_rejoin(struct broker *b, struct session *s, struct vb_mail *mail,
		     vb_time now)
{
	struct vb_ipc m = vb_mail_compose(IPC_WELCOME);
	int rc;

	if (s->slot || s->claim_by != VB_NEVER || mail->fd_count < IPC_FD_VAULT)
		return -EPROTO;
	rc = match_vault(b, s, mail);
	if (rc == 0)
		rc = check_holder(b, s, mail);
	if (rc == -EEXIST || rc == -EAGAIN || rc == -EPERM)
		return refuse_program(s, -rc);
	if (rc)
		return rc;
	broker_hold(b, s, mail->m.slot);
	m.slot = mail->m.slot;
	return broker_reply(s, &m, NULL, 0);
}

static int on_status(struct broker *b, struct session *s, struct vb_mail *mail,
		     vb_time now)
{
	struct vb_ipc m = vb_mail_compose(IPC_REPORT);

	m.programs = count_taken(b, now);
	snprintf(m.text, sizeof(m.text),
		 "%u slots made, %u sessions, %u connections", b->slots.count,
		 b->count, vb_host_cm_count(b->cm));
	vb_foreign_names_word(&b->foreign, m.text, sizeof(m.text));
	return broker_reply(s, &m, NULL, 0);
}

/* Queue pair 1 uses slot 0's socket, so start it once that socket exists. */
static void attach_cm(struct broker *b, vb_time now)
{
	if (b->slots.vault >= 0)
		vb_host_cm_attach(b->cm, b->slots.fds[0], now);
}

/* Returns whether the slot in the queue pair number @qpn belongs to a session
 * of the process @who. */
static bool owns_qpn(void *arg, const struct vb_process *who, uint32_t qpn)
{
	const struct broker *b = arg;
	unsigned slot = qpn >> VB_QPN_BITS;

	for (unsigned i = 0; slot && i < b->count; i++) {
		const struct session *s = &b->sessions[i];

		if (s->slot == slot && vb_process_speaks_for(who, &s->who))
			return true;
	}
	return false;
}

/* Handles a connection message; the first of RoCEv2 makes slots' sockets. */
static int on_connections(struct broker *b, struct session *s,
			  struct vb_mail *mail, vb_time now)
{
	if (s->slot || s->claim_by != VB_NEVER)
		return -EPROTO;
	if (!s->cm)
		s->cm = vb_host_cm_join(b->cm, s->fd, &s->who, s->user);
	if (!s->cm)
		return -ENOMEM;
	if (b->slots.vault < 0 && vb_host_cm_needs_roce(s->cm, mail) &&
	    vb_slots_create(&b->slots) == 0)
		attach_cm(b, now);
	return vb_host_cm_take(s->cm, mail, now);
}

static int answer_mail(struct broker *b, struct session *s,
		       struct vb_mail *mail, vb_time now)
{
	// clang-format off
	static int (*const handlers[])(struct broker *, struct session *,
				       struct vb_mail *, vb_time) = {
		[IPC_CLAIM]  = on_claim,
		[IPC_REJOIN] = on_rejoin,
		[IPC_STATUS] = on_status,
	};
	// clang-format on
	unsigned kind = mail->m.kind;

	if (vb_mail_is_cm(mail))
		return on_connections(b, s, mail, now);
	if (s->cm || kind >= VB_COUNT(handlers) || !handlers[kind])
		return -EPROTO;
	return handlers[kind](b, s, mail, now);
}

/* Handles one message of @s, so that each session gets its turn. -errno: the
 * session must end. */
static int serve_session(struct broker *b, struct session *s, vb_time now)
{
	uint64_t owner = s->trusted ? VB_APART_TRUSTED : s->who.uid;
	struct vb_mail mail;
	int rc = vb_mail_read(s->fd, owner, &mail);

	if (rc <= 0)
		return rc;
	s->heard = now;
	rc = answer_mail(b, s, &mail, now);
	vb_mail_close(&mail);
	return rc;
}

/* Handles the last messages of @s, which its program has closed, until one
 * needs an answer: so a program that starts later finds the ports free that
 * this one released. Returns -errno always: the session must end. */
static int serve_last(struct broker *b, struct session *s, vb_time now)
{
	int rc = 0;

	while (rc == 0) {
		rc = serve_session(b, s, now);
		if (rc == 0 && s->cm)
			rc = vb_host_cm_error(s->cm);
	}
	return rc;
}

static void end_session(struct broker *b, unsigned i, vb_time now)
{
	struct session s = b->sessions[i];

	b->sessions[i] = b->sessions[--b->count];
	if (s.cm)
		vb_host_cm_leave(s.cm, now);
	close(s.fd);
	vb_user_give(s.user, VB_QUOTA_SESSIONS, 1);
	vb_user_leave(s.user);
	if (!s.slot)
		return;
	/* The program, or a child of it, may close the slot's name later. */
	b->restless[s.slot] = true;
	if (!rest_all(b))
		b->rest_at = VB_MIN(b->rest_at, now + REST_RETRY);
}

static void rest_slots(struct broker *b, vb_time now)
{
	if (now >= b->rest_at)
		b->rest_at = rest_all(b) ? VB_NEVER : now + REST_RETRY;
}

static void keep_steering(struct broker *b, vb_time now)
{
	if (now < b->steer_at && b->steer_at != VB_NEVER)
		return;
	if (b->steer_at != VB_NEVER && vb_slots_steer(&b->slots))
		vb_log(LOG_WARN, "broker: packets cannot be steered");
	b->steer_at = b->slots.limited ? now + STEER_RETRY : VB_NEVER;
}

static int refuse_session(const struct broker *b, const struct session *s)
{
	const unsigned left = b->most - b->count;
	struct vb_ipc m = vb_mail_compose(IPC_REFUSE);

	if (left == 0)
		return refuse_program(s, EBUSY);
	if (!vb_user_may_have_last(s->user, VB_QUOTA_SESSIONS, left))
		vb_user_word_reserve(VB_QUOTA_SESSIONS, m.text, VB_IPC_TEXT);
	else
		vb_user_word_quota(s->user, VB_QUOTA_SESSIONS, m.text,
				   VB_IPC_TEXT);
	return refuse_with(s, &m, EBUSY);
}

/* Counts the session @s for its user, or refuses it. Only fd, user and trusted
 * of @s are set. */
static bool admit(struct broker *b, struct session *s)
{
	if (vb_user_may_have_last(s->user, VB_QUOTA_SESSIONS,
				  b->most - b->count) &&
	    vb_user_take(s->user, VB_QUOTA_SESSIONS, 1))
		return true;
	(void)!refuse_session(b, s);
	return false;
}

static void begin_session(struct broker *b, struct session *s)
{
	vb_process_of(s->fd, &s->who);
	s->who.order = ++b->accepted;
	b->sessions[b->count++] = *s;
}

static void accept_one(struct broker *b, vb_time now)
{
	struct session s = { .claim_by = VB_NEVER, .heard = now };
	uid_t uid;

	s.fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (s.fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			b->accept_after = now + ACCEPT_NAP;
		return;
	}
	s.trusted = vb_fdmail_trusts_peer(s.fd, &uid);
	s.user = vb_user_enter(&b->users, uid, s.trusted);
	if (s.user && admit(b, &s)) {
		begin_session(b, &s);
		return;
	}
	if (s.user)
		vb_user_leave(s.user);
	close(s.fd);
}

/* Returns the time at which @s needs attention if the program sends nothing. */
static vb_time patience_with(const struct session *s, vb_time now)
{
	if (s->claim_by != VB_NEVER)
		return now + REJOIN_TICK;
	if (s->cm)
		return vb_host_cm_error(s->cm) ? now : VB_NEVER;
	return s->slot ? VB_NEVER : s->heard + SILENCE;
}

static vb_time plan_wait(const struct broker *b, vb_time now)
{
	vb_time until = b->accept_after > now ? b->accept_after : VB_NEVER;

	until = VB_MIN(until, VB_MIN(b->rest_at, b->steer_at));
	until = VB_MIN(until, vb_host_cm_deadline(b->cm));
	if (b->idle_since != VB_NEVER)
		until = VB_MIN(until, b->idle_since + b->linger);
	for (unsigned i = 0; i < b->count; i++)
		until = VB_MIN(until, patience_with(&b->sessions[i], now));
	return until;
}

static short what_to_await(const struct session *s)
{
	return s->cm && vb_host_cm_is_waiting(s->cm) ? POLLIN | POLLOUT
						     : POLLIN;
}

static int wait_for_event(struct broker *b, struct pollfd *fds, vb_time now)
{
	vb_time until = plan_wait(b, now), ns = until > now ? until - now : 0;
	struct timespec ts = { (time_t)(ns / VB_SEC), (long)(ns % VB_SEC) };

	fds[0] = (struct pollfd){ b->accept_after > now ? -1 : b->listener,
				  POLLIN, 0 };
	fds[1] = (struct pollfd){ vb_host_cm_fd(b->cm), POLLIN, 0 };
	for (unsigned i = 0; i < b->count; i++)
		fds[i + FIRST_FD] =
			(struct pollfd){ b->sessions[i].fd,
					 what_to_await(&b->sessions[i]), 0 };
	return ppoll(fds, b->count + FIRST_FD, until == VB_NEVER ? NULL : &ts,
		     NULL);
}

static void broker_serve_all(struct broker *b, const struct pollfd *fds,
			     vb_time now)
{
	/* In descending order, because end_session() moves the last session,
	 * which was already served, into the gap. */
	for (unsigned i = b->count; i-- > 0;) {
		struct session *s = &b->sessions[i];
		int rc = 0;

		if (fds[i + FIRST_FD].revents & POLLOUT)
			vb_host_cm_flush(s->cm);
		if (s->cm)
			rc = vb_host_cm_error(s->cm);
		if (rc == 0 && fds[i + FIRST_FD].revents & POLLHUP)
			rc = serve_last(b, s, now);
		else if (rc == 0 && fds[i + FIRST_FD].revents & ~POLLOUT)
			rc = serve_session(b, s, now);
		else if (s->claim_by != VB_NEVER)
			rc = try_claim(b, s, now);
		else if (now >= patience_with(s, now))
			rc = -ETIMEDOUT;
		if (rc < 0)
			end_session(b, i, now);
	}
	rest_slots(b, now);
	keep_steering(b, now);
	attach_cm(b, now);
	if (fds[1].revents)
		vb_host_cm_poll(b->cm, now);
	vb_host_cm_tick(b->cm, now);
	if (fds[0].revents)
		accept_one(b, now);
}

/* Has the broker been idle for b->linger, with no slot taken? A program can
 * have its slot without a session after a fork, or when an earlier broker
 * granted the slot. */
static bool broker_is_over(struct broker *b, vb_time now)
{
	if (b->count > 0 || vb_host_cm_is_busy(b->cm)) {
		b->idle_since = VB_NEVER;
		return false;
	}
	if (b->idle_since == VB_NEVER)
		b->idle_since = now;
	if (now - b->idle_since < b->linger)
		return false;
	b->idle_since = now;
	return vb_slots_taken(&b->slots) == 0;
}

static void serve_until_idle(struct broker *b)
{
	static struct pollfd fds[MAX_SESSIONS + FIRST_FD];
	vb_time now = vb_clock_read();

	b->idle_since = now;
	do {
		if (wait_for_event(b, fds, now) < 0)
			memset(fds, 0, sizeof(fds));
		now = vb_clock_read();
		vb_apart_limit(true);
		broker_serve_all(b, fds, now);
		vb_apart_limit(false);
	} while (!broker_is_over(b, now));
}

int vb_broker_run(int listener, vb_time linger)
{
	struct broker *b = calloc(1, sizeof(*b));
	int rc;

	if (!b) {
		close(listener);
		return -ENOMEM;
	}
	b->most = VB_MIN(vb_fd_limit_raise(OTHER_FDS, FEWEST_SESSIONS),
			 MAX_SESSIONS + 0u);
	b->listener = listener;
	b->rest_at = b->steer_at = VB_NEVER;
	b->linger = VB_MAX(linger, LEAST_LINGER);
	vb_slots_init(&b->slots);
	rc = vb_host_cm_create(owns_qpn, b, vb_clock_read(), &b->cm);
	if (rc) {
		close(listener);
		free(b);
		return rc;
	}
	serve_until_idle(b);
	/* A program that connected meanwhile sees its connection reset and
	 * starts the next broker, which waits for the port until this one has
	 * ended. */
	close(b->listener);
	vb_host_cm_destroy(b->cm);
	for (unsigned i = 0; i < VB_SLOTS_MADE; i++)
		drop_holder(b, i);
	vb_slots_fini(&b->slots);
	free(b);
	return 0;
}
