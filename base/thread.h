/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts threads of the library. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create(), but the new thread blocks all signals, because the
 * program's own threads must handle the program's signals. */
static inline int vb_thread_start(pthread_t *thread, const pthread_attr_t *attr,
				  void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

#endif
