/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libibverbs that records state moves and group memberships. Calls that no
 * test should reach fail the test.
 */
#include "tests/unit/rdmacm/fake.h"

#include <endian.h>
#include <string.h>

#include "front/verbs/streams.h"

#undef ibv_query_port

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	assert_ptr_equal(qp, &fake_qp);
	if (fake.modify_rc)
		return fake.modify_rc;
	assert_true(fake.move_count < FAKE_MOST);
	fake.moves[fake.move_count++] = (struct fake_move){ *attr, mask };
	return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	fake.group_lid = lid;
	if (fake.attach_rc)
		return fake.attach_rc;
	fake.attaches++;
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	fake.detaches++;
	return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *c, struct ibv_ah_attr *attr,
				uint8_t mac[6], uint16_t *vid)
{
	fake.resolves++;
	return fake.resolve_rc;
}

/* The fake device has one GID, at index 3: that of 10.77.0.1. */
int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t i,
		      struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };

	memset(e, 0, sizeof(*e));
	if (i != 3 && !(i == 2 && fake.both_types))
		return ENODATA;
	e->gid_type = i == 2 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	memcpy(e->gid.raw, gid, sizeof(gid));
	e->gid_index = i;
	e->ndev_ifindex = 7;
	return 0;
}

int ibv_query_port(struct ibv_context *c, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)attr;

	a->gid_tbl_len = 8;
	a->active_mtu = IBV_MTU_2048;
	a->lid = 4;
	a->lmc = 1;
	return 0;
}

/* The fake port has one P_Key besides the default one. */
int ibv_get_pkey_index(struct ibv_context *c, uint8_t port, __be16 pkey)
{
	if (pkey == htobe16(0xffff))
		return 0;
	return pkey == htobe16(0x8002) ? 5 : -1;
}

/* Verbs that librdmacm must not call in these tests. */

struct ibv_device **ibv_get_device_list(int *count)
{
	fail();
	return NULL;
}

void ibv_free_device_list(struct ibv_device **list)
{
	fail();
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	fail();
	return NULL;
}

int ibv_close_device(struct ibv_context *c)
{
	fail();
	return -1;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	fail();
	return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	fail();
	return -1;
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	fail();
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *e)
{
	fail();
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	fail();
	return NULL;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	fail();
	return NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	fail();
	return -1;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int depth, void *arg,
			     struct ibv_comp_channel *channel, int vector)
{
	fail();
	return NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	fail();
	return -1;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *a)
{
	fail();
	return NULL;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	fail();
	return -1;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *p, struct ibv_srq_init_attr *a)
{
	fail();
	return NULL;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	fail();
	return -1;
}

const struct vb_verbs_streams vb_verbs_streams;
