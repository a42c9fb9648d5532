/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of the state that a child of fork resets. It uses no lock:
 * another thread can be changing it when the program forks, and the child must
 * be able to read what that thread has left. So lists only grow, at their head,
 * and an entry is valid after each single store.
 */
#include "base/fork.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define CHUNK 1024
/* descriptors of CHUNK * CHUNKS and above are not registered */
#define CHUNKS 1024

/* Identifies the file that a descriptor referred to; @ino 0: none. */
struct mark {
	_Atomic uint64_t dev, ino;
};

/* A mapping that the child unmaps. @at is NULL while the entry is free, and
 * points to the entry itself while a thread fills the entry in. */
struct range {
	_Atomic(void *) at;
	_Atomic size_t bytes;
	struct range *next;
};

static _Atomic(struct vb_forget *) forgets;
static _Atomic(struct mark *) marks[CHUNKS];
static _Atomic(struct range *) ranges;

static void close_marked(int fd, struct mark *m)
{
	uint64_t ino = atomic_exchange(&m->ino, 0);
	struct stat s;

	if (ino && fstat(fd, &s) == 0 && s.st_ino == ino &&
	    s.st_dev == atomic_load(&m->dev))
		close(fd);
}

static void close_all(void)
{
	for (int c = 0; c < CHUNKS; c++) {
		struct mark *chunk = atomic_load(&marks[c]);

		for (int i = 0; chunk && i < CHUNK; i++)
			close_marked(c * CHUNK + i, &chunk[i]);
	}
}

static void unmap_all(void)
{
	for (struct range *r = atomic_load(&ranges); r; r = r->next) {
		void *at = atomic_exchange(&r->at, NULL);

		if (at && at != r)
			munmap(at, atomic_load(&r->bytes));
	}
}

static void in_child(void)
{
	for (struct vb_forget *f = atomic_load(&forgets); f; f = f->next)
		f->begin_anew();
	close_all();
	unmap_all();
}

static void __attribute__((constructor)) watch_forks(void)
{
	if (pthread_atfork(NULL, NULL, in_child))
		vb_log(LOG_WARN, "no memory to watch for forks: a child of "
				 "fork must not use verbs");
}

void vb_fork_forget(struct vb_forget *f)
{
	f->next = atomic_load(&forgets);
	while (!atomic_compare_exchange_weak(&forgets, &f->next, f))
		;
}

static struct mark *mark_of(int fd)
{
	struct mark *chunk, *none = NULL;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return NULL;
	chunk = atomic_load(&marks[fd / CHUNK]);
	if (chunk)
		return &chunk[fd % CHUNK];
	chunk = calloc(CHUNK, sizeof(*chunk));
	if (!chunk)
		return NULL;
	if (!atomic_compare_exchange_strong(&marks[fd / CHUNK], &none, chunk)) {
		free(chunk);
		/* Another thread has stored its own chunk first, which this one
		 * uses. */
		chunk = none;
	}
	return &chunk[fd % CHUNK];
}

void vb_fork_closes(int fd)
{
	struct mark *m = mark_of(fd);
	struct stat s;

	if (!m || fstat(fd, &s) < 0)
		return;
	atomic_store(&m->ino, 0);
	atomic_store(&m->dev, s.st_dev);
	atomic_store(&m->ino, s.st_ino);
}

/* Fill in a free entry. Other threads do not read the entry before its length
 * is stored. */
static bool reuse(struct range *r, void *at, size_t bytes)
{
	void *none = NULL;

	if (atomic_load(&r->at) ||
	    !atomic_compare_exchange_strong(&r->at, &none, r))
		return false;
	atomic_store(&r->bytes, bytes);
	atomic_store(&r->at, at);
	return true;
}

void vb_fork_unmaps(void *at, size_t bytes)
{
	struct range *r = atomic_load(&ranges);

	while (r && !reuse(r, at, bytes))
		r = r->next;
	if (r)
		return;
	r = malloc(sizeof(*r));
	if (!r)
		return;
	atomic_init(&r->at, at);
	atomic_init(&r->bytes, bytes);
	r->next = atomic_load(&ranges);
	while (!atomic_compare_exchange_weak(&ranges, &r->next, r))
		;
}

void vb_fork_keeps(void *at)
{
	struct range *r = atomic_load(&ranges);

	while (r && atomic_load(&r->at) != at)
		r = r->next;
	if (r)
		atomic_store(&r->at, NULL);
}
