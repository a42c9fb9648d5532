/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake broker session and the fixture: see fake.h. */
#include "tests/unit/rdmacm/fake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

struct fake fake;
struct rcm rcm = { .lock = PTHREAD_MUTEX_INITIALIZER,
		   .fd = -1,
		   .next_number = 1,
		   .answers = PTHREAD_COND_INITIALIZER };

static struct ibv_device device = { .transport_type = IBV_TRANSPORT_IB,
				    .name = "fake0" };
static struct ibv_context context = { .device = &device };
static struct ibv_pd pd = { .context = &context };
struct ibv_qp fake_qp = { .context = &context, .qp_num = 0x1234 };
struct rcm_device fake_device;

int fake_setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.answer_port = 40000;
	memset(rcm.ids, 0, sizeof(rcm.ids));
	rcm.fd = -1;
	rcm.forks = 0;
	rcm.unseen = NULL;
	rcm.known_qpn = 0;
	rcm.next_number = 1;
	fake_device = (struct rcm_device){ .verbs = &context,
					   .pd = &pd,
					   .guid = 0x0102030405060708,
					   .max_resources = 16,
					   .max_depth = 12,
					   .mtu = IBV_MTU_4096 };
	fake_qp.srq = NULL;
	rcm.devices = &fake_device;
	rcm.device_count = 1;
	rcm.has_roce = true;
	rcm.has_iwarp = false;
	return 0;
}

struct rdma_event_channel *fake_channel(void)
{
	struct rdma_event_channel *c = rdma_create_event_channel();

	assert_non_null(c);
	assert_int_equal(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
	return c;
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

struct rcm_id *fake_id(struct rdma_event_channel *channel,
		       enum rdma_port_space ps, enum ibv_qp_type type,
		       enum rcm_state state)
{
	const struct sockaddr_in from = address("10.77.0.1", 7000);
	const struct sockaddr_in to = address("10.77.0.2", 7001);
	struct rdma_cm_id *pub;
	struct rcm_id *id;

	assert_int_equal(rcm_id_make(channel, &pub, NULL, ps, type), 0);
	id = rcm_id_of(pub);
	id->device = &fake_device;
	pub->verbs = &context;
	pub->pd = &pd;
	pub->port_num = FAKE_PORT;
	id->state = state;
	id->in_broker = true;
	memcpy(&pub->route.addr.src_storage, &from, sizeof(from));
	memcpy(&pub->route.addr.dst_storage, &to, sizeof(to));
	id->path.src = rcm_gid_of((const struct sockaddr *)&from);
	id->path.dst = rcm_gid_of((const struct sockaddr *)&to);
	id->path.hop_limit = 64;
	id->path.mtu = IBV_MTU_1024;
	return id;
}

bool fake_is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Fakes of the functions of the session with the broker. */

int rcm_session_start(void)
{
	return 0;
}

int rcm_session_connect(void)
{
	return -ECONNREFUSED;
}

int rcm_session_hear(int fd, struct vb_ipc_cm *done)
{
	return -ECONNRESET;
}

bool rcm_is_answer(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *done)
{
	return done->id == asked->id && done->tid == asked->tid;
}

struct vb_ipc_cm rcm_message(const struct rcm_id *id, enum vb_ipc_cm_kind kind)
{
	return (struct vb_ipc_cm){ .kind = (uint8_t)kind,
				   .version = VB_IPC_CM_VERSION,
				   .id = id->number };
}

int rcm_session_tell(const struct vb_ipc_cm *m)
{
	if (fake.tell_rc)
		return fake.tell_rc;
	assert_true(fake.tells < FAKE_MOST);
	fake.told[fake.tells++] = *m;
	pthread_mutex_lock(&rcm.lock);
	rcm_note_said(m);
	pthread_mutex_unlock(&rcm.lock);
	return 0;
}

int rcm_session_ask(const struct vb_ipc_cm *m, struct vb_ipc_cm *answer)
{
	if (fake.ask_rc)
		return fake.ask_rc;
	assert_true(fake.asks < FAKE_MOST);
	fake.asked[fake.asks++] = *m;
	*answer = (struct vb_ipc_cm){
		.kind = IPC_CM_DONE,
		.id = m->id,
		.src_port = m->src_port ? m->src_port : fake.answer_port,
	};
	pthread_mutex_lock(&rcm.lock);
	rcm_note_done(m, answer);
	pthread_mutex_unlock(&rcm.lock);
	return 0;
}
