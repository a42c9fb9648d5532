/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases: the causes that end a stream, and the results of connecting. */
#include "iwarp_test.h"

/* Does the connection go near (between two programs of one host)? A request
 * over TCP is complete when its bytes were sent, before its key is checked; a
 * near request is complete when it is carried out. */
bool goes_near(void)
{
	const char *near = getenv("VERBENA_NEAR");

	return !near || strcmp(near, "off");
}

static enum ibv_wc_status told(enum ibv_wc_status status)
{
	return goes_near() ? status : IBV_WC_SUCCESS;
}

static void faulty(struct ibv_send_wr wr, enum ibv_wc_status status)
{
	connected();
	post_recv(&a, 4096);
	post(&a, wr, 1);
	expect_status(&a, 1, status, status);
	expect_end();
	expect_status(&a, 99, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	post(&a, wr, 2);
	expect_status(&a, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
}

void write_with_a_wrong_key(void)
{
	faulty(rdma(IBV_WR_RDMA_WRITE, 0x12345600),
	       told(IBV_WC_REM_ACCESS_ERR));
}

void read_with_a_wrong_key(void)
{
	faulty(rdma(IBV_WR_RDMA_READ, 0x12345600), IBV_WC_REM_ACCESS_ERR);
}

/* MPA revision 1 does not negotiate the number of READs: this side permits
 * none. */
void read_where_none_is_taken(void)
{
	struct rdma_conn_param p = params(NULL);

	setenv("VERBENA_IWARP", "revision-1", 1);
	begin_connect(&a, &address, &p);
	unsetenv("VERBENA_IWARP");
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	b.id = event.id;
	equip(&b);
	p.responder_resources = 0;
	must(!rdma_accept(b.id, &p), "rdma_accept");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	post(&a, rdma(IBV_WR_RDMA_READ, b.mr->rkey), 1);
	expect_status(&a, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	expect_end();
}

void send_without_a_receive(void)
{
	faulty((struct ibv_send_wr){ .opcode = IBV_WR_SEND },
	       told(IBV_WC_RNR_RETRY_EXC_ERR));
}

/* The peer must get the error at once, and not after a timeout. */
void write_from_a_wrong_key(void)
{
	double from, lasted;

	connected();
	post_recv(&b, 4096);
	from = seconds();
	post_from(&a, rdma(IBV_WR_RDMA_WRITE, b.mr->rkey), 1, 0x12345600);
	expect_status(&a, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
	expect_end();
	expect_status(&b, 99, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
	lasted = seconds() - from;
	if (lasted > 1)
		wrong("the end came after %.1f s", lasted);
}

void send_too_long(void)
{
	connected();
	post_recv(&b, 100);
	post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	expect_status(&a, 1, told(IBV_WC_REM_INV_REQ_ERR), IBV_WC_SUCCESS);
	expect_status(&b, 99, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
	expect_end();
}

/* Bytes that were sent before a disconnect still arrive: it is not a reset. */
void disconnect_after_sends(void)
{
	connected();
	for (int i = 0; i < 20; i++)
		post_recv(&b, 4096);
	for (int i = 0; i < 20; i++)
		post(&a, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 1);
	for (int i = 0; i < 20; i++)
		expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	must(!rdma_disconnect(a.id), "rdma_disconnect");
	for (int i = 0; i < 20; i++)
		expect_status(&b, 99, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_end();
}

void destroyed_without_a_word(void)
{
	connected();
	drop(&a);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	expect_error_state(&b, "who was left");
}

void private_data_and_depths(void)
{
	struct rdma_conn_param p = params("how do you do?");

	begin_connect(&a, &address, &p);
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	if (event.bytes != 14 || memcmp(event.data, "how do you do?", 14))
		wrong("the request's private data (%u bytes)", event.bytes);
	if (event.responder_resources != 3 || event.initiator_depth != 5)
		wrong("the request's depths: %u, %u", event.responder_resources,
		      event.initiator_depth);
	b.id = event.id;
	equip(&b);
	p = params("very well");
	p.responder_resources = 2;
	must(!rdma_accept(b.id, &p), "rdma_accept");
	for (int i = 0; i < 2; i++) {
		if (!expect_event(RDMA_CM_EVENT_ESTABLISHED) ||
		    event.id != a.id)
			continue;
		if (event.bytes != 9 || memcmp(event.data, "very well", 9))
			wrong("the reply's private data");
		if (event.initiator_depth != 2)
			wrong("the reply's depth: %u", event.initiator_depth);
	}
}

void rejected(void)
{
	struct rdma_conn_param p = params("please");
	struct rdma_cm_id *id;

	begin_connect(&a, &address, &p);
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	id = event.id;
	must(!rdma_reject(id, "no", 2), "rdma_reject");
	expect_event(RDMA_CM_EVENT_REJECTED);
	if (event.bytes != 2 || memcmp(event.data, "no", 2) ||
	    event.status != -ECONNRESET)
		wrong("status %d, %u bytes of private data", event.status,
		      event.bytes);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* Two connections between the same addresses begin at the same time. */
void connects_that_cross(void)
{
	struct rdma_conn_param p = params(NULL);
	struct side c = { 0 }, d = { 0 }, *accepts[] = { &b, &d };
	unsigned asked = 0, up = 0;

	begin_connect(&a, &address, &p);
	must(!rdma_create_id(channel, &c.id, &c, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(c.id, NULL, (struct sockaddr *)&address, 1000),
	     "rdma_resolve_addr");
	while (up < 4 && next_event(WAIT)) {
		switch (event.what) {
		case RDMA_CM_EVENT_ADDR_RESOLVED:
			must(!rdma_resolve_route(c.id, 1000), "resolve_route");
			break;
		case RDMA_CM_EVENT_ROUTE_RESOLVED:
			equip(&c);
			must(!rdma_connect(c.id, &p), "rdma_connect");
			break;
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			accepts[asked]->id = event.id;
			equip(accepts[asked]);
			must(!rdma_accept(event.id, &p), "rdma_accept");
			asked++;
			break;
		case RDMA_CM_EVENT_ESTABLISHED:
			up++;
			break;
		default:
			wrong("%s came", rdma_event_str(event.what));
		}
	}
	if (up != 4)
		wrong("%u of 4 ends stand", up);
	drop(&c);
	drop(&d);
}

/* Memory that changes while it is read: the peer gets a mixture of bytes, with
 * a right CRC. */
static _Atomic bool changing;

static void *change(void *memory)
{
	volatile uint64_t *word = memory;

	for (uint64_t i = 0; changing; i++)
		word[i % (BYTES / 8)] = i;
	return NULL;
}

void memory_that_changes(void)
{
	pthread_t thread;

	connected();
	changing = true;
	pthread_create(&thread, NULL, change, b.memory);
	for (int i = 0; i < 2000 && !problem[0]; i++) {
		struct ibv_sge sge = { (uintptr_t)a.memory, BYTES / 4,
				       a.mr->lkey };
		struct ibv_send_wr *bad,
			wr = rdma(IBV_WR_RDMA_READ, b.mr->rkey);

		wr.wr_id = 1;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		must(!ibv_post_send(a.id->qp, &wr, &bad), "ibv_post_send");
		expect_status(&a, 1, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	}
	changing = false;
	pthread_join(thread, NULL);
}
