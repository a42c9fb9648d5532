/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of librspreload.so share: which of the program's descriptors
 * are ours. A descriptor is a socket's own number, its target, or another
 * that was made by dup(); the socket is closed with the last of them.
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

/* A thread that is in one of ours calls the C library's. */
extern __thread unsigned rsp_inside;

/* The C library's function of the same name, found once. */
#define REAL(name)                                                             \
	({                                                                     \
		static _Atomic(void *) found;                                  \
		if (!atomic_load(&found))                                      \
			atomic_store(&found, dlsym(RTLD_NEXT, #name));         \
		(__typeof__(&name))atomic_load(&found);                        \
	})

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
	RSP_OTHER,
	RSP_SOCKET,
	RSP_SET,       /* epoll's */
	RSP_INHERITED, /* a parent's socket: fork.c knows more */
};

/* preload_table.c */
enum rsp_kind rsp_kind(int fd);
int rsp_target(int fd);
bool rsp_cloexec(int fd); /* the program wants it so */
void rsp_enter(int fd, enum rsp_kind kind, int target);
void rsp_forget(int fd);
/* A descriptor, or somebody else, needs the socket; and does no more. */
void rsp_hold(int target);
int rsp_release(int target);
bool rsp_let_go(int target); /* the last: whoever calls closes it */
bool rsp_shared(int target);
bool rsp_is_held(int target);
/* The socket has another number, by which its descriptors know it. */
void rsp_move(int target, int to);
int rsp_abandon(int target); /* by all; how many they were */
void rsp_set_cloexec(int fd, bool wants);
/* In a child of fork: sockets are RSP_INHERITED, sets are nobody's. */
void rsp_inherit_all(void);
/* What it is to this thread. */
enum rsp_kind rsp_kind_now(int fd);
/* Whether it is a socket now; one of the parent's becomes what it can be.
 * @reads: as for rsp_inherit(). */
bool rsp_is_socket(int fd, bool reads);
bool rsp_is_ours(int fd);

/* preload.c: a new descriptor is a socket or a set; -1: errno. */
int rsp_now_ours(int fd, enum rsp_kind kind);

/* preload_fork.c */
void rsp_watch_forks(void);
/* The program uses what its parent made: whatever it is then, it is not
 * RSP_INHERITED any more. @reads: it does not only write. */
void rsp_inherit(int fd, bool reads);
void rsp_disown(int fd);
/* Of a socket that stands for a parent's. */
bool rsp_relayed_name(int fd, bool peer, struct sockaddr *addr,
		      socklen_t *length);

/* preload_stdio.c: around fork(), and in the child. */
void rsp_stdio_stop(void);
void rsp_stdio_go_on(void);

#endif
