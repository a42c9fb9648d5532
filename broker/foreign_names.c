/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/foreign_names.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/ipc.h"

#ifndef UDIAG_SHOW_UID /* Linux headers before 5.3 lack it */
#define UDIAG_SHOW_UID 0x40
#endif
/* UNIX_DIAG_UID of an enum that older headers have without it. */
#define DIAG_UID 7

/* The state of connected sockets (TCP_ESTABLISHED of the kernel). */
#define ESTABLISHED 1

#define LOOK_PAUSE   VB_SEC
#define ANSWER_BYTES 32768
#define PATIENCE_US  100000

static int ask_unix_diag(void)
{
	const struct timeval patience = { 0, PATIENCE_US };
	const struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} m = {
		.head = { .nlmsg_len = sizeof(m),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.req = { .sdiag_family = AF_UNIX,
			 .udiag_states = UINT32_MAX,
			 .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID,
			 .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)) == 0 &&
	    send(fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m))
		return fd;
	close(fd);
	return -1;
}

/* Is this the abstract name of a slot that the broker gives away? */
static bool is_slots_name(const struct rtattr *name)
{
	struct sockaddr_un a;
	char text[32];
	size_t len = RTA_PAYLOAD(name);
	unsigned slot;

	if (len < 2 || len >= sizeof(text))
		return false;
	memcpy(text, RTA_DATA(name), len);
	text[len] = '\0';
	if (text[0] || sscanf(text + 1, "verbena/slot/%3u", &slot) != 1 ||
	    slot == 0 || slot > VB_MAX_PROGRAMS)
		return false;
	return vb_ipc_slot_address(&a, slot) ==
		       offsetof(struct sockaddr_un, sun_path) + len &&
	       memcmp(a.sun_path, text, len) == 0;
}

/* Counts a socket that the kernel tells of. A connection that was accepted at a
 * name has the name as well, and is not counted. */
static void note_name(struct vb_foreign_names *f, struct nlmsghdr *h)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	int left = (int)NLMSG_PAYLOAD(h, sizeof(*m));
	const struct rtattr *name = NULL;
	uint32_t uid = (uint32_t)geteuid();

	if (left < 0 || m->udiag_state == ESTABLISHED)
		return;
	for (const struct rtattr *r = (const void *)(m + 1); RTA_OK(r, left);
	     r = RTA_NEXT(r, left)) {
		if (r->rta_type == UNIX_DIAG_NAME)
			name = r;
		if (r->rta_type == DIAG_UID && RTA_PAYLOAD(r) == sizeof(uid))
			memcpy(&uid, RTA_DATA(r), sizeof(uid));
	}
	if (!name || uid == (uint32_t)geteuid() || !is_slots_name(name))
		return;
	f->count++;
	f->uid = uid;
}

/* Notes one datagram of the kernel's answer. False: it is the last one. */
static bool note_answer(struct vb_foreign_names *f, struct nlmsghdr *h, int n)
{
	for (; NLMSG_OK(h, (unsigned)n); h = NLMSG_NEXT(h, n)) {
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return false;
		note_name(f, h);
	}
	return true;
}

static void look_now(struct vb_foreign_names *f)
{
	static _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	int fd = ask_unix_diag(), n;

	f->count = 0;
	if (fd < 0)
		return;
	do
		n = (int)recv(fd, answer, sizeof(answer), 0);
	while (n > 0 && note_answer(f, (struct nlmsghdr *)answer, n));
	close(fd);
}

void vb_foreign_names_look(struct vb_foreign_names *f, vb_time now)
{
	struct vb_foreign_names before = *f;
	char text[VB_IPC_TEXT] = "";

	if (f->looked_at && now - f->looked_at < LOOK_PAUSE)
		return;
	f->looked_at = now;
	look_now(f);
	if (f->count == before.count && f->uid == before.uid)
		return;
	vb_foreign_names_word(f, text, sizeof(text));
	vb_log(LOG_WARN, "broker: slots without the broker: %s",
	       f->count ? text : "none any more");
}

void vb_foreign_names_word(const struct vb_foreign_names *f, char *text,
			   size_t size)
{
	size_t at = strnlen(text, size);

	if (f->count)
		snprintf(text + at, size - at,
			 "%suser %u bound the name%s of %u slot%s",
			 at ? ", " : "", (unsigned)f->uid,
			 f->count == 1 ? "" : "s", f->count,
			 f->count == 1 ? "" : "s");
}
