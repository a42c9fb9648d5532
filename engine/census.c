/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the rosters of other programs. They can be writing at the same time,
 * and this file trusts nothing that they wrote: counts and names are bounded,
 * and a row counts only when two reads of it are equal and its version is even.
 */
#include "engine/census.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/counters.h"

#define HEAD  offsetof(struct vb_roster_sheet, rows)
#define TRIES 3

/* A memory that holds a roster, and a process that has it open. A child of the
 * program also has the memory open until it closes its parent's descriptors. */
struct source {
	ino_t ino;
	int holder;
	bool is_maker;
};

struct taking {
	struct vb_census *c;
	bool want_rows;
	struct source *sources;
	unsigned count;
	int rc;
};

static void *eng_grow(struct taking *t, void *array, unsigned count,
		      size_t size)
{
	void *more;

	/* Arrays grow at powers of two, so @count alone shows when to grow. */
	if (count & (count - 1))
		return array;
	more = reallocarray(array, count ? 2 * (size_t)count : 1, size);
	if (!more)
		t->rc = -ENOMEM;
	return more;
}

static struct vb_census_sum *sum_of(struct taking *t, const char *device)
{
	struct vb_census *c = t->c;
	struct vb_census_sum *more;

	for (unsigned i = 0; i < c->sum_count; i++)
		if (strcmp(c->sums[i].device, device) == 0)
			return &c->sums[i];
	more = eng_grow(t, c->sums, c->sum_count, sizeof(*more));
	if (!more)
		return NULL;
	c->sums = more;
	more += c->sum_count++;
	*more = (struct vb_census_sum){ 0 };
	snprintf(more->device, sizeof(more->device), "%s", device);
	return more;
}

/* Returns the id of the object in row @row of a program's roster: 16 bits of
 * the memory's inode number, then the row's number in 15 bits. 0: there is no
 * such row. */
static uint32_t id_of(const struct vb_counter_file_found *found, uint32_t row)
{
	if (row == 0 || row > VB_ROSTER_ROWS)
		return 0;
	return ((uint32_t)found->ino & 0xffff) << 15 | (row - 1);
}

static bool read_rows(const struct vb_counter_file_found *found, uint32_t first,
		      uint32_t count, struct vb_roster_row *to)
{
	size_t size = count * sizeof(*to);

	return pread(found->fd, to, size,
		     found->sheet + (off_t)HEAD +
			     (off_t)(first * sizeof(*to))) == (ssize_t)size;
}

/* Read row @at again until two reads agree; the caller has read @row once.
 * False: the row changes all the time, or is free. */
static bool is_whole(const struct vb_counter_file_found *found, uint32_t at,
		     struct vb_roster_row *row)
{
	struct vb_roster_row again;

	for (int i = 0; i < TRIES; i++) {
		if (!read_rows(found, at, 1, &again))
			return false;
		if (memcmp(row, &again, sizeof(again)) == 0 &&
		    atomic_load(&row->version) % 2 == 0)
			return true;
		*row = again;
	}
	return false;
}

static void add_row(struct taking *t, const struct vb_counter_file_found *found,
		    const struct vb_roster_row *r, uint32_t at)
{
	struct vb_census *c = t->c;
	struct vb_census_row *to = eng_grow(t, c->rows, c->count, sizeof(*to));

	if (!to)
		return;
	c->rows = to;
	to += c->count++;
	*to = (struct vb_census_row){
		.pid = found->holder,
		.id = id_of(found, at + 1),
		.kind = r->kind,
		.type = r->type,
		.state = r->state,
		.port = r->port,
		.number = r->number,
		.peer = r->peer,
		.sq_psn = r->sq_psn,
		.rq_psn = r->rq_psn,
		.pd = id_of(found, r->pd),
		.ctx = id_of(found, r->ctx),
		.send_cq = id_of(found, r->send_cq),
		.recv_cq = id_of(found, r->recv_cq),
		.srq = id_of(found, r->srq),
		.size = r->size,
		.iova = r->iova,
	};
	memcpy(to->device, found->device, sizeof(to->device));
}

