/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fdopen() of sockets. The C library reads and writes a FILE by internal calls,
 * which a preload library cannot replace, so the FILE of a socket gets
 * functions of this file (fopencookie(3)).
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "front/rsockets/preload.h"

struct stream {
	struct stream *next;
	FILE *file;
	int fd;
};

/* list of open streams; a thread changes it only with the lock held */
static struct stream *_Atomic streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t read_stream(void *cookie, char *buf, size_t size)
{
	return read(((struct stream *)cookie)->fd, buf, size);
}

/* Writes to the socket of a FILE. Returns 0, and not -1, on an error, as
 * fopencookie(3) demands. */
static ssize_t write_stream(void *cookie, const char *buf, size_t size)
{
	ssize_t n = write(((struct stream *)cookie)->fd, buf, size);

	return n < 0 ? 0 : n;
}

static int close_stream(void *cookie)
{
	struct stream *s = cookie, *at;
	int fd = s->fd;

	pthread_mutex_lock(&lock);
	at = streams;
	if (at == s)
		streams = s->next;
	for (; at; at = at->next)
		if (at->next == s)
			at->next = s->next;
	pthread_mutex_unlock(&lock);
	free(s);
	return close(fd);
}

static void stdio_enter(struct stream *s)
{
	pthread_mutex_lock(&lock);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&lock);
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
	static const cookie_io_functions_t functions = {
		.read = read_stream,
		.write = write_stream,
		.close = close_stream,
	};
	struct stream *s;

	if (!rsp_is_ours(fd))
		return REAL(fdopen)(fd, mode);
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->fd = fd;
	s->file = fopencookie(s, mode, functions);
	if (!s->file) {
		free(s);
		return NULL;
	}
	stdio_enter(s);
	return s->file;
}

void rsp_stdio_stop(void)
{
	pthread_mutex_lock(&lock);
}

void rsp_stdio_go_on(void)
{
	pthread_mutex_unlock(&lock);
}

/* Returns the descriptor of @file if the fdopen() of this library made it; else
 * -1. */
static int stdio_number_of(const FILE *file)
{
	int fd = -1;

	if (!streams)
		return -1;
	pthread_mutex_lock(&lock);
	for (const struct stream *s = streams; s; s = s->next)
		if (s->file == file)
			fd = s->fd;
	pthread_mutex_unlock(&lock);
	return fd;
}

EXPORT int fileno(FILE *file)
{
	int fd = stdio_number_of(file);

	return fd >= 0 ? fd : REAL(fileno)(file);
}

EXPORT int fileno_unlocked(FILE *file)
{
	int fd = stdio_number_of(file);

	return fd >= 0 ? fd : REAL(fileno_unlocked)(file);
}
