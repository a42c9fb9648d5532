/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory through librpma, unmodified:
 *
 *	rpma_test ADDRESS PORT		serves one client
 *	rpma_test ADDRESS PORT client	writes, flushes, reads back, compares
 *
 * The client prints "ok NAME" or "not ok NAME" for each case. The server
 * compares its own memory with what the client says it has flushed.
 */
#include <librpma.h>

#include <infiniband/verbs.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH	(1u << 20)
#define WORD_AT (LENGTH - 64)

static int failed;
static uint8_t memory[2][LENGTH] __attribute__((aligned(4096)));

/* The objects that every step needs. */
struct end {
	struct rpma_peer *peer;
	struct rpma_mr_local *near, *back;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
};

static void must(int error, const char *what)
{
	if (!error)
		return;
	printf("not ok %s: %s\n", what, rpma_err_2str(error));
	exit(1);
}

static void say(int good, const char *name)
{
	failed |= !good;
	printf("%s %s\n", good ? "ok" : "not ok", name);
}

static uint8_t byte(unsigned i)
{
	return (uint8_t)(i * 167 + (i >> 8) * 13 + 5);
}

static void begin(struct end *e, const char *address,
		  enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context;
	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
		    RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
		    RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

	must(rpma_utils_get_ibv_context(address, type, &context), "a device");
	must(rpma_peer_new(context, &e->peer), "rpma_peer_new");
	must(rpma_mr_reg(e->peer, memory[0], LENGTH, usage, &e->near),
	     "rpma_mr_reg");
	must(rpma_mr_reg(e->peer, memory[1], LENGTH, usage, &e->back),
	     "rpma_mr_reg");
}

static void established(struct end *e)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	must(rpma_conn_next_event(e->conn, &event), "rpma_conn_next_event");
	if (event != RPMA_CONN_ESTABLISHED) {
		printf("not ok a connection: %s\n",
		       rpma_utils_conn_event_2str(event));
		exit(1);
	}
	must(rpma_conn_get_cq(e->conn, &e->cq), "rpma_conn_get_cq");
}

/* Wait for the next completion, which must be @op and a success. */
static int completes(struct end *e, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int got, error;

	while ((error = rpma_cq_get_wc(e->cq, 1, &wc, &got)) ==
	       RPMA_E_NO_COMPLETION)
		must(rpma_cq_wait(e->cq), "rpma_cq_wait");
	must(error, "rpma_cq_get_wc");
	if (wc.status == IBV_WC_SUCCESS && wc.opcode == opcode)
		return 1;
	printf("    | %s, opcode %d\n", ibv_wc_status_str(wc.status),
	       wc.opcode);
	return 0;
}

static void client(struct end *e, struct rpma_mr_remote *far)
{
	uint64_t word = 0x0123456789abcdef;
	int all = RPMA_F_COMPLETION_ALWAYS;

	for (unsigned i = 0; i < LENGTH; i++)
		memory[0][i] = byte(i);
	must(rpma_write(e->conn, far, 0, e->near, 0, WORD_AT, all, NULL),
	     "rpma_write");
	say(completes(e, IBV_WC_RDMA_WRITE), "write");
	must(rpma_atomic_write(e->conn, far, WORD_AT, (const char *)&word, all,
			       NULL),
	     "rpma_atomic_write");
	say(completes(e, IBV_WC_RDMA_WRITE), "atomic write");
	must(rpma_flush(e->conn, far, 0, LENGTH, RPMA_FLUSH_TYPE_VISIBILITY,
			all, NULL),
	     "rpma_flush");
	say(completes(e, IBV_WC_RDMA_READ), "flush");
	must(rpma_read(e->conn, e->back, 0, far, 0, LENGTH, all, NULL),
	     "rpma_read");
	say(completes(e, IBV_WC_RDMA_READ), "read");
	memcpy(memory[0] + WORD_AT, &word, sizeof(word));
	memset(memory[0] + WORD_AT + sizeof(word), 0,
	       LENGTH - WORD_AT - sizeof(word));
	say(!memcmp(memory[0], memory[1], LENGTH), "what was read is equal");
	/* Tell the server that it may compare its memory. */
	must(rpma_send(e->conn, e->near, 0, 8, all, NULL), "rpma_send");
	say(completes(e, IBV_WC_SEND), "send");
}

static void server_looks(struct end *e)
{
	uint64_t word;
	int good = completes(e, IBV_WC_RECV);

	for (unsigned i = 0; i < WORD_AT; i++)
		good &= memory[0][i] == byte(i);
	memcpy(&word, memory[0] + WORD_AT, sizeof(word));
	say(good && word == 0x0123456789abcdef, "the server has it");
}

static void serve(struct end *e, const char *address, const char *port)
{
	uint8_t descriptor[256];
	size_t size;
	struct rpma_conn_private_data data = { descriptor, 0 };
	struct rpma_ep *ep;
	struct rpma_conn_req *request;

	begin(e, address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	must(rpma_mr_get_descriptor_size(e->near, &size), "a descriptor");
	must(rpma_mr_get_descriptor(e->near, descriptor), "a descriptor");
	data.len = (uint8_t)size;
	must(rpma_ep_listen(e->peer, address, port, &ep), "rpma_ep_listen");
	printf("# listening\n");
	must(rpma_ep_next_conn_req(ep, NULL, &request), "a request");
	must(rpma_conn_req_recv(request, e->back, 0, 64, NULL), "a receive");
	must(rpma_conn_req_connect(&request, &data, &e->conn), "accepting");
	established(e);
	server_looks(e);
	must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
}

static void call(struct end *e, const char *address, const char *port)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *request;
	struct rpma_mr_remote *far;

	begin(e, address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	must(rpma_conn_req_new(e->peer, address, port, NULL, &request),
	     "rpma_conn_req_new");
	must(rpma_conn_req_connect(&request, NULL, &e->conn), "connecting");
	established(e);
	must(rpma_conn_get_private_data(e->conn, &data), "private data");
	must(rpma_mr_remote_from_descriptor(data.ptr, data.len, &far),
	     "the server's memory");
	client(e, far);
	must(rpma_conn_disconnect(e->conn), "rpma_conn_disconnect");
	must(rpma_mr_remote_delete(&far), "rpma_mr_remote_delete");
}

int main(int argc, char **argv)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct end e = { 0 };

	setlinebuf(stdout);
	if (argc < 3) {
		fprintf(stderr, "usage: rpma_test ADDRESS PORT [client]\n");
		return 2;
	}
	(argc > 3 ? call : serve)(&e, argv[1], argv[2]);
	must(rpma_conn_next_event(e.conn, &event), "the end");
	say(event == RPMA_CONN_CLOSED, "closed");
	must(rpma_conn_delete(&e.conn), "rpma_conn_delete");
	must(rpma_mr_dereg(&e.near), "rpma_mr_dereg");
	must(rpma_mr_dereg(&e.back), "rpma_mr_dereg");
	must(rpma_peer_delete(&e.peer), "rpma_peer_delete");
	return failed;
}
