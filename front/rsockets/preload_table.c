/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the program's descriptors: see preload.h. */
#include "front/rsockets/preload.h"

__thread unsigned rsp_inside;

static struct {
	_Atomic uint8_t kind;
	_Atomic bool cloexec;
	_Atomic uint16_t target;
	_Atomic uint16_t holds; /* of a target: the count of rsp_hold() */
} table[RSP_DESCRIPTORS];

enum rsp_kind rsp_kind(int fd)
{
	if (fd < 0 || fd >= RSP_DESCRIPTORS)
		return RSP_OTHER;
	return (enum rsp_kind)atomic_load_explicit(&table[fd].kind,
						   memory_order_relaxed);
}

int rsp_target(int fd)
{
	return atomic_load_explicit(&table[fd].target, memory_order_relaxed);
}

bool rsp_cloexec(int fd)
{
	return atomic_load(&table[fd].cloexec);
}

void rsp_enter(int fd, enum rsp_kind kind, int target)
{
	atomic_store(&table[fd].target, (uint16_t)target);
	atomic_store(&table[fd].cloexec, false);
	atomic_store(&table[fd].kind, (uint8_t)kind);
}

void rsp_forget(int fd)
{
	atomic_store(&table[fd].kind, RSP_OTHER);
}

void rsp_hold(int target)
{
	atomic_fetch_add(&table[target].holds, 1);
}

bool rsp_let_go(int target)
{
	uint16_t before = atomic_load(&table[target].holds);

	/* A count of 0 means that rsp_abandon() was called, and the socket is
	 * closed already. */
	while (before && !atomic_compare_exchange_weak(&table[target].holds,
						       &before, before - 1))
		;
	return before == 1;
}

int rsp_release(int target)
{
	return rsp_let_go(target) ? INSIDE(rclose(target)) : 0;
}

bool rsp_shared(int target)
{
	return atomic_load(&table[target].holds) > 1;
}

bool rsp_is_held(int target)
{
	return atomic_load(&table[target].holds) > 0;
}

void rsp_move(int target, int to)
{
	uint16_t holds = (uint16_t)rsp_abandon(target);

	if (to >= RSP_DESCRIPTORS) {
		(void)INSIDE(rclose(to));
		return;
	}
	atomic_store(&table[to].holds, holds);
	for (int i = 0; i < RSP_DESCRIPTORS; i++)
		if (rsp_kind(i) == RSP_SOCKET && rsp_target(i) == target)
			atomic_store(&table[i].target, (uint16_t)to);
}

int rsp_abandon(int target)
{
	return atomic_exchange(&table[target].holds, 0);
}

void rsp_set_cloexec(int fd, bool wants)
{
	atomic_store(&table[fd].cloexec, wants);
}

void rsp_inherit_all(void)
{
	for (int i = 0; i < RSP_DESCRIPTORS; i++) {
		atomic_store_explicit(&table[i].holds, 0, memory_order_relaxed);
		if (rsp_kind(i) == RSP_SOCKET)
			atomic_store(&table[i].kind, RSP_INHERITED);
		else if (rsp_kind(i) == RSP_SET)
			atomic_store(&table[i].kind, RSP_OTHER);
	}
}

enum rsp_kind rsp_kind_now(int fd)
{
	return rsp_inside ? RSP_OTHER : rsp_kind(fd);
}

bool rsp_is_socket(int fd, bool reads)
{
	enum rsp_kind kind = rsp_kind_now(fd);

	if (kind == RSP_INHERITED) {
		rsp_inherit(fd, reads);
		kind = rsp_kind_now(fd);
	}
	return kind == RSP_SOCKET;
}

bool rsp_is_ours(int fd)
{
	return rsp_is_socket(fd, true);
}
