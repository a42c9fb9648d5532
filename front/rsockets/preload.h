/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of librspreload.so: the table of the program's
 * descriptors that are rsockets. The target of a descriptor is the number by
 * which rsockets identifies the socket. The target is the descriptor itself, or
 * another number if dup() made the descriptor. The socket is closed with the
 * last descriptor that has it as its target.
 */
#ifndef FRONT_RSOCKETS_PRELOAD_H
#define FRONT_RSOCKETS_PRELOAD_H

#include <dlfcn.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define EXPORT __attribute__((visibility("default")))

/* Not 0 while the thread is inside this library or a library that this one
 * calls: its calls of read(), poll() and so on then go to the C library. */
extern __thread unsigned rsp_inside;

/* Finds the C library's function of this name, once. */
#define REAL(name)                                                             \
	({                                                                     \
		static _Atomic(void *) found;                                  \
		if (!atomic_load(&found))                                      \
			atomic_store(&found, dlsym(RTLD_NEXT, #name));         \
		(__typeof__(&name))atomic_load(&found);                        \
	})

/* Evaluates @call while the thread is marked as inside the library. */
#define INSIDE(call)                                                           \
	({                                                                     \
		__typeof__(call) result_;                                      \
		rsp_inside++;                                                  \
		result_ = (call);                                              \
		rsp_inside--;                                                  \
		result_;                                                       \
	})

enum { RSP_DESCRIPTORS = 1 << 16 };
enum rsp_kind {
	RSP_OTHER,  /* the descriptor is no rsocket */
	RSP_SOCKET, /* the descriptor is an rsocket */
	RSP_SET,    /* the descriptor is a set of repoll_create() */
	/* a socket of the parent, in a child of fork() that has not used it yet
	 * (preload_fork.c) */
	RSP_INHERITED,
};

/* Functions of preload_table.c. They use no locks; each entry is a few atomic
 * fields. */

enum rsp_kind rsp_kind(int fd);
int rsp_target(int fd);
/* Returns the program's FD_CLOEXEC; the kernel's own flag may differ. */
bool rsp_cloexec(int fd);
void rsp_set_cloexec(int fd, bool wants);
void rsp_enter(int fd, enum rsp_kind kind, int target);
void rsp_forget(int fd);
/* Counts one more descriptor or relay that needs the socket. */
void rsp_hold(int target);
/* Counts one descriptor or relay less that needs the socket; closes the socket
 * if that was the last. Returns the result of close(). */
int rsp_release(int target);
/* Counts one descriptor or relay less that needs the socket, which stays open.
 * True: that was the last, and the caller closes the socket. */
bool rsp_let_go(int target);
/* True if more than one descriptor or relay needs the socket; at least one
 * does. */
bool rsp_shared(int target);
bool rsp_is_held(int target);
/* The socket's number changed from @target to @to: its descriptors get the new
 * target. */
void rsp_move(int target, int to);
/* Sets the count of rsp_hold() to 0 and returns its old value. */
int rsp_abandon(int target);
/* Runs in a child of fork(): sockets become RSP_INHERITED and sets
 * RSP_OTHER. */
void rsp_inherit_all(void);
/* Returns what rsp_kind() returns, but RSP_OTHER while the thread is inside
 * this library. */
enum rsp_kind rsp_kind_now(int fd);
/* True if the call of the program on @fd goes to rsockets. Makes an inherited
 * socket usable first. @reads: as for rsp_inherit(). */
bool rsp_is_socket(int fd, bool reads);
/* Does what rsp_is_socket() does for a call that may read (@reads true). */
bool rsp_is_ours(int fd);

/* A function of preload.c: adds a new socket or set to the table. Returns @fd,
 * or -1 and errno. */
int rsp_now_ours(int fd, enum rsp_kind kind);

/* Functions of preload_fork.c. */

/* Installs the handlers of pthread_atfork(). */
void rsp_watch_forks(void);
/* Makes an inherited socket usable in the child: a listener becomes a listener
 * of its own, a connection a UNIX socket to the parent, and anything else a
 * socket that has ended. @reads: the program may read, not only write. */
void rsp_inherit(int fd, bool reads);
/* The child closes an inherited socket that it has not used. */
void rsp_disown(int fd);
/* Returns the TCP address for a UNIX socket that leads to the parent: with
 * @peer that of the connection's peer, else its own. @addr may be NULL. False:
 * @fd is no such socket. */
bool rsp_relayed_name(int fd, bool peer, struct sockaddr *addr,
		      socklen_t *length);

/* Functions of preload_stdio.c: take and release its lock around fork(), so
 * that the child gets a consistent list. */
void rsp_stdio_stop(void);
void rsp_stdio_go_on(void);

#endif
