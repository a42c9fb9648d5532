/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table from descriptors to sockets, and the list of sockets that are
 * closing. table_lock guards both. A socket that is closing is no longer in the
 * table but still owns its number, until rs_departed().
 */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fork.h"

enum { CHUNK = 1024, CHUNKS = 1024 };

static struct rs_sock **chunks[CHUNKS];
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
/* List of sockets that are closing; guarded by table_lock. */
static struct rs_sock *departing;

/* Runs in a child of fork(): empties the table, because the adapter and the
 * sockets belong to the parent. */
static void forget_all(void)
{
	pthread_rwlock_init(&table_lock, NULL);
	for (unsigned c = 0; c < CHUNKS; c++)
		if (chunks[c])
			memset(chunks[c], 0, CHUNK * sizeof(*chunks[c]));
	departing = NULL;
	rs_forget_sets();
	rs_keeper_forget();
}
VB_FORGET_AT_FORK(forget_all)

/* Returns the table entry of @fd; @make: allocate its chunk if it is missing.
 * The caller holds table_lock. NULL: there is none. */
static struct rs_sock **table_place(int fd, bool make)
{
	unsigned c = (unsigned)fd / CHUNK;

	if (fd < 0 || c >= CHUNKS)
		return NULL;
	if (!chunks[c] && make)
		chunks[c] = calloc(CHUNK, sizeof(*chunks[c]));
	return chunks[c] ? &chunks[c][(unsigned)fd % CHUNK] : NULL;
}

struct rs_sock *rs_find(int fd)
{
	struct rs_sock **at, *rs = NULL;

	pthread_rwlock_rdlock(&table_lock);
	at = table_place(fd, false);
	if (at && *at) {
		rs = *at;
		atomic_fetch_add(&rs->refs, 1);
	}
	pthread_rwlock_unlock(&table_lock);
	if (!rs)
		errno = EBADF;
	return rs;
}

int rs_enter(struct rs_sock *rs)
{
	struct rs_sock **at;
	int rc = -EMFILE;

	pthread_rwlock_wrlock(&table_lock);
	at = table_place(rs->fd, true);
	if (at) {
		*at = rs;
		rc = 0;
	}
	pthread_rwlock_unlock(&table_lock);
	return rc;
}

/* Removes the socket from the table. False: it was not there. The caller holds
 * table_lock. */
static bool table_take_out(struct rs_sock *rs)
{
	struct rs_sock **at = table_place(rs->fd, false);
	bool was_in = at && *at == rs;

	if (was_in)
		*at = NULL;
	return was_in;
}

/* Removes the socket from the table. True: the caller now owns the table's
 * reference. False: another thread was first, and owns it. */
static bool leave_table(struct rs_sock *rs)
{
	bool was_in;

	pthread_rwlock_wrlock(&table_lock);
	was_in = table_take_out(rs);
	pthread_rwlock_unlock(&table_lock);
	return was_in;
}

int rs_move(struct rs_sock *rs, int number)
{
	int to = number < 0 ? fcntl(rs->fd, F_DUPFD_CLOEXEC, 0) : number;
	int from = rs->fd, rc;

	if (to < 0)
		return -errno;
	(void)leave_table(rs);
	rs->fd = to;
	rc = rs_enter(rs);
	if (rc == 0) {
		rs_ring(rs);
		return to;
	}
	rs->fd = from;
	(void)!rs_enter(rs);
	if (number < 0)
		close(to);
	return rc;
}

bool rs_depart(struct rs_sock *rs)
{
	bool was_in;

	pthread_rwlock_wrlock(&table_lock);
	was_in = table_take_out(rs);
	if (was_in) {
		rs->departing = departing ? departing : rs;
		departing = rs;
	}
	pthread_rwlock_unlock(&table_lock);
	return was_in;
}

/* Returns the socket behind @rs in the list of those that are closing. NULL:
 * @rs is the last. The caller holds table_lock. */
static struct rs_sock *next_departing(const struct rs_sock *rs)
{
	return rs->departing == rs ? NULL : rs->departing;
}

static struct rs_sock *find_departing(int fd)
{
	struct rs_sock *rs = departing;

	while (rs && rs->fd != fd)
		rs = next_departing(rs);
	return rs;
}

static void forget_departing(struct rs_sock *rs)
{
	struct rs_sock *before = departing;

	if (before == rs) {
		departing = next_departing(rs);
		return;
	}
	while (before->departing != rs)
		before = before->departing;
	before->departing = rs->departing == rs ? before : rs->departing;
}

int rs_departed(struct rs_sock *rs)
{
	int fd;

	pthread_rwlock_wrlock(&table_lock);
	if (rs->departing)
		forget_departing(rs);
	fd = rs->fd;
	pthread_rwlock_unlock(&table_lock);
	return fd;
}

/* Takes a reference to the socket. False: another thread has dropped the last
 * one, and rs_unmake() runs. */
static bool hold(struct rs_sock *rs)
{
	unsigned refs = rs->refs;

	while (refs &&
	       !atomic_compare_exchange_weak(&rs->refs, &refs, refs + 1))
		;
	return refs > 0;
}

/* Wakes the threads that sleep in poll() on the old number, because they must
 * look up the new one. */
static void table_wake(struct rs_sock *rs)
{
	rs_lock(rs);
	rs_ring(rs);
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
}

int rs_move_departing(int fd)
{
	struct rs_sock *rs;
	int to = -1;

	pthread_rwlock_wrlock(&table_lock);
	rs = find_departing(fd);
	errno = EBADF;
	if (rs)
		to = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (to >= 0)
		rs->fd = to;
	if (to < 0 || !hold(rs))
		rs = NULL;
	pthread_rwlock_unlock(&table_lock);
	if (rs)
		table_wake(rs);
	return to;
}

bool rs_is_taken(int fd)
{
	struct rs_sock **at;
	bool taken;

	pthread_rwlock_rdlock(&table_lock);
	at = table_place(fd, false);
	taken = (at && *at) || find_departing(fd);
	pthread_rwlock_unlock(&table_lock);
	return taken;
}

void rs_lock(struct rs_sock *rs)
{
	if (pthread_mutex_trylock(&rs->lock) == 0)
		return;
	atomic_fetch_add(&rs->callers, 1);
	pthread_mutex_lock(&rs->lock);
	atomic_fetch_sub(&rs->callers, 1);
}

struct rs_sock *rs_take(int fd)
{
	struct rs_sock *rs = rs_find(fd);

	if (rs)
		rs_lock(rs);
	return rs;
}

ssize_t rs_done(struct rs_sock *rs, ssize_t rc)
{
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return rc < 0 ? rs_fail((int)-rc) : rc;
}

void rs_put(struct rs_sock *rs)
{
	if (atomic_fetch_sub(&rs->refs, 1) == 1)
		rs_unmake(rs);
}

void rs_for_each(void (*visit)(struct rs_sock *rs))
{
	struct rs_sock *rs;

	for (unsigned c = 0; c < CHUNKS; c++) {
		for (unsigned i = 0; chunks[c] && i < CHUNK; i++) {
			rs = chunks[c][i] ? rs_find((int)(c * CHUNK + i))
					  : NULL;
			if (!rs)
				continue;
			visit(rs);
			rs_put(rs);
		}
	}
}