#define ROWS_AT_ONCE 64
static void add_rows(struct taking *t,
		     const struct vb_counter_file_found *found, uint32_t end)
{
	struct vb_roster_row rows[ROWS_AT_ONCE];

	for (uint32_t at = 0; at < end && t->rc == 0; at += ROWS_AT_ONCE) {
		uint32_t n = VB_MIN(end - at, ROWS_AT_ONCE);

		if (!read_rows(found, at, n, rows))
			return;
		for (uint32_t i = 0; i < n && t->rc == 0; i++)
			if (is_whole(found, at + i, &rows[i]) &&
			    rows[i].kind > ROSTER_NONE &&
			    rows[i].kind < ROSTER_KINDS)
				add_row(t, found, &rows[i], at + i);
	}
}

static void add_source(struct taking *t,
		       const struct vb_counter_file_found *found)
{
	struct {
		uint32_t alive[ROSTER_KINDS], end;
	} head;
	struct vb_census_sum *sum;

	if (pread(found->fd, &head, sizeof(head), found->sheet) != sizeof(head))
		return;
	sum = sum_of(t, found->device);
	for (unsigned k = 1; sum && k < ROSTER_KINDS; k++)
		sum->alive[k] += head.alive[k];
	if (t->want_rows && t->rc == 0)
		add_rows(t, found, VB_MIN(head.end, VB_ROSTER_ROWS));
}
_Static_assert(offsetof(struct vb_roster_sheet, end) ==
		       ROSTER_KINDS * sizeof(uint32_t),
	       "as the head is read");

/* The process of this source made the memory: give its rows this process id in
 * place of a child's. */
static void know_better(struct taking *t, const struct source *s, int pid)
{
	for (unsigned i = 0; i < t->c->count; i++)
		if (t->c->rows[i].pid == s->holder &&
		    t->c->rows[i].id >> 15 == ((uint32_t)s->ino & 0xffff))
			t->c->rows[i].pid = pid;
}

static void eng_census_look(void *arg,
			    const struct vb_counter_file_found *found)
{
	struct taking *t = arg;
	bool is_maker = found->holder == found->maker;
	struct source *more;

	for (unsigned i = 0; i < t->count; i++) {
		struct source *s = &t->sources[i];

		if (s->ino != found->ino)
			continue;
		if (is_maker && !s->is_maker)
			know_better(t, s, found->holder);
		s->is_maker |= is_maker;
		return;
	}
	more = t->rc ? NULL : eng_grow(t, t->sources, t->count, sizeof(*more));
	if (!more)
		return;
	t->sources = more;
	more[t->count++] =
		(struct source){ found->ino, found->holder, is_maker };
	add_source(t, found);
}

static int compare(const void *a, const void *b)
{
	const struct vb_census_row *x = a, *y = b;
	bool by_number = x->kind == ROSTER_QP;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (by_number && x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static struct vb_census_row *eng_census_find(const struct vb_census *c,
					     enum vb_roster_kind kind,
					     uint32_t id, const char *device)
{
	const struct vb_census_row wanted = { .kind = (uint8_t)kind, .id = id };
	struct vb_census_row *row =
		id && c->count ? bsearch(&wanted, c->rows, c->count,
					 sizeof(*c->rows), compare)
			       : NULL;

	return row && strcmp(row->device, device) == 0 ? row : NULL;
}

static void use(const struct vb_census *c, const struct vb_census_row *user,
		enum vb_roster_kind kind, uint32_t id)
{
	struct vb_census_row *row = eng_census_find(c, kind, id, user->device);

	if (row)
		row->users++;
}

static void count_users(const struct vb_census *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct vb_census_row *row = &c->rows[i];

		use(c, row, ROSTER_PD, row->pd);
		use(c, row, ROSTER_CQ, row->send_cq);
		use(c, row, ROSTER_CQ, row->recv_cq);
	}
}

int vb_census_take(struct vb_census *c, bool rows)
{
	struct taking t = { .c = c, .want_rows = rows };
	int rc;

	*c = (struct vb_census){ 0 };
	rc = vb_counter_file_each(eng_census_look, &t);
	free(t.sources);
	if (rc == 0)
		rc = t.rc;
	if (rc) {
		vb_census_free(c);
		return rc;
	}
	if (c->count)
		qsort(c->rows, c->count, sizeof(*c->rows), compare);
	count_users(c);
	return 0;
}

void vb_census_free(struct vb_census *c)
{
	free(c->rows);
	free(c->sums);
	*c = (struct vb_census){ 0 };
}
