/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers the questions of programs about an IPoIB interface and its neighbours
 * (wire/ipoib.h). */
#ifndef IPOIB_LOOKUP_H
#define IPOIB_LOOKUP_H

#include <poll.h>

#include "ipoib/packet.h"
#include "wire/ipoib.h"

/* the most programs that may wait for a neighbour at a time; the connection of
 * a further one is closed, and the program asks again */
#define LOOKUP_WAITING 32
/* Programs that wait take at most half of the connections. The others remain
 * for questions that are answered at once. */
#define LOOKUP_CLIENTS (2 * LOOKUP_WAITING)
/* the most descriptors to poll */
#define LOOKUP_FDS (LOOKUP_CLIENTS + 1)

struct lookup {
	int listener;	  /* -1: not open */
	const char *name; /* the interface's name, which the caller keeps */
	struct lookup_client {
		int fd; /* -1: the entry is free */
		bool waits;
		/* the neighbour that the client has asked for; valid if
		 * @waits */
		struct vb_gid ip;
	} clients[LOOKUP_CLIENTS];
	/* Fill in the answer about the interface itself. */
	void (*own)(void *arg, struct vb_ipoib *answer);
	/* Find out the link-layer address of @ip. The owner passes it to
	 * lookup_told(). */
	void (*want)(void *arg, const struct vb_gid *ip);
	void *arg;
};

/* Listen for the interface @name. The caller has set @own, @want and @arg in
 * @l. 0 or -errno. */
int lookup_open(struct lookup *l, const char *name);
void lookup_close(struct lookup *l);
/* Fill in the descriptors for poll(). Returns their number. */
unsigned lookup_poll(const struct lookup *l, struct pollfd fds[LOOKUP_FDS]);
/* Handle the events that poll() has reported for the @count descriptors of
 * lookup_poll(). */
void lookup_serve(struct lookup *l, const struct pollfd *fds, unsigned count);
/* Tell the programs that wait for the neighbour @ip that it has the address
 * @hw; NULL: it does not answer. */
void lookup_told(struct lookup *l, const struct vb_gid *ip,
		 const struct vb_ipoib_hw *hw);

#endif
