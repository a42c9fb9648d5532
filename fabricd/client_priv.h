/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's connection: what the files fabricd/client*.c share. */
#ifndef FABRICD_CLIENT_PRIV_H
#define FABRICD_CLIENT_PRIV_H

#include "fabricd/capture.h"
#include "fabricd/fabricd_priv.h"

/* A message that waits until the program reads its socket. */
struct queued_message {
	struct queued_message *next;
	int memory;	   /* a memfd that the message carries; -1: none */
	size_t memory_len; /* the memfd's length in bytes */
	size_t len;
	uint8_t bytes[];
};

struct client {
	struct fd_watch watch;
	struct vb_chain link;
	struct vb_fabricd *f;
	/* the agents of the client's port; NULL: the client is not attached to
	 * a port */
	struct vb_agents *agents;
	/* the host whose adapter the client uses after the command "join";
	 * NULL: the client has not joined */
	struct fd_host *host;
	bool manager; /* the client is the fabric's own subnet manager */
	/* the capture that the client reads; NULL: none */
	struct capture *capture;
	/* the client's queue pairs and rings; NULL: it uses no verbs */
	struct verbs_program *verbs;
	struct queued_message *first, **last;
	/* bytes of all messages in the queue, and of the memfds that they
	 * carry */
	size_t waiting;
	size_t unread; /* bytes of the memfds that the socket's queue holds */
	/* what the client is told about its port; NULL: nothing */
	struct verbs_watch *port_watch;
	/* of a client with @agents: their node and its port */
	struct vb_fab_node *node;
	uint8_t port;
	bool gone;
};

/* Functions of fabricd/client.c. */
void vb_queued_message_free(struct queued_message *l);
/* Send the message @l, or queue it, or drop it. This function or the queue
 * frees @l. */
void vb_client_post(struct client *c, struct queued_message *l);

/* Functions of fabricd/client_mads.c. */
/* The program sends the MAD @m, whose m->head.length bytes are at @data. */
void vb_client_send(struct client *c, const struct vb_umad_mad *m,
		    const uint8_t *data, vb_time now);
/* The program sends the MAD @m, whose bytes are in the memfd @memory, which the
 * caller still owns. */
void vb_client_send_long(struct client *c, const struct vb_umad_mad *m,
			 int memory, vb_time now);

#endif
