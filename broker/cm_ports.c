/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rand.h"

#define RANGE	     "/proc/sys/net/ipv4/ip_local_port_range"
#define RESERVED     "/proc/sys/net/ipv4/ip_local_reserved_ports"
#define RANGE_FIRST  32768
#define RANGE_LAST   60999
#define SETTING_SIZE 4096

/* Open for good: of the namespace that we are in now. */
void vb_cm_ports_init(struct vb_cm_ports *t)
{
	memset(t, 0, sizeof(*t));
	t->range_fd = open(RANGE, O_RDONLY | O_CLOEXEC);
	t->reserved_fd = open(RESERVED, O_RDONLY | O_CLOEXEC);
}

void vb_cm_ports_close(struct vb_cm_ports *t)
{
	if (t->range_fd >= 0)
		close(t->range_fd);
	if (t->reserved_fd >= 0)
		close(t->reserved_fd);
}

/* Empty where it cannot be read. */
static void read_setting(int fd, char text[SETTING_SIZE])
{
	ssize_t n = fd >= 0 ? pread(fd, text, SETTING_SIZE - 1, 0) : 0;

	text[VB_MAX(n, 0)] = '\0';
}

static void read_range(const struct vb_cm_ports *t, unsigned *first,
		       unsigned *last)
{
	char text[SETTING_SIZE];

	read_setting(t->range_fd, text);
	if (sscanf(text, "%u %u", first, last) == 2 && *first > 0 &&
	    *first <= *last && *last <= UINT16_MAX)
		return;
	*first = RANGE_FIRST;
	*last = RANGE_LAST;
}

/* As the kernel writes it: "8080,9148-9150". */
static bool is_reserved(const char *text, unsigned number)
{
	while (*text >= '0' && *text <= '9') {
		char *at;
		unsigned long first = strtoul(text, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		if (number >= first && number <= last)
			return true;
		text = at + (*at == ',');
	}
	return false;
}

static struct vb_cm_port **bucket(struct vb_cm_ports *t, uint16_t number)
{
	return &t->buckets[number % VB_PORT_BUCKETS];
}

static bool is_any4(const struct vb_gid *a)
{
	return vb_gid_is_ipv4(a) && vb_load_be(a->raw + 12, 4) == 0;
}

/* Does a port bound so take what comes for @address? */
static bool covers(const struct vb_cm_port *p, const struct vb_gid *address)
{
	if (vb_gid_is_zero(&p->address))
		return !(p->flags & IPC_CM_V6ONLY) || !vb_gid_is_ipv4(address);
	if (is_any4(&p->address))
		return vb_gid_is_ipv4(address);
	return vb_gid_equal(&p->address, address);
}

static bool meet(const struct vb_cm_port *a, const struct vb_cm_port *b)
{
	return a != b && a->space == b->space && a->number == b->number &&
	       (covers(a, &b->address) || covers(b, &a->address));
}

/* Whoever has the ticket was given the port, by fork. */
static bool joins(const struct vb_cm_port *p, const struct vb_cm_port *q)
{
	return p->flags & IPC_CM_JOIN && p->ticket && p->ticket == q->ticket;
}

static bool has_host(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	for (const struct vb_cm_port *q = *bucket(t, p->number); q; q = q->next)
		if (meet(p, q) && joins(p, q))
			return true;
	return false;
}

static bool is_taken(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	const struct vb_cm_port *q;

	for (q = *bucket(t, p->number); q; q = q->next)
		if (meet(p, q) && !joins(p, q) &&
		    !(p->flags & q->flags & IPC_CM_REUSE && !q->listening))
			return true;
	return false;
}

static int pick(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	char reserved[SETTING_SIZE];
	unsigned first, last, count, start;

	read_range(t, &first, &last);
	read_setting(t->reserved_fd, reserved);
	count = last - first + 1;
	start = vb_rand32() % count;
	for (unsigned i = 0; i < count; i++) {
		p->number = (uint16_t)(first + (start + i) % count);
		if (!is_taken(t, p) && !is_reserved(reserved, p->number))
			return 0;
	}
	p->number = 0;
	return -EADDRINUSE;
}

int vb_cm_ports_bind(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	int rc = 0;

	if (p->flags & IPC_CM_JOIN && !has_host(t, p))
		rc = -EACCES;
	else if (p->number == 0)
		rc = pick(t, p);
	else if (is_taken(t, p))
		rc = -EADDRINUSE;
	if (rc)
		return rc;
	p->next = *bucket(t, p->number);
	*bucket(t, p->number) = p;
	return 0;
}

void vb_cm_ports_free(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	struct vb_cm_port **q = bucket(t, p->number);

	while (*q && *q != p)
		q = &(*q)->next;
	if (*q)
		*q = p->next;
}

int vb_cm_ports_listen(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	const struct vb_cm_port *q;

	for (q = *bucket(t, p->number); q; q = q->next)
		if (meet(p, q) && q->listening && !joins(p, q) && !joins(q, p))
			return -EADDRINUSE;
	p->listening = true;
	return 0;
}

static unsigned rank(const struct vb_cm_port *p, const struct vb_gid *address)
{
	return (vb_gid_equal(&p->address, address) ? 2u : 0u) +
	       (p->flags & IPC_CM_JOIN ? 1u : 0u);
}

/* Behind all others of its bucket: the next is another's turn. */
static void put_last(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	struct vb_cm_port **at = bucket(t, p->number);

	vb_cm_ports_free(t, p);
	while (*at)
		at = &(*at)->next;
	p->next = NULL;
	*at = p;
}

struct vb_cm_port *vb_cm_ports_find(struct vb_cm_ports *t, uint16_t space,
				    uint16_t number,
				    const struct vb_gid *address, bool plain)
{
	struct vb_cm_port *p, *best = NULL;

	for (p = *bucket(t, number); p; p = p->next) {
		if (!p->listening || p->space != space || p->number != number ||
		    plain != !!(p->flags & IPC_CM_PLAIN) || !covers(p, address))
			continue;
		if (!best || rank(p, address) > rank(best, address))
			best = p;
	}
	if (best && best->flags & IPC_CM_JOIN)
		put_last(t, best);
	return best;
}
