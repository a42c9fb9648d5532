/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs front end over a fake engine: contracts, refusals, waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "core/rss.h"
#include "core/sge.h"
#include "core/transport.h"
#include "front/verbs/front.h"
#include "tests/abi/fake_engine.h"

#define DEPTH 4

struct bench {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct vb_qp *core;
};

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	context = ibv_open_device(list[0]);
	assert_non_null(context);
	ibv_free_device_list(list);
	return context;
}

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, DEPTH, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	fake = (struct fake_engine){ .devices = 2 };
	b->context = open_first();
	b->pd = ibv_alloc_pd(b->context);
	b->channel = ibv_create_comp_channel(b->context);
	b->cq = ibv_create_cq(b->context, 40, b, b->channel, 0);
	assert_non_null(b->cq);
	init.pd = b->pd;
	init.send_cq = init.recv_cq = b->cq;
	b->qp = ibv_create_qp_ex(b->context, &init);
	assert_non_null(b->qp);
	b->ex = ibv_qp_to_qp_ex(b->qp);
	assert_non_null(b->ex);
	b->core = vb_front_qp(b->qp)->core;
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	if (b->qp)
		assert_int_equal(ibv_destroy_qp(b->qp), 0);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), 0);
	assert_int_equal(ibv_dealloc_pd(b->pd), 0);
	assert_int_equal(ibv_close_device(b->context), 0);
	assert_int_equal(fake.opens, 0);
	free(b);
	return 0;
}

/* The transition table is core's business. */
static void put_in(struct bench *b, enum vb_qp_state s)
{
	atomic_store(&b->core->state, (uint8_t)s);
}

static uint32_t posted(const struct bench *b)
{
	return atomic_load(&b->core->sq.posted);
}

/*
 * device.c
 */

static void get_device_list__nothing_there(void **state)
{
	struct ibv_device **list;
	int n = -1;

	fake = (struct fake_engine){ 0 };
	errno = 5;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_null(list[0]);
	assert_int_equal(n, 0);
	assert_int_equal(errno, 0);
	ibv_free_device_list(list);
}

static void get_device_list__bad_spec(void **state)
{
	int n = -1;

	setenv("VERBENA_DEVICES", "nonsense", 1);
	assert_null(ibv_get_device_list(&n));
	unsetenv("VERBENA_DEVICES");
	assert_int_equal(errno, ENODEV);
	assert_int_equal(n, 0);
}

static void get_device_list__same_pointers_again(void **state)
{
	struct ibv_device **a, **b;
	int n;

	fake = (struct fake_engine){ .devices = 2 };
	a = ibv_get_device_list(&n);
	b = ibv_get_device_list(&n);
	assert_int_equal(n, 2);
	assert_ptr_equal(a[0], b[0]);
	assert_ptr_equal(a[1], b[1]);
	assert_null(a[2]);
	assert_string_equal(ibv_get_device_name(a[1]), "roce_fake1");
	assert_int_equal(ibv_get_device_index(a[1]), 2);
	assert_true(be64toh(ibv_get_device_guid(a[1])) == 0x0200000000000002u);
	assert_string_equal(a[1]->ibdev_path,
			    "/sys/class/infiniband/roce_fake1");
	ibv_free_device_list(a);
	ibv_free_device_list(b);
}

static void query_port__only_port_1(void **state)
{
	struct bench *b = *state;
	struct ibv_port_attr a;

	assert_int_equal(ibv_query_port(b->context, 1, &a), 0);
	assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(a.max_msg_sz, 1u << 30);
	assert_int_equal(a.gid_tbl_len, VB_MAX_GIDS);
	assert_int_equal(ibv_query_port(b->context, 2, &a), EINVAL);
	assert_int_equal(ibv_query_port(b->context, 0, &a), EINVAL);
}

static void query_port__old_struct_ends_early(void **state)
{
	struct bench *b = *state;
	struct ibv_port_attr a;

	memset(&a, 0xa5, sizeof(a));
	assert_int_equal((ibv_query_port)(b->context, 1, (void *)&a), 0);
	assert_int_equal(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(a.port_cap_flags2, 0xa5a5);
}

static void query_device_ex__longer_and_shorter_structs(void **state)
{
	struct bench *b = *state;
	struct {
		struct ibv_device_attr_ex a;
		uint64_t newer;
	} big = { .newer = 7 };
	struct verbs_context *v = verbs_get_ctx(b->context);

	assert_non_null(v);
	assert_int_equal(
		v->query_device_ex(b->context, NULL, &big.a, sizeof(big)), 0);
	assert_int_equal(big.newer, 0);
	assert_int_equal(big.a.orig_attr.phys_port_cnt, 1);
	assert_true(big.a.orig_attr.max_qp > 0);
	assert_int_equal(v->query_device_ex(b->context, NULL, &big.a, 8),
			 EINVAL);
}

static void query_gid__index_out_of_table(void **state)
{
	struct bench *b = *state;
	struct ibv_gid_entry e[2];
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(b->context, 1, VB_MAX_GIDS, &gid), -1);
	assert_int_equal(ibv_query_gid(b->context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(b->context, 1, 9, &gid), 0);
	assert_true(gid.global.interface_id == 0);
	assert_int_equal(ibv_query_gid_ex(b->context, 1, 9, e, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(b->context, 1, VB_MAX_GIDS, e, 0),
			 EINVAL);
	assert_int_equal(ibv_query_gid_ex(b->context, 1, 0, e, 1), EINVAL);
}

static void query_gid_table__too_small_an_array(void **state)
{
	struct bench *b = *state;
	struct vb_port *p = &vb_front_context(b->context)->adapter->port;
	struct ibv_gid_entry e[2];

	vb_mutex_lock(&p->lock);
	p->gids[0].gid.raw[0] = 0xfe;
	p->gids[2].gid.raw[0] = 0xfd;
	p->gids[2].ifindex = 7;
	p->gid_count = 3;
	vb_mutex_unlock(&p->lock);
	assert_int_equal(ibv_query_gid_table(b->context, e, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(b->context, e, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(b->context, e, 2, 1), -EINVAL);
	assert_int_equal(ibv_query_gid_table(b->context, e, 2, 0), 2);
	assert_int_equal(e[1].gid_index, 2);
	assert_int_equal(e[1].gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(e[1].ndev_ifindex, 7);
}

static void query_pkey__one_entry(void **state)
{
	struct bench *b = *state;
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(b->context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(b->context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, pkey), 0);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, htobe16(1)), -1);
}

static void close_device__objects_left(void **state)
{
	struct ibv_context *context;
	struct ibv_pd *pd;

	fake = (struct fake_engine){ .devices = 1 };
	context = open_first();
	pd = ibv_alloc_pd(context);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(fake.opens, 0);
}

/*
 * objects.c
 */

static void dealloc_pd__in_use(void **state)
{
	struct bench *b = *state;
	char bytes[8];
	struct ibv_mr *mr;

	assert_int_equal(ibv_dealloc_pd(b->pd), EBUSY);
	mr = ibv_reg_mr(b->pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, mr->rkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void reg_mr__refused_access(void **state)
{
	struct bench *b = *state;
	char bytes[8];
	struct ibv_mr *mr;

	assert_null(ibv_reg_mr(b->pd, bytes, 8, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	/* An optional right that nobody knows is no reason to refuse. */
	mr = ibv_reg_mr_iova2(b->pd, bytes, 8, 0, 1u << 29);
	assert_non_null(mr);
	ibv_dereg_mr(mr);
}

static void rereg_mr__changes_what_the_flags_say(void **state)
{
	struct bench *b = *state;
	char one[8], two[16];
	struct ibv_mr *mr =
		ibv_reg_mr(b->pd, one, sizeof(one), IBV_ACCESS_LOCAL_WRITE);
	uint32_t lkey = mr->lkey;
	struct ibv_pd *pd = ibv_alloc_pd(b->context);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      two, sizeof(two), 0),
			 0);
	assert_ptr_equal(mr->addr, two);
	assert_int_equal(mr->length, sizeof(two));
	assert_int_equal(mr->lkey, lkey);
	assert_int_equal(vb_front_mr(mr)->core->access, ACCESS_LOCAL_WRITE);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->addr, two);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void rereg_mr__refusals_change_nothing(void **state)
{
	static const struct {
		int flags, access;
		bool addr, pd;
	} rows[] = {
		{ 0, 0, true, true },
		{ 8, 0, true, true },
		{ IBV_REREG_MR_CHANGE_TRANSLATION, 0, false, true },
		{ IBV_REREG_MR_CHANGE_PD, 0, true, false },
		{ IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_REMOTE_WRITE, true,
		  true },
		{ IBV_REREG_MR_CHANGE_ACCESS, 1 << 9, true, true },
	};
	struct bench *b = *state;
	char one[8], two[16];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, one, sizeof(one), 0), was = *mr;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		errno = 0;
		assert_int_equal(ibv_rereg_mr(mr, rows[i].flags,
					      rows[i].pd ? b->pd : NULL,
					      rows[i].addr ? two : NULL,
					      sizeof(two), rows[i].access),
				 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, EINVAL);
		assert_memory_equal(mr, &was, sizeof(was));
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void null_mr__has_no_memory_and_no_rkey(void **state)
{
	struct bench *b = *state;
	struct ibv_mr *mr = ibv_alloc_null_mr(b->pd);
	struct vb_pd *pd = vb_front_pd(b->pd)->core;
	struct vb_sge sge = { 0x123456789a, 8, mr->lkey };
	uint8_t out[8] = "xxxxxxx";

	assert_int_equal(mr->rkey, 0);
	assert_int_equal(vb_sge_place(pd, &sge, 1, 0, "discard", 8),
			 FAULT_NONE);
	assert_int_equal(vb_sge_gather(pd, &sge, 1, 0, out, 8), FAULT_NONE);
	assert_memory_equal(out, "\0\0\0\0\0\0\0", 8);
	assert_int_equal(vb_mr_check(pd->adapter, pd, 0, mr->lkey, 0, 1,
				     ACCESS_REMOTE_READ),
			 FAULT_RKEY);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void reg_mr__the_whole_address_space(void **state)
{
	struct bench *b = *state;
	struct vb_pd *pd = vb_front_pd(b->pd)->core;
	char here[8] = "here";
	struct vb_sge sge = { (uintptr_t)here, 8, 0 };
	struct ibv_mr *mr;
	char out[8];

	assert_null(ibv_reg_mr(b->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	mr = ibv_reg_mr(b->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	sge.lkey = mr->lkey;
	assert_int_equal(vb_sge_gather(pd, &sge, 1, 0, out, 8), FAULT_NONE);
	assert_string_equal(out, "here");
	assert_int_equal(vb_sge_place(pd, &sge, 1, 0, out, 8), FAULT_LKEY);
	sge.addr = 8;
	assert_int_equal(vb_sge_gather(pd, &sge, 1, 0, out, 8),
			 FAULT_LOCAL_MEMORY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void advise_mr__what_the_page_says(void **state)
{
	struct bench *b = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *odp =
		ibv_reg_mr(b->pd, mem, 2 * page, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *pinned = ibv_reg_mr(b->pd, mem, page, 0);
	struct ibv_pd *other = ibv_alloc_pd(b->context);
	struct ibv_sge sge = { (uintptr_t)mem, (uint32_t)page, odp->lkey };
	uint8_t in_core;

	assert_int_equal(ibv_advise_mr(b->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
			 0);
	assert_int_equal(mincore(mem, page, &in_core), 0);
	assert_true(in_core & 1);
	assert_int_equal(
		ibv_advise_mr(b->pd, (enum ibv_advise_mr_advice)77, 0, &sge, 1),
		ENOTSUP);
	assert_int_equal(ibv_advise_mr(b->pd, 0, 2, &sge, 1), EINVAL);
	assert_int_equal(ibv_advise_mr(b->pd, 0, 0, &sge, 0), EINVAL);
	assert_int_equal(ibv_advise_mr(b->pd,
				       IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
				       &sge, 1),
			 EPERM); /* not writable */
	assert_int_equal(ibv_advise_mr(other, 0, 0, &sge, 1), EPERM);
	sge.length = (uint32_t)(2 * page + 1);
	assert_int_equal(ibv_advise_mr(b->pd, 0, 0, &sge, 1), EFAULT);
	sge.length = (uint32_t)(2 * page);
	munmap(mem + page, page);
	assert_int_equal(ibv_advise_mr(b->pd, 0, 0, &sge, 1), EFAULT);
	assert_int_equal(ibv_advise_mr(b->pd,
				       IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				       0, &sge, 1),
			 0);
	/* There, but nobody may look at it. */
	sge.length = (uint32_t)page;
	assert_int_equal(mprotect(mem, page, PROT_NONE), 0);
	assert_int_equal(ibv_advise_mr(b->pd, 0, 0, &sge, 1), EFAULT);
	assert_int_equal(ibv_advise_mr(b->pd,
				       IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				       0, &sge, 1),
			 0);
	sge.lkey = pinned->lkey;
	assert_int_equal(ibv_advise_mr(b->pd, 0, 0, &sge, 1), ENOENT);
	sge.lkey ^= 1;
	assert_int_equal(ibv_advise_mr(b->pd, 0, 0, &sge, 1), ENOENT);
	assert_int_equal(ibv_dereg_mr(odp), 0);
	assert_int_equal(ibv_dereg_mr(pinned), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	munmap(mem, page);
}

static void dmabuf_mr__is_what_the_descriptor_is(void **state)
{
	struct bench *b = *state;
	struct vb_pd *pd = vb_front_pd(b->pd)->core;
	int fd = memfd_create("stands for a device's memory", MFD_CLOEXEC);
	const uint64_t iova = 0x7000000ffa; /* as far into a page */
	struct ibv_mr *mr;
	char out[4] = "";

	assert_int_equal(ftruncate(fd, 8192), 0);
	/* From the middle of a page, over its end. */
	mr = ibv_reg_dmabuf_mr(b->pd, 4090, 20, iova, fd,
			       IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	assert_int_equal(
		vb_mr_write(pd->adapter, pd, 0, mr->rkey, iova + 4, "abcd", 4),
		FAULT_NONE);
	assert_int_equal(pread(fd, out, 4, 4094), 4);
	assert_memory_equal(out, "abcd", 4);
	assert_int_equal(
		vb_mr_write(pd->adapter, pd, 0, mr->rkey, iova + 17, "abcd", 4),
		FAULT_RKEY);
	/* The owner took it back. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(
		vb_mr_write(pd->adapter, pd, 0, mr->rkey, iova, "abcd", 4),
		FAULT_REMOTE_MEMORY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_dmabuf_mr(b->pd, 0, 0, 0, fd, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dmabuf_mr(b->pd, 4090, 20, iova + 1, fd, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(
		ibv_reg_dmabuf_mr(b->pd, 0, 20, 0, fd, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EINVAL);
	close(fd);
	assert_null(ibv_reg_dmabuf_mr(b->pd, 0, 1, 0, fd, 0));
	assert_int_equal(errno, EBADF);
}

static void dm__sizes_offsets_and_regions(void **state)
{
	struct bench *b = *state;
	struct ibv_alloc_dm_attr attr = { .length = 64, .log_align_req = 16 };
	struct ibv_dm *dm = ibv_alloc_dm(b->context, &attr);
	struct vb_pd *pd = vb_front_pd(b->pd)->core;
	struct ibv_device_attr_ex device;
	struct ibv_mr *mr;
	char out[8];

	assert_non_null(dm);
	assert_int_equal((uintptr_t)vb_front_dm(dm)->memory->bytes & 0xffff, 0);
	assert_int_equal(ibv_memcpy_to_dm(dm, 56, "a device", 8), 0);
	assert_int_equal(ibv_memcpy_to_dm(dm, 60, "a device", 8), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, out, 8), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 2, out, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 4, 6), EINVAL);
	assert_null(ibv_reg_dm_mr(b->pd, dm, 0, 64, IBV_ACCESS_REMOTE_READ));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dm_mr(b->pd, dm, 8, 60, IBV_ACCESS_ZERO_BASED));
	mr = ibv_reg_dm_mr(b->pd, dm, 48, 16,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(vb_mr_read(pd->adapter, pd, 0, mr->rkey, 8, out, 8),
			 FAULT_NONE);
	assert_memory_equal(out, "a device", 8);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);

	assert_int_equal(ibv_query_device_ex(b->context, NULL, &device), 0);
	attr = (struct ibv_alloc_dm_attr){ .length = device.max_dm_size };
	dm = ibv_alloc_dm(b->context, &attr);
	assert_non_null(dm);
	attr.length = 4;
	assert_null(ibv_alloc_dm(b->context, &attr));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_free_dm(dm), 0);
	attr.comp_mask = 1;
	assert_null(ibv_alloc_dm(b->context, &attr));
	assert_int_equal(errno, EINVAL);
}

static void import__objects_of_another_context(void **state)
{
	struct bench *b = *state;
	struct ibv_context *c = ibv_import_device(dup(b->context->cmd_fd));
	struct ibv_alloc_dm_attr attr = { .length = 8 };
	struct ibv_dm *dm = ibv_alloc_dm(b->context, &attr), *dm2;
	char mem[8], out[8];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, mem, 8, 0), *mr2;
	struct ibv_pd *pd2, *empty = ibv_alloc_pd(b->context);

	assert_non_null(c);
	assert_ptr_equal(c->device, b->context->device);
	pd2 = ibv_import_pd(c, b->pd->handle);
	assert_non_null(pd2);
	assert_ptr_equal(pd2->context, c);
	mr2 = ibv_import_mr(pd2, mr->handle);
	assert_non_null(mr2);
	assert_null(mr2->addr);
	assert_int_equal(mr2->length, 8);
	assert_int_equal(mr2->lkey, mr->lkey);
	dm2 = ibv_import_dm(c, dm->handle);
	assert_non_null(dm2);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, "imported", 8), 0);
	assert_int_equal(ibv_memcpy_from_dm(out, dm2, 0, 8), 0);
	assert_memory_equal(out, "imported", 8);
	/* None such: a number, and one of another domain. */
	assert_null(ibv_import_pd(c, 0));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_mr(pd2, mr->handle ^ 1));
	assert_null(ibv_import_mr(empty, mr->handle));
	assert_null(ibv_import_dm(c, 0));
	ibv_unimport_dm(dm2);
	ibv_unimport_mr(mr2);
	ibv_unimport_pd(pd2);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(empty), 0);
	assert_int_equal(ibv_close_device(c), 0);
	assert_null(ibv_import_device(-1));
	assert_int_equal(errno, EINVAL);
}

/* Then nobody can do more with them than unimport. */
static void import__owner_ends_first(void **state)
{
	struct bench *b = *state;
	struct ibv_context *c = ibv_import_device(dup(b->context->cmd_fd));
	struct ibv_alloc_dm_attr attr = { .length = 8 };
	struct ibv_dm *dm = ibv_alloc_dm(b->context, &attr), *dm2;
	struct ibv_pd *pd = ibv_alloc_pd(b->context), *pd2;
	uint32_t handle = pd->handle;

	dm2 = ibv_import_dm(c, dm->handle);
	pd2 = ibv_import_pd(c, handle);
	assert_non_null(dm2);
	assert_non_null(pd2);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_null(ibv_import_pd(c, handle));
	assert_int_equal(errno, ENOENT);
	ibv_unimport_dm(dm2);
	ibv_unimport_pd(pd2);
	assert_int_equal(ibv_close_device(c), 0);
}

static void parent_domain__stands_for_its_domain(void **state)
{
	struct bench *b = *state;
	struct ibv_td_init_attr none = { 0 };
	struct ibv_td *td = ibv_alloc_td(b->context, &none);
	struct ibv_parent_domain_init_attr attr = { .td = td };
	struct ibv_pd *parent, *pd = ibv_alloc_pd(b->context);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD
	};
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;
	char mem[8];

	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = pd;
	parent = ibv_alloc_parent_domain(b->context, &attr);
	assert_non_null(parent);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	mr = ibv_reg_mr(parent, mem, 8, 0);
	assert_ptr_equal(vb_front_mr(mr)->core->pd, vb_front_pd(pd)->core);
	cq_attr.parent_domain = pd; /* no parent */
	assert_null(ibv_create_cq_ex(b->context, &cq_attr));
	assert_int_equal(errno, EINVAL);
	cq_attr.parent_domain = parent;
	cq = ibv_create_cq_ex(b->context, &cq_attr);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.pd = parent;
	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	attr.comp_mask = 4;
	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

static struct {
	unsigned taken, given;
	enum { OWN, DEFAULT, NONE } how;
} allocator;

static void *take(struct ibv_pd *pd, void *context, size_t size, size_t align,
		  uint64_t type)
{
	void *at = NULL;

	assert_ptr_equal(context, &allocator);
	if (allocator.how != OWN)
		return allocator.how == NONE ? NULL : IBV_ALLOCATOR_USE_DEFAULT;
	allocator.taken++;
	assert_int_equal(posix_memalign(&at, align, size), 0);
	memset(at, 0, size);
	return at;
}

static void give(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
	assert_ptr_equal(context, &allocator);
	allocator.given++;
	free(at);
}

static void parent_domain__allocators_make_the_queues(void **state)
{
	struct bench *b = *state;
	struct ibv_parent_domain_init_attr attr = {
		.pd = b->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = take,
		.free = give,
		.pd_context = &allocator,
	};
	struct ibv_pd *pd = ibv_alloc_parent_domain(b->context, &attr);
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 1,
					       .comp_mask =
						       IBV_CQ_INIT_ATTR_MASK_PD,
					       .parent_domain = pd };
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_srq_attr bigger = { .max_wr = 60, .srq_limit = 7 };
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	memset(&allocator, 0, sizeof(allocator));
	cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(b->context, &cq_attr));
	assert_int_equal(allocator.taken, 1);
	srq = ibv_create_srq_ex(b->context, &srq_attr);
	assert_int_equal(allocator.taken, 2);
	assert_int_equal(
		ibv_modify_srq(srq, &bigger, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
		0);
	assert_int_equal(ibv_query_srq(srq, &bigger), 0);
	assert_int_equal(bigger.max_wr, 64);
	assert_int_equal(bigger.srq_limit, 7);
	assert_int_equal(allocator.taken, 3);
	assert_int_equal(allocator.given, 1);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	assert_int_equal(allocator.taken, 5);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(allocator.taken, 6);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(allocator.given, 6);

	allocator.how = DEFAULT;
	cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(b->context, &cq_attr));
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(allocator.given, 6);
	allocator.how = NONE;
	assert_null(ibv_create_cq_ex(b->context, &cq_attr));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	srq_attr.comp_mask |= IBV_SRQ_INIT_ATTR_RESERVED;
	assert_null(ibv_create_srq_ex(b->context, &srq_attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void mw__alloc_and_bind_are_posted(void **state)
{
	struct bench *b = *state;
	char mem[8];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, mem, 8, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 5,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)mem, 8, IBV_ACCESS_REMOTE_READ },
	};
	const struct vb_send_wqe *wqe = vb_sq_at(&b->core->sq, 0);
	uint32_t key = mw->rkey;

	assert_int_equal(ibv_bind_mw(b->qp, mw, &bind), EINVAL); /* state */
	assert_int_equal(mw->rkey, key);
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_bind_mw(b->qp, mw, &bind), 0);
	assert_int_equal(mw->rkey >> 8, key >> 8);
	assert_int_not_equal(mw->rkey, key);
	assert_int_equal(posted(b), 1);
	assert_int_equal(wqe->op, WR_BIND_MW);
	assert_int_equal(wqe->wr_id, 5);
	assert_int_equal(wqe->rkey, mw->rkey);
	assert_int_equal(wqe->swap, mr->rkey);
	assert_int_equal(wqe->compare_add, 8);
	bind.send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_bind_mw(b->qp, mw, &bind), EINVAL);
	bind.send_flags = 0;
	bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	assert_int_equal(ibv_bind_mw(b->qp, mw, &bind), EINVAL);
	assert_int_equal(posted(b), 1);
	put_in(b, QPS_RESET);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_alloc_mw(b->pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
}

static void mw__type_2_is_bound_by_post_send(void **state)
{
	struct bench *b = *state;
	struct ibv_mw *one = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_mw_bind bind = { 0 };
	uint32_t was = two->rkey;

	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.bind_mw.mw = one;
	wr.bind_mw.rkey = one->rkey;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.bind_mw.mw = two;
	assert_int_equal(ibv_bind_mw(b->qp, two, &bind), EINVAL);
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(two->rkey, was);
	/* Bits 31:8 are not the program's, whatever it puts there. */
	wr.bind_mw.bind_info.mw_access_flags = 0;
	wr.bind_mw.rkey = ~was;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	assert_int_equal(posted(b), 1);
	assert_int_equal(two->rkey, (was & ~0xffu) | (~was & 0xff));
	assert_int_equal(vb_sq_at(&b->core->sq, 0)->rkey, two->rkey);

	ibv_wr_start(b->ex);
	ibv_wr_bind_mw(b->ex, two, 0xba, &wr.bind_mw.bind_info);
	ibv_wr_local_inv(b->ex, 77);
	assert_int_equal(ibv_wr_complete(b->ex), 0);
	assert_int_equal(two->rkey, (was & ~0xffu) | 0xba);
	assert_int_equal(vb_sq_at(&b->core->sq, 1)->rkey, two->rkey);
	assert_int_equal(vb_sq_at(&b->core->sq, 2)->op, WR_LOCAL_INV);
	assert_int_equal(vb_sq_at(&b->core->sq, 2)->imm, 77);
	put_in(b, QPS_RESET);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
}

static void create_cq__bad_arguments(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_init_attr_ex a = { .cqe = 1,
					 .wc_flags = IBV_WC_EX_WITH_CVLAN };

	assert_null(ibv_create_cq(b->context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(b->context, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(b->context, 1, NULL, NULL, -1));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq_ex(b->context, &a));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void modify_cq__moderation(void **state)
{
	struct bench *b = *state;
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { 7, 20 } };
	struct ibv_device_attr_ex device;

	assert_int_equal(ibv_modify_cq(b->cq, &attr), 0);
	assert_int_equal(fake.moderate_count, 7);
	assert_int_equal(fake.moderate_period, 20 * VB_USEC);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(b->cq, &attr), EINVAL);
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(b->cq, &attr), EINVAL);
	assert_int_equal(ibv_query_device_ex(b->context, NULL, &device), 0);
	assert_int_equal(device.cq_mod_caps.max_cq_count, 65535);
	assert_int_equal(device.cq_mod_caps.max_cq_period, 65535);
}

static void destroy__in_use(void **state)
{
	struct bench *b = *state;

	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), EBUSY);
}

static void push(struct bench *b, uint64_t wr_id)
{
	struct vb_cqe e = { .wr_id = wr_id,
			    .opcode = WC_OP_RECV,
			    .wc_flags = WC_WITH_IMM,
			    .imm = 0x01020304,
			    .byte_len = 99,
			    .qpn = 5,
			    .src_qp = 6,
			    .is_recv = true };

	assert_true(vb_cq_push(vb_front_cq(b->cq)->core, &e, true));
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

static _Atomic int acked;

static void *ack_later(void *cq)
{
	sleep_ms(30);
	acked = 1;
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void destroy_cq__waits_for_acknowledgement(void **state)
{
	struct bench *b = *state;
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	b->qp = NULL;
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	push(b, 1);
	assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
	assert_ptr_equal(cq, b->cq);
	assert_ptr_equal(context, b);
	acked = 0;
	pthread_create(&t, NULL, ack_later, b->cq);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(acked, 1);
	pthread_join(t, NULL);
	b->cq = ibv_create_cq(b->context, 1, NULL, NULL, 0);
}

static void destroy_cq__forgets_events_not_taken(void **state)
{
	struct bench *b = *state;
	struct pollfd p = { .fd = b->channel->fd, .events = POLLIN };

	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	b->qp = NULL;
	assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
	push(b, 1);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	b->cq = ibv_create_cq(b->context, 1, NULL, NULL, 0);
}

static void *ack_qp_later(void *arg)
{
	sleep_ms(30);
	acked = 1;
	ibv_ack_async_event(arg);
	return NULL;
}

static void destroy_qp__waits_for_acknowledgement(void **state)
{
	struct bench *b = *state;
	struct vb_async *async = &vb_front_context(b->context)->async;
	struct ibv_async_event e;
	pthread_t t;

	vb_async_post(async, EVENT_COMM_EST, b->core->owner);
	vb_async_post(async, EVENT_PORT_ACTIVE, NULL);
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(e.element.qp, b->qp);
	acked = 0;
	pthread_create(&t, NULL, ack_qp_later, &e);
	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	assert_int_equal(acked, 1);
	pthread_join(t, NULL);
	b->qp = NULL;
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(e.element.port_num, 1);
	ibv_ack_async_event(&e);
}

static void srq__limit_and_size(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr init = { .attr = { 10, 2, 0 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_srq_attr a = { .srq_limit = 3 };
	struct ibv_sge sge[3] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;

	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 10);
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &a), 0);
	assert_int_equal(a.srq_limit, 3);
	a.srq_limit = 100000;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), EINVAL);
	a.max_wr = 0;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &a, 1 << 5), EINVAL);
	wr.num_sge = (int)init.attr.max_sge + 1;
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/*
 * qp.c
 */

static void create_qp__what_is_not_supported(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_DRIVER };

	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init.qp_type = IBV_QPT_RC;
	init.send_cq = NULL;
	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EINVAL);
	init.send_cq = b->cq;
	init.cap.max_send_wr = 1u << 30;
	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EINVAL);
}

static void create_qp__plain_has_no_builder(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(b->pd, &init);

	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_true(init.cap.max_send_wr >= 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_query_qp__round_trip(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			 IBV_QP_ACCESS_FLAGS;

	assert_int_equal(ibv_modify_qp(b->qp, &a, IBV_QP_STATE), EINVAL);
	assert_int_equal(b->qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(b->qp, &a, mask), 0);
	assert_int_equal(b->qp->state, IBV_QPS_INIT);
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(ibv_query_qp(b->qp, &a, 0, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_INIT);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_true(a.cap.max_send_wr >= DEPTH);
	assert_ptr_equal(init.send_cq, b->cq);
}

/*
 * post.c, poll.c, cq_ex.c, wr_builder.c
 */

static void post_send__wrong_state(void **state)
{
	struct bench *b = *state;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;

	for (int s = QPS_RESET; s <= QPS_RTR; s++) {
		put_in(b, (enum vb_qp_state)s);
		assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
	}
	assert_int_equal(posted(b), 0);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_RESET);
}

static void post_send__list_with_a_bad_one(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[VB_MAX_SGE + 1] = { { 0x1000, 7, 1 },
					       { 0x2000, 8, 2 } };
	struct ibv_send_wr wr[3] = { 0 }, *bad = NULL;
	const struct vb_send_wqe *wqe;

	put_in(b, QPS_RTS);
	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i + 70,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .opcode = IBV_WR_SEND_WITH_IMM,
					      .imm_data = 0xaabbccdd,
					      .sg_list = sge,
					      .num_sge = 2 };
	wr[1].num_sge = (int)b->core->sq.max_sge + 1;
	assert_int_equal(ibv_post_send(b->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(posted(b), 1);
	assert_int_equal(fake.drives, 1);
	wqe = vb_sq_at(&b->core->sq, 0);
	assert_int_equal(wqe->wr_id, 70);
	assert_int_equal(wqe->length, 15);
	assert_int_equal(wqe->num_sge, 2);
	assert_int_equal(wqe->sge[1].lkey, 2);
	assert_int_equal(wqe->imm, 0xaabbccdd);
	put_in(b, QPS_RESET);
}

static void post_send__queue_full(void **state)
{
	struct bench *b = *state;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	uint32_t n = b->core->sq.cap;

	put_in(b, QPS_RTS);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(posted(b), n);
	put_in(b, QPS_RESET);
}

static void post_send__inline(void **state)
{
	struct bench *b = *state;
	uint8_t bytes[VB_MAX_INLINE + 1];
	struct ibv_sge sge[2] = { { (uintptr_t)bytes, 3, 0 },
				  { (uintptr_t)bytes + 10, 5, 0 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = sge,
				  .num_sge = 2,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;
	const struct vb_send_wqe *wqe;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	wr.wr.rdma.remote_addr = 0x12345678;
	wr.wr.rdma.rkey = 0x77;
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	wqe = vb_sq_at(&b->core->sq, 0);
	assert_int_equal(wqe->length, 8);
	assert_int_equal(wqe->rkey, 0x77);
	assert_true(wqe->remote_addr == 0x12345678);
	assert_memory_equal(wqe->inline_data, "\0\1\2\12\13\14\15\16", 8);
	sge[0].length = b->core->sq.max_inline;
	sge[1].length = 1;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	sge[0].length = 1;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(posted(b), 1);
	put_in(b, QPS_RESET);
}

static void post_send__inline_from_nowhere(void **state)
{
	struct bench *b = *state;
	void *hole =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge = { (uintptr_t)hole, 8, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;

	assert_int_equal(vb_guard_install(), 0);
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EFAULT);
	put_in(b, QPS_RESET);
	munmap(hole, 4096);
}

static void post_send__refused_requests(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[2] = { { 0, 1u << 30, 0 }, { 0, 1, 0 } };
	struct ibv_sge four = { 0, 4, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = sge,
				  .num_sge = 2 },
			   *bad;

	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr.num_sge = 0;
	for (int op = IBV_WR_SEND_WITH_INV + 1; op < 40; op++) {
		wr.opcode = (enum ibv_wr_opcode)op;
		assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	}
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				   .sg_list = &four,
				   .num_sge = 1 };
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(posted(b), 0);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_RESET);
}

static void post_recv__refusals(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[VB_MAX_SGE + 1] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad = NULL;

	assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	put_in(b, QPS_INIT);
	for (uint32_t i = 0; i < b->core->rq.cap; i++)
		assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), 0);
	assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), ENOMEM);
	wr.num_sge = (int)b->core->rq.max_sge + 1;
	assert_int_equal(ibv_post_recv(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_ERR);
	(void)ibv_post_recv(b->qp, &wr, &bad);
	assert_int_equal(fake.drives, 1);
	put_in(b, QPS_RESET);
}

static struct bench *arriving;

static void arrive(void)
{
	push(arriving, 44);
	fake.on_poll = NULL;
}

static void poll_cq__link_only_when_empty(void **state)
{
	struct bench *b = *state;
	struct ibv_wc wc[40];

	for (uint64_t i = 0; i < 40; i++)
		push(b, i);
	assert_int_equal(ibv_poll_cq(b->cq, 37, wc), 37);
	assert_int_equal(fake.polls, 0);
	assert_int_equal(wc[36].wr_id, 36);
	assert_int_equal(wc[0].imm_data, 0x01020304);
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV);
	assert_int_equal(wc[0].byte_len, 99);
	assert_int_equal(wc[0].qp_num, 5);
	assert_int_equal(wc[0].src_qp, 6);
	assert_int_equal(ibv_poll_cq(b->cq, 40, wc), 3);
	assert_int_equal(fake.polls, 0);
	assert_int_equal(ibv_poll_cq(b->cq, 1, wc), 0);
	assert_int_equal(fake.polls, 1);
	arriving = b;
	fake.on_poll = arrive;
	assert_int_equal(ibv_poll_cq(b->cq, 1, wc), 1);
	assert_int_equal(wc[0].wr_id, 44);
	assert_int_equal(ibv_poll_cq(b->cq, 0, wc), 0);
}

static void poll_cq__overrun(void **state)
{
	struct bench *b = *state;
	struct vb_cq *core = vb_front_cq(b->cq)->core;
	struct ibv_async_event e;
	struct vb_cqe entry = { 0 };
	struct ibv_wc wc;
	uint32_t n = 0;

	while (vb_cq_push(core, &entry, false))
		n++;
	assert_true(n >= 40);
	while (n--)
		assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
	assert_true(ibv_poll_cq(b->cq, 1, &wc) < 0);
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(e.element.cq, b->cq);
	ibv_ack_async_event(&e);
}

static void cq_ex__walks_entries(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_ex *ex = &vb_front_cq(b->cq)->ex;
	struct ibv_poll_cq_attr attr = { 0 };

	assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
	push(b, 8);
	push(b, 9);
	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	assert_int_equal(ex->wr_id, 8);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_imm_data(ex), 0x01020304);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 9);
	assert_int_equal(ibv_wc_read_byte_len(ex), 99);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(ex, &attr), EINVAL);
}

/* By the wall clock they are as far apart as by the other one. */
static void cq_ex__wallclock_keeps_distances(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_ex *ex = &vb_front_cq(b->cq)->ex;
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t first = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		struct vb_cqe e = { .timestamp = VB_SEC + i };

		assert_true(vb_cq_push(vb_front_cq(b->cq)->core, &e, false));
		assert_int_equal(ibv_start_poll(ex, &attr), 0);
		if (i == 0)
			first = ibv_wc_read_completion_wallclock_ns(ex);
		assert_int_equal(ibv_wc_read_completion_ts(ex), VB_SEC + i);
		assert_int_equal(ibv_wc_read_completion_wallclock_ns(ex),
				 first + i);
		ibv_end_poll(ex);
	}
}

static void wr__nothing_before_complete(void **state)
{
	struct bench *b = *state;
	struct ibv_sge sge[2] = { { 0x10, 4, 9 }, { 0x20, 5, 9 } };
	const struct vb_send_wqe *wqe;

	put_in(b, QPS_RTS);
	ibv_wr_start(b->ex);
	b->ex->wr_id = 1;
	b->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(b->ex, 0x55, 0x1000);
	ibv_wr_set_sge_list(b->ex, 2, sge);
	b->ex->wr_id = 2;
	b->ex->wr_flags = 0;
	ibv_wr_send(b->ex);
	ibv_wr_set_inline_data(b->ex, (char[]){ "hello" }, 5);
	b->ex->wr_id = 3;
	ibv_wr_atomic_fetch_add(b->ex, 0x66, 0x2000, 7);
	ibv_wr_set_sge(b->ex, 9, 0x30, 8);
	assert_int_equal(posted(b), 0);
	assert_int_equal(ibv_wr_complete(b->ex), 0);
	assert_int_equal(posted(b), 3);
	assert_int_equal(fake.drives, 1);
	wqe = vb_sq_at(&b->core->sq, 0);
	assert_int_equal(wqe->op, WR_WRITE);
	assert_int_equal(wqe->length, 9);
	assert_int_equal(wqe->flags, SEND_SIGNALED);
	wqe = vb_sq_at(&b->core->sq, 1);
	assert_int_equal(wqe->wr_id, 2);
	assert_int_equal(wqe->flags, SEND_INLINE);
	assert_memory_equal(wqe->inline_data, "hello", 5);
	wqe = vb_sq_at(&b->core->sq, 2);
	assert_int_equal(wqe->length, 8);
	assert_true(wqe->compare_add == 7);
	put_in(b, QPS_RESET);
}

static void wr__atomic_write_takes_the_word_along(void **state)
{
	struct bench *b = *state;
	uint64_t word = 0x1122334455667788;
	struct ibv_sge sge = { (uintptr_t)&word, 8, 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;

	put_in(b, QPS_RTS);
	ibv_wr_start(b->ex);
	ibv_wr_atomic_write(b->ex, 0x55, 0x1000, &word);
	assert_int_equal(ibv_wr_complete(b->ex), 0);
	assert_true(vb_sq_at(&b->core->sq, 0)->swap == word);
	assert_int_equal(vb_sq_at(&b->core->sq, 0)->length, 8);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), 0);
	assert_true(vb_sq_at(&b->core->sq, 1)->swap == word);
	sge.length = 4;
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	assert_int_equal(posted(b), 2);
	put_in(b, QPS_RESET);
}

static void wr__abort_and_mistakes_post_nothing(void **state)
{
	struct bench *b = *state;

	put_in(b, QPS_RTS);
	ibv_wr_start(b->ex);
	ibv_wr_send(b->ex);
	ibv_wr_abort(b->ex);

	ibv_wr_start(b->ex);
	ibv_wr_send(b->ex);
	ibv_wr_set_sge_list(b->ex, 1000, NULL);
	ibv_wr_send(b->ex);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);

	ibv_wr_start(b->ex);
	ibv_wr_atomic_fetch_add(b->ex, 1, 0, 1);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);

	ibv_wr_start(b->ex);
	ibv_wr_send_tso(b->ex, NULL, 0, 0);
	ibv_wr_set_sge(b->ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);

	ibv_wr_start(b->ex);
	for (uint32_t i = 0; i <= b->core->sq.cap; i++)
		ibv_wr_send(b->ex);
	assert_int_equal(ibv_wr_complete(b->ex), ENOMEM);

	put_in(b, QPS_INIT);
	ibv_wr_start(b->ex);
	ibv_wr_send(b->ex);
	assert_int_equal(ibv_wr_complete(b->ex), EINVAL);
	assert_int_equal(posted(b), 0);
	assert_int_equal(fake.drives, 0);
	put_in(b, QPS_RESET);
}

/*
 * xrc.c
 */

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, int fd,
				  int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	errno = 0;
	return ibv_open_xrcd(context, &attr);
}

static void xrcd__the_inode_has_one(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd_init_attr half = { .comp_mask = IBV_XRCD_INIT_ATTR_FD };
	struct ibv_xrcd *first, *second, *alone;
	FILE *f = tmpfile();
	int fd = fileno(f);

	assert_null(ibv_open_xrcd(b->context, &half));
	assert_int_equal(errno, EINVAL);
	half.comp_mask = 1u << 31;
	assert_null(ibv_open_xrcd(b->context, &half));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(open_xrcd(b->context, 9999, O_CREAT));
	assert_int_equal(errno, EBADF);
	assert_null(open_xrcd(b->context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	first = open_xrcd(b->context, fd, O_CREAT | O_EXCL);
	assert_non_null(first);
	assert_null(open_xrcd(b->context, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	second = open_xrcd(b->context, fd, 0);
	alone = open_xrcd(b->context, -1, O_CREAT);
	assert_ptr_equal(vb_front_xrcd(first)->core->domain,
			 vb_front_xrcd(second)->core->domain);
	assert_ptr_not_equal(vb_front_xrcd(first)->core->domain,
			     vb_front_xrcd(alone)->core->domain);
	assert_int_equal(ibv_close_xrcd(first), 0);
	assert_int_equal(ibv_close_xrcd(second), 0);
	assert_int_equal(ibv_close_xrcd(alone), 0);
	assert_null(open_xrcd(b->context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	fclose(f);
}

/* Another process has it: without an object here the inode tells. */
static void xrcd__is_there_while_another_process_has_it(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd *x;
	FILE *f = tmpfile();
	int fd = fileno(f), in[2], out[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		struct ibv_context *own = open_first();

		x = open_xrcd(own, fd, O_CREAT | O_EXCL);
		if (write(out[1], x ? "y" : "n", 1) != 1)
			_exit(2);
		_exit(read(in[0], &c, 1) != 1);
	}
	assert_int_equal(read(out[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	assert_null(open_xrcd(b->context, fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	x = open_xrcd(b->context, fd, 0);
	assert_non_null(x);
	assert_int_equal(ibv_close_xrcd(x), 0);
	assert_int_equal(write(in[1], "", 1), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(open_xrcd(b->context, fd, 0));
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	fclose(f);
}

static struct ibv_srq_init_attr_ex tag_attr(const struct bench *b)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = b->pd,
		.cq = b->cq,
		.tm_cap = { .max_num_tags = 2, .max_ops = 2 },
	};
}

static void assert_no_tags(struct bench *b, struct ibv_srq_init_attr_ex attr)
{
	errno = 0;
	assert_null(ibv_create_srq_ex(b->context, &attr));
	assert_int_equal(errno, EINVAL);
}

static void tags__what_makes_no_queue(void **state)
{
	struct bench *b = *state;
	struct ibv_device_attr_ex device;
	struct ibv_srq_init_attr_ex attr = tag_attr(b);

	assert_int_equal(ibv_query_device_ex(b->context, NULL, &device), 0);
	assert_int_equal(device.tm_caps.flags, IBV_TM_CAP_RC);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_TM;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.cq = NULL;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_PD;
	assert_no_tags(b, attr);
	attr = tag_attr(b);
	attr.tm_cap.max_num_tags = 0;
	assert_no_tags(b, attr);
	attr.tm_cap.max_num_tags = device.tm_caps.max_num_tags + 1;
	assert_no_tags(b, attr);
	attr.tm_cap.max_num_tags = 1;
	attr.tm_cap.max_ops = device.tm_caps.max_ops + 1;
	assert_no_tags(b, attr);
}

static void assert_op(struct ibv_cq *cq, uint64_t wr_id, int opcode,
		      enum ibv_wc_status status, unsigned flags)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wc_flags, flags);
}

static void tags__operations(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr_ex attr = tag_attr(b);
	struct ibv_srq *srq = ibv_create_srq_ex(b->context, &attr);
	struct ibv_sge sges[5] = { 0 };
	struct ibv_ops_wr wr[3] = {
		{ .wr_id = 1,
		  .next = &wr[1],
		  .opcode = IBV_WR_TAG_ADD,
		  .flags = IBV_OPS_SIGNALED },
		{ .wr_id = 2, .next = &wr[2], .opcode = IBV_WR_TAG_ADD },
		{ .wr_id = 3, .opcode = IBV_WR_TAG_ADD },
	};
	struct ibv_ops_wr *bad = NULL;

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	/* The list holds two. */
	assert_int_equal(ibv_post_srq_ops(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_op(b->cq, 1, IBV_WC_TM_ADD, IBV_WC_SUCCESS, 0);
	assert_int_not_equal(wr[0].tm.handle, wr[1].tm.handle);
	wr[0].next = NULL;
	wr[0].opcode = IBV_WR_TAG_DEL;
	assert_int_equal(ibv_post_srq_ops(srq, wr, &bad), 0);
	assert_op(b->cq, 1, IBV_WC_TM_DEL, IBV_WC_SUCCESS, 0);
	assert_int_equal(ibv_post_srq_ops(srq, wr, &bad), 0);
	assert_op(b->cq, 1, IBV_WC_TM_DEL, IBV_WC_TM_ERR, 0);
	wr[2].tm.add.sg_list = sges;
	wr[2].tm.add.num_sge = 5;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	wr[2].tm.add.num_sge = -1;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	wr[2].tm.add.num_sge = 4;
	wr[2].flags = 1 << 5;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	wr[2].flags = 0;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), 0);
	wr[2].opcode = (enum ibv_ops_wr_opcode)7;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), EINVAL);
	/* A count that cannot be right is asked for again. */
	wr[2].opcode = IBV_WR_TAG_SYNC;
	wr[2].flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	wr[2].tm.unexpected_cnt = 1;
	assert_int_equal(ibv_post_srq_ops(srq, &wr[2], &bad), 0);
	assert_op(b->cq, 3, IBV_WC_TM_SYNC, IBV_WC_SUCCESS, IBV_WC_TM_SYNC_REQ);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* It has no send queue then that a program could post to. */
static void tags__queue_pair_without_sends(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr_ex attr = tag_attr(b);
	struct ibv_srq *srq = ibv_create_srq_ex(b->context, &attr);
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };
	struct ibv_qp_attr a;
	struct ibv_qp *qp = ibv_create_qp(b->pd, &init);

	assert_non_null(qp);
	assert_int_equal(init.cap.max_send_wr, 0);
	assert_int_equal(ibv_query_qp(qp, &a, 0, &init), 0);
	assert_int_equal(a.cap.max_send_wr, 0);
	assert_int_equal(a.cap.max_send_sge, 0);
	assert_int_equal(a.cap.max_inline_data, 0);
	atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	init.qp_type = IBV_QPT_UC;
	errno = 0;
	assert_null(ibv_create_qp(b->pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static struct ibv_srq *make_xrc_srq(struct bench *b, struct ibv_xrcd *x)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 5, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = b->pd,
		.xrcd = x,
		.cq = b->cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(b->context, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 8);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	assert_null(ibv_create_srq_ex(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	return srq;
}

static void xrc__objects_and_who_stands_on_whom(void **state)
{
	struct bench *b = *state;
	struct ibv_xrcd *x = open_xrcd(b->context, -1, O_CREAT);
	struct ibv_srq *srq = make_xrc_srq(b, x), *plain;
	struct ibv_srq_init_attr plain_attr = { .attr = { 1, 1, 0 } };
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 3 };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = x,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT,
		.xrcd = x,
		.qp_context = b,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *target, *again;
	struct ibv_qp_attr qp_attr;
	struct ibv_recv_wr wr = { 0 }, *bad;
	uint32_t number = 0;

	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_equal(number, vb_front_srq(srq)->core->number);
	plain = ibv_create_srq(b->pd, &plain_attr);
	assert_int_equal(ibv_get_srq_num(plain, &number), EINVAL);
	assert_int_equal(ibv_destroy_srq(plain), 0);
	assert_int_equal(
		ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 16);
	assert_int_equal(attr.srq_limit, 3);

	target = ibv_create_qp_ex(b->context, &init);
	assert_non_null(target);
	assert_int_equal(init.cap.max_recv_wr, 0);
	assert_int_equal(ibv_post_recv(target, &wr, &bad), EINVAL);
	open.qp_num = target->qp_num + 1;
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(errno, EINVAL);
	open.qp_num = target->qp_num;
	open.qp_type = IBV_QPT_RC;
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(errno, EINVAL);
	open.qp_type = IBV_QPT_XRC_RECV;
	open.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_XRCD;
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(errno, EINVAL);
	open.comp_mask |= IBV_QP_OPEN_ATTR_XRCD;
	again = ibv_open_qp(b->context, &open);
	assert_non_null(again);
	assert_ptr_equal(again->qp_context, b);
	assert_int_equal(again->qp_num, target->qp_num);
	assert_int_equal(ibv_destroy_qp(target), 0);
	/* The other holder keeps it. */
	qp_attr =
		(struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	assert_int_equal(ibv_modify_qp(again, &qp_attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(ibv_destroy_qp(again), 0);
	assert_null(ibv_open_qp(b->context, &open));
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
}

/* The initiator: where a work request goes is for it to say. */
static void xrc__work_requests_name_a_shared_queue(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr_ex init = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = b->cq,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = b->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(b->context, &init);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_ex *ex;
	struct vb_qp *core;

	assert_non_null(qp);
	ex = ibv_qp_to_qp_ex(qp);
	core = vb_front_qp(qp)->core;
	atomic_store(&core->state, QPS_RTS);
	wr.qp_type.xrc.remote_srqn = 0x4711;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(vb_sq_at(&core->sq, 0)->srqn, 0x4711);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 0x4712);
	ibv_wr_set_sge(ex, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(vb_sq_at(&core->sq, 1)->srqn, 0x4712);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void resolve__asks_for_the_gid_s_interface(void **state)
{
	struct bench *b = *state;
	struct vb_port *p = &vb_front_context(b->context)->adapter->port;
	struct ibv_ah_attr ah = { .grh.dgid.raw = { 0xfe, 0x80, [15] = 9 } };
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vlan = 1;

	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan),
		EINVAL);
	ah.port_num = 1;
	ah.grh.sgid_index = 200;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan),
		ENODATA);
	vb_mutex_lock(&p->lock);
	p->gids[0].gid.raw[0] = 0xfe;
	p->gids[0].ifindex = 7;
	p->gid_count = 1;
	vb_mutex_unlock(&p->lock);
	ah.grh.sgid_index = 0;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan), 0);
	assert_int_equal(vlan, 7); /* the fake gives back what it is asked */
	assert_int_equal(mac[5], 9);
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, NULL), 0);
	ah.grh.dgid.raw[15] = 0;
	assert_int_equal(
		ibv_resolve_eth_l2_from_gid(b->context, &ah, mac, &vlan),
		EHOSTUNREACH);
}

/* docs/VERBS.md; a row that changes there changes here. */
static void verbs__refused_as_the_table_says(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_rate_limit_attr rate = { 0 };
	struct ibv_flow_attr flow = { .port = 1 };
	struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_ops_wr *bad;

	assert_int_equal(ibv_modify_qp_rate_limit(b->qp, &rate), EOPNOTSUPP);
	assert_int_equal(ibv_post_srq_ops(srq, NULL, &bad), EINVAL);
#define REFUSED(call)                                                          \
	do {                                                                   \
		errno = 0;                                                     \
		assert_null(call);                                             \
		assert_int_equal(errno, EOPNOTSUPP);                           \
	} while (0)
	REFUSED(ibv_create_flow(b->qp, &flow));
	REFUSED(ibv_create_flow_action_esp(b->context, NULL));
#undef REFUSED
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/*
 * flow.c
 */

struct flow_request {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4_ext ip;
	struct ibv_flow_spec_tcp_udp udp;
	struct ibv_flow_spec_action_tag tag;
	struct ibv_flow_spec_counter_action count;
} __attribute__((packed, aligned(8)));

static struct flow_request good_flow(struct ibv_counters *counters)
{
	struct flow_request r = {
		.attr = { .size = sizeof(r),
			  .priority = 3,
			  .num_of_specs = 5,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth) },
		.ip = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(r.ip) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(r.udp) },
		.tag = { .type = IBV_FLOW_SPEC_ACTION_TAG,
			 .size = sizeof(r.tag),
			 .tag_id = 0x77 },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT,
			   .size = sizeof(r.count),
			   .counters = counters },
	};

	memset(r.eth.mask.dst_mac, 0xff, 6);
	r.eth.val.dst_mac[5] = 9;
	r.eth.mask.ether_type = 0xffff;
	r.eth.val.ether_type = htobe16(0x800);
	r.ip.val.dst_ip = htobe32(0x0a000001);
	r.ip.mask.dst_ip = UINT32_MAX;
	r.udp.val.dst_port = htobe16(4791);
	r.udp.mask.dst_port = UINT16_MAX;
	return r;
}

static struct ibv_qp *make_raw(struct bench *b)
{
	struct ibv_qp_init_attr init = { .send_cq = b->cq,
					 .recv_cq = b->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_qp *qp = ibv_create_qp(b->pd, &init);

	assert_non_null(qp);
	return qp;
}

static void flow__specs_become_a_rule(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counter_attach_attr point = { .counter_desc =
							 IBV_COUNTER_BYTES };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	struct flow_request r = good_flow(c);
	struct ibv_qp *qp = make_raw(b);
	struct ibv_flow *flow;
	uint64_t value = 1;

	assert_int_equal(ibv_attach_counters_point_flow(c, &point, NULL), 0);
	flow = ibv_create_flow(qp, &r.attr);
	assert_non_null(flow);
	assert_int_equal(fake.rule.kind, FLOW_NORMAL);
	assert_int_equal(fake.rule.priority, 3);
	assert_int_equal(fake.rule.tag, 0x77);
	assert_int_equal(fake.rule.value.dst[5], 9);
	assert_memory_equal(fake.rule.value.ether_type, "\x08\x00", 2);
	assert_memory_equal(fake.rule.value.dip, "\x0a\0\0\1", 4);
	assert_memory_equal(fake.rule.value.dport, "\x12\xb7", 2);
	assert_int_equal(fake.rule.mask.layers,
			 LAYER_ETH | LAYER_IPV4 | LAYER_UDP);
	/* In use: nothing can go, nothing can be added. */
	assert_int_equal(ibv_attach_counters_point_flow(c, &point, NULL),
			 EBUSY);
	assert_int_equal(ibv_destroy_counters(c), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), EBUSY);
	assert_int_equal(ibv_read_counters(c, &value, 1, 0), 0);
	assert_int_equal(value, 0);
	assert_int_equal(ibv_read_counters(c, &value, 1, 8), EINVAL);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void flow__refusals(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	struct ibv_counter_attach_attr point = { .counter_desc = 77 };
	struct ibv_qp *qp = make_raw(b);
	struct flow_request r;

#define REFUSED(change, why)                                                   \
	do {                                                                   \
		r = good_flow(c);                                              \
		change;                                                        \
		assert_null(ibv_create_flow(qp, &r.attr));                     \
		assert_int_equal(errno, why);                                  \
	} while (0)
	REFUSED(r.attr.port = 2, EINVAL);
	REFUSED(r.attr.type = 4, EINVAL);
	REFUSED(r.attr.comp_mask = 1, EINVAL);
	REFUSED(r.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS, EOPNOTSUPP);
	REFUSED(r.ip.size = 0, EINVAL);
	REFUSED(r.eth.size--, EINVAL);
	REFUSED(r.eth.type = 0x999, EINVAL);
	REFUSED(r.eth.type |= IBV_FLOW_SPEC_INNER, EOPNOTSUPP);
	/* The page's ENXIO is for devices that steer nothing. */
	REFUSED(r.eth.type = IBV_FLOW_SPEC_ESP, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_GRE, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_MPLS, EOPNOTSUPP);
	REFUSED(r.eth.type = IBV_FLOW_SPEC_ACTION_HANDLE, EOPNOTSUPP);
	REFUSED(r.udp.type = IBV_FLOW_SPEC_IPV4, EINVAL); /* two of layer 3 */
	REFUSED(r.count.counters = NULL, EINVAL);
#undef REFUSED
	assert_int_equal(ibv_attach_counters_point_flow(c, &point, NULL),
			 ENOTSUP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void raw_qp__sends_and_nothing_else(void **state)
{
	struct bench *b = *state;
	struct ibv_qp *qp = make_raw(b);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_IP_CSUM; /* not announced */
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/*
 * rss.c
 */

static struct ibv_wq *make_wq(struct bench *b)
{
	struct ibv_wq_init_attr init = {
		.pd = b->pd, .cq = b->cq, .max_wr = 3, .max_sge = 2
	};
	struct ibv_wq *wq = ibv_create_wq(b->context, &init);

	assert_non_null(wq);
	assert_true(init.max_wr >= 3);
	return wq;
}

static int move_wq(struct ibv_wq *wq, enum ibv_wq_state to)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE,
				    .wq_state = to };

	return ibv_modify_wq(wq, &attr);
}

static void *ack_wq_later(void *arg)
{
	usleep(20000);
	atomic_store(&acked, 1);
	ibv_ack_async_event(arg);
	return NULL;
}

static void VB_UNCHECKED wq__fails_with_an_event(void **state)
{
	struct bench *b = *state;
	struct ibv_wq *wq = make_wq(b);
	struct vb_qp *core = vb_front_wq(wq)->core;
	struct ibv_async_event e;
	pthread_t t;

	assert_int_equal(move_wq(wq, IBV_WQS_RDY), 0);
	vb_mutex_lock(&core->drive);
	vb_qp_fail(core, EVENT_QP_FATAL);
	vb_mutex_unlock(&core->drive);
	assert_int_equal(ibv_get_async_event(b->context, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_WQ_FATAL);
	assert_ptr_equal(e.element.wq, wq);
	acked = 0;
	pthread_create(&t, NULL, ack_wq_later, &e);
	assert_int_equal(ibv_destroy_wq(wq), 0);
	assert_int_equal(acked, 1);
	pthread_join(t, NULL);
}

static void wq__states_and_receives(void **state)
{
	struct bench *b = *state;
	struct ibv_wq *wq = make_wq(b);
	struct ibv_recv_wr wr = { .wr_id = 5 }, *bad = NULL;
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE |
						 IBV_WQ_ATTR_CURR_STATE,
				    .wq_state = IBV_WQS_RDY,
				    .curr_wq_state = IBV_WQS_ERR };
	struct ibv_wc wc;

	assert_int_equal(wq->state, IBV_WQS_RESET);
	assert_int_equal(ibv_post_wq_recv(wq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_modify_wq(wq, &attr), EINVAL);
	attr.curr_wq_state = IBV_WQS_RESET;
	assert_int_equal(ibv_modify_wq(wq, &attr), 0);
	assert_int_equal(wq->state, IBV_WQS_RDY);
	assert_int_equal(ibv_post_wq_recv(wq, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_cq(b->cq), EBUSY);
	assert_int_equal(move_wq(wq, IBV_WQS_ERR), 0);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.qp_num, wq->wq_num);
	assert_int_equal(move_wq(wq, IBV_WQS_RDY), EINVAL);
	assert_int_equal(move_wq(wq, IBV_WQS_UNKNOWN), EINVAL);
	attr = (struct ibv_wq_attr){ .attr_mask = IBV_WQ_ATTR_FLAGS,
				     .flags_mask = 1 };
	assert_int_equal(ibv_modify_wq(wq, &attr), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void wq__refusals(void **state)
{
	struct bench *b = *state;
	struct ibv_wq_init_attr init;

#define REFUSED(change, why)                                                   \
	do {                                                                   \
		init = (struct ibv_wq_init_attr){ .pd = b->pd,                 \
						  .cq = b->cq,                 \
						  .max_wr = 1 };               \
		change;                                                        \
		assert_null(ibv_create_wq(b->context, &init));                 \
		assert_int_equal(errno, why);                                  \
	} while (0)
	REFUSED(init.max_wr = 0, EINVAL);
	REFUSED(init.max_wr = 1u << 30, EINVAL);
	REFUSED(init.max_sge = 1000, EINVAL);
	REFUSED(init.wq_type = 7, EINVAL);
	REFUSED(init.cq = NULL, EINVAL);
	REFUSED(init.comp_mask = 1u << 5, EINVAL);
	REFUSED((init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
		 init.create_flags = IBV_WQ_FLAGS_SCATTER_FCS),
		EOPNOTSUPP);
#undef REFUSED
}

static void rss__holds_what_it_stands_on(void **state)
{
	struct bench *b = *state;
	struct ibv_wq *wqs[2] = { make_wq(b), make_wq(b) };
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 1,
						    .ind_tbl = wqs };
	struct ibv_rwq_ind_table *table =
		ibv_create_rwq_ind_table(b->context, &init);
	uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = b->pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = 39,
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	assert_non_null(table);
	init.log_ind_tbl_size = 10;
	assert_null(ibv_create_rwq_ind_table(b->context, &init));
	assert_null(ibv_create_qp_ex(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.rx_hash_conf.rx_hash_key_len = 40;
	attr.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_IPSEC_SPI;
	assert_null(ibv_create_qp_ex(b->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4;
	qp = ibv_create_qp_ex(b->context, &attr);
	assert_non_null(qp);
	assert_ptr_equal(vb_front_qp(qp)->core->rss->queues[1],
			 vb_front_wq(wqs[1])->core);
	assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT),
			 EOPNOTSUPP);
	assert_int_equal(ibv_destroy_rwq_ind_table(table), EBUSY);
	assert_int_equal(ibv_destroy_wq(wqs[0]), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
	assert_int_equal(ibv_destroy_wq(wqs[0]), 0);
	assert_int_equal(ibv_destroy_wq(wqs[1]), 0);
}

/*
 * What pages of section 3 say and no other test here holds.
 */

static void pages__completion_queues(void **state)
{
	struct bench *b = *state;
	struct ibv_cq_init_attr_ex ex = { .cqe = 1, .channel = b->channel };
	struct ibv_poll_cq_attr poll = { .comp_mask = 1 };
	int vectors = b->context->num_comp_vectors;
	struct ibv_cq_ex *cq;
	struct ibv_cq *which;
	void *context;

	assert_null(ibv_create_cq(b->context, 1, NULL, NULL, vectors));
	assert_int_equal(errno, EINVAL);
	ex.comp_mask = 1u << 7;
	assert_null(ibv_create_cq_ex(b->context, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	ex.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	ex.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq = ibv_create_cq_ex(b->context, &ex);
	assert_non_null(cq);
	assert_true(cq->cqe >= 1);
	assert_int_equal(ibv_start_poll(cq, &poll), EINVAL);
	poll.comp_mask = 0;
	assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	/* Who does not block hears -1, and errno. */
	assert_int_equal(fcntl(b->channel->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(b->channel, &which, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), EBUSY);
}

static void pages__queue_pairs_and_shared_queues(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr init = { .attr = { 3, 1, 77 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	struct ibv_qp_init_attr on_srq = { .send_cq = b->cq,
					   .recv_cq = b->cq,
					   .srq = srq,
					   .cap = { 1, 1u << 30, 1, 1000, 0 },
					   .qp_type = IBV_QPT_UC };
	struct ibv_srq_attr attr = { .srq_limit = 1, .max_wr = 1u << 30 };
	struct ibv_qp *qp;

	/* The limit is not looked at; sizes are told. */
	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 3 && init.attr.max_sge >= 1);
	/* Of UC there is none with a shared queue. */
	assert_null(ibv_create_qp(b->pd, &on_srq));
	assert_int_equal(errno, EINVAL);
	on_srq.qp_type = IBV_QPT_UD; /* whose own queue is not looked at */
	qp = ibv_create_qp(b->pd, &on_srq);
	assert_non_null(qp);
	assert_true(on_srq.cap.max_send_wr >= 1);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	/* One attribute is bad: none is changed. */
	assert_int_equal(
		ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
		EINVAL);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void pages__windows_and_handles(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr of_ud = { .send_cq = b->cq,
					  .recv_cq = b->cq,
					  .cap = { 1, 1, 1, 1, 0 },
					  .qp_type = IBV_QPT_UD };
	struct ibv_qp *ud = ibv_create_qp(b->pd, &of_ud);
	struct ibv_mw *one = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = { .send_flags = 0 }; /* nothing: unbind */
	struct ibv_ah_attr no_grh = { .port_num = 1 };
	struct ibv_ah_attr out;
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .sgid = { .raw = { 1 } } };
	uint32_t key = one->rkey;

	put_in(b, QPS_RTS);
	atomic_store(&vb_front_qp(ud)->core->state, QPS_RTS);
	assert_int_equal(ibv_bind_mw(ud, one, &bind), EINVAL);
	assert_int_equal(ibv_bind_mw(b->qp, two, &bind), EINVAL);
	assert_int_equal(one->rkey, key);
	assert_int_equal(ibv_inc_rkey(key) & 0xffffff00, key & 0xffffff00);
	assert_int_not_equal(ibv_inc_rkey(key), key);
	put_in(b, QPS_RESET);
	atomic_store(&vb_front_qp(ud)->core->state, QPS_RESET);
	assert_null(ibv_create_ah(b->pd, &no_grh));
	assert_int_equal(errno, EINVAL);
	no_grh.is_global = 1;
	no_grh.port_num = 2;
	assert_null(ibv_create_ah(b->pd, &no_grh));
	assert_int_equal(errno, EINVAL);
	/* To an address that is none of ours it cannot have come. */
	assert_int_equal(ibv_init_ah_from_wc(b->context, 1, &wc, &grh, &out),
			 -1);
	assert_null(ibv_create_ah_from_wc(b->pd, &wc, &grh, 1));
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
}

static void pages__devices_and_names(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr odd = { .comp_mask = 1 };
	struct ibv_async_event e;

	assert_int_equal(ibv_fork_init(), 0); /* regions or not: no harm */
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, htobe16(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(b->context, 1, htobe16(0x1234)),
			 -1);
	assert_null(ibv_create_counters(b->context, &odd));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fcntl(b->context->async_fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_async_event(b->context, &e), -1);
	assert_int_equal(errno, EAGAIN);
	assert_non_null(ibv_event_type_str((enum ibv_event_type)1000));
	assert_non_null(ibv_node_type_str((enum ibv_node_type)1000));
	assert_non_null(ibv_port_state_str((enum ibv_port_state)1000));
}

static void pages__polling_and_posting(void **state)
{
	struct bench *b = *state;
	struct ibv_srq_init_attr init = { .attr = { 2, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(b->pd, &init);
	uint32_t room = init.attr.max_wr;
	struct ibv_qp_init_attr on_srq = { .send_cq = b->cq,
					   .recv_cq = b->cq,
					   .srq = srq,
					   .cap = { 1, 1, 1, 1, 0 },
					   .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(b->pd, &on_srq);
	struct ibv_recv_wr wr[2] = { { .next = &wr[1] }, { 0 } }, *bad = NULL;
	struct ibv_wc wc[2];

	push(b, 1);
	push(b, 2);
	assert_int_equal(ibv_poll_cq(b->cq, 0, wc), 0);
	assert_int_equal(ibv_poll_cq(b->cq, -1, wc), 0);
	assert_int_equal(ibv_poll_cq(b->cq, 1, wc), 1);
	/* No smaller than what waits in it; one with room may be larger. */
	assert_int_equal(ibv_resize_cq(b->cq, 0), EINVAL);
	push(b, 3);
	push(b, 4);
	assert_int_equal(ibv_resize_cq(b->cq, 2), EINVAL);
	assert_int_equal(b->cq->cqe >= 40, true);
	assert_int_equal(ibv_resize_cq(b->cq, 50), 0);
	assert_true(b->cq->cqe >= 50);
	while (ibv_poll_cq(b->cq, 2, wc))
		;
	/* Not the queue pair's own, which it has not. */
	atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
	assert_int_equal(ibv_post_recv(qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, wr);
	for (uint32_t i = 1; i < room; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr[1], &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]); /* the first of them is in */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* The table of ibv_post_send(3), but that UC has no SEND with invalidate: IBA
 * has no such opcode (9.2.1). */
static void pages__operations_of_types(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		char ops[IBV_WR_TSO + 2];
	} rows[] = {
		/* WRITE, IMM, SEND, IMM, READ, CAS, FAA, INV, BIND, S_INV,
		 * TSO */
		{ IBV_QPT_UD, "--XX-------" },
		{ IBV_QPT_UC, "XXXX---X---" },
		{ IBV_QPT_RC, "XXXXXXXX-X-" },
		{ IBV_QPT_RAW_PACKET, "--X--------" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct ibv_qp_init_attr init = { .send_cq = b->cq,
						 .recv_cq = b->cq,
						 .cap = { 16, 1, 1, 1, 0 },
						 .qp_type = rows[i].type };
		struct ibv_qp *qp = ibv_create_qp(b->pd, &init);
		struct ibv_ah ah = { 0 };
		struct ibv_sge sge = { (uintptr_t)&ah, 8, 0 };

		assert_non_null(qp);
		atomic_store(&vb_front_qp(qp)->core->state, QPS_RTS);
		for (unsigned op = 0; op <= IBV_WR_TSO; op++) {
			struct ibv_send_wr *bad, wr = {
				.opcode = (enum ibv_wr_opcode)op,
				.sg_list = &sge,
				.num_sge = 1,
				.send_flags =
					IBV_SEND_FENCE | IBV_SEND_SOLICITED,
			};
			bool taken;

			/* A bind of nothing, a datagram to nowhere: their
			 * other tests have them. */
			if (op == IBV_WR_BIND_MW ||
			    (rows[i].type == IBV_QPT_UD &&
			     rows[i].ops[op] == 'X'))
				continue;
			taken = ibv_post_send(qp, &wr, &bad) == 0;
			assert_int_equal(taken, rows[i].ops[op] == 'X');
		}
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* A request gets its data once; what is wrong is told in the end. */
static void pages__builder_mistakes(void **state)
{
	struct bench *b = *state;
	uint64_t word = 5;
	struct ibv_sge long_one = { 0x1000, 1u << 20, 9 };
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info nothing = { 0 };

	put_in(b, QPS_RTS);
	b->ex->wr_flags = 0;
#define MISTAKE(...)                                                           \
	do {                                                                   \
		ibv_wr_start(b->ex);                                           \
		__VA_ARGS__;                                                   \
		ibv_wr_send(b->ex); /* after it nothing counts */              \
		assert_int_equal(ibv_wr_complete(b->ex), EINVAL);              \
	} while (0)
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_inline_data(b->ex, &word, 8);
		ibv_wr_set_sge_list(b->ex, 1, &long_one));
	MISTAKE(ibv_wr_local_inv(b->ex, 7);
		ibv_wr_set_sge_list(b->ex, 1, &long_one));
	MISTAKE(ibv_wr_bind_mw(b->ex, mw, mw->rkey, &nothing);
		ibv_wr_set_sge(b->ex, 9, 0, 8));
	MISTAKE(ibv_wr_atomic_write(b->ex, 1, 0, &word);
		ibv_wr_set_sge(b->ex, 9, 0, 8));
	MISTAKE(ibv_wr_rdma_read(b->ex, 1, 0);
		ibv_wr_set_inline_data(b->ex, &word, 8));
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_inline_data_list(
			b->ex, 2,
			(struct ibv_data_buf[]){ { &word, 8 },
						 { &word, 1u << 30 } }));
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_ud_addr(b->ex, NULL, 1, 1));
	MISTAKE(ibv_wr_send(b->ex); ibv_wr_set_xrc_srqn(b->ex, 1));
	MISTAKE(b->ex->wr_flags = IBV_SEND_IP_CSUM; ibv_wr_send(b->ex);
		b->ex->wr_flags = 0);
	/* What newer headers call; no device of ours announces it. */
	MISTAKE(vb_front_qp(b->qp)->wr_flush(b->ex, 1, 0, 8, 1, 0));
#undef MISTAKE
	assert_int_equal(posted(b), 0);
	put_in(b, QPS_RESET);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* Not in Debian 12's headers: IBV_QP_EX_WITH_FLUSH, IBV_ACCESS_FLUSH_GLOBAL and
 * _PERSISTENT, the bits of device_cap_flags_ex and of on-demand paging. */
static void pages__flush_is_refused(void **state)
{
	struct bench *b = *state;
	struct ibv_qp_init_attr_ex init = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.send_cq = b->cq,
		.recv_cq = b->cq,
		.pd = b->pd,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | 1u << 11,
	};
	struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)14 }, *bad;
	struct ibv_device_attr_ex a;
	char bytes[8];

	assert_null(ibv_create_qp_ex(b->context, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	for (int bit = 8; bit <= 9; bit++) {
		assert_null(ibv_reg_mr(b->pd, bytes, 8,
				       IBV_ACCESS_LOCAL_WRITE | 1 << bit));
		assert_int_equal(errno, EINVAL);
	}
	put_in(b, QPS_RTS);
	assert_int_equal(ibv_post_send(b->qp, &wr, &bad), EINVAL);
	put_in(b, QPS_RESET);
	assert_int_equal(ibv_query_device_ex(b->context, NULL, &a), 0);
	assert_true((a.device_cap_flags_ex & 3ull << 38) == 0);
	assert_int_equal(a.odp_caps.per_transport_caps.rc_odp_caps & 1u << 6,
			 0);
}

static void pages__queries(void **state)
{
	struct bench *b = *state;
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK |
						  1u << 7 };
	struct ibv_query_device_ex_input odd = { .comp_mask = 1 };
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	uint64_t values[3] = { 7, 7, 7 };
	struct ibv_device_attr_ex a;
	struct ibv_gid_entry e;
	struct ibv_ece ece = { .vendor_id = 1 };
	char bytes[8];
	struct ibv_mr *mr = ibv_reg_mr(b->pd, bytes, 8, 0);
	__be16 pkey;

	assert_int_equal(ibv_query_rt_values_ex(b->context, &now), 0);
	assert_int_equal(now.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	now.comp_mask = 0;
	assert_int_equal(ibv_query_rt_values_ex(b->context, &now), 0);
	assert_int_equal(now.comp_mask, 0);
	assert_int_equal(ibv_query_device_ex(b->context, &odd, &a), EINVAL);
	assert_int_equal(ibv_query_gid_ex(b->context, 2, 0, &e, 0), EINVAL);
	assert_int_equal(ibv_query_pkey(b->context, 2, 0, &pkey), -1);
	assert_int_equal(ibv_query_pkey(b->context, 1, -1, &pkey), -1);
	assert_int_equal(
		ibv_query_qp_data_in_order(b->qp, IBV_WR_RDMA_WRITE, 0), 0);
	/* More places than points: those are 0. */
	assert_int_equal(ibv_read_counters(c, values, 2, 0), 0);
	assert_true(!values[0] && !values[1] && values[2] == 7);
	/* There are no options, and what query tells cannot be set: UCX
	 * would otherwise set options of its own. */
	assert_int_equal(ibv_set_ece(b->qp, &ece), EINVAL);
	ece = (struct ibv_ece){ .options = 1 };
	assert_int_equal(ibv_set_ece(b->qp, &ece), EOPNOTSUPP);
	ece = (struct ibv_ece){ .comp_mask = 1 };
	assert_int_equal(ibv_query_ece(b->qp, &ece), 0);
	assert_true(!ece.vendor_id && !ece.options && !ece.comp_mask);
	assert_int_equal(ibv_set_ece(b->qp, &ece), EOPNOTSUPP);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      bytes, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void pages__counters_have_limits(void **state)
{
	struct bench *b = *state;
	struct ibv_counters_init_attr odd = { .comp_mask = 1 };
	struct ibv_counters_init_attr none = { 0 };
	struct ibv_counters *c = ibv_create_counters(b->context, &none);
	struct ibv_counter_attach_attr at = { .counter_desc =
						      IBV_COUNTER_BYTES };

	assert_null(ibv_create_counters(b->context, &odd));
	assert_int_equal(errno, EINVAL);
	for (at.index = 0; at.index < 32; at.index++)
		assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL),
				 0);
	/* No such place; and no more points. */
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EINVAL);
	at.index = 0;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EINVAL);
	at.counter_desc = (enum ibv_counter_description)2;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), ENOTSUP);
	at.counter_desc = IBV_COUNTER_BYTES;
	at.comp_mask = 1;
	assert_int_equal(ibv_attach_counters_point_flow(c, &at, NULL), EINVAL);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void pages__parent_domains_need_both_allocators(void **state)
{
	struct bench *b = *state;
	struct ibv_parent_domain_init_attr attr = {
		.pd = b->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = take,
	};
	struct ibv_pd *pd;

	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.alloc = NULL;
	attr.free = give;
	assert_null(ibv_alloc_parent_domain(b->context, &attr));
	assert_int_equal(errno, EINVAL);
	/* Not named by the mask: not looked at, and not called. */
	attr.comp_mask = 0;
	pd = ibv_alloc_parent_domain(b->context, &attr);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/*
 * names.c
 */

static void names__in_and_out_of_range(void **state)
{
	assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)99),
			    "unknown");
	assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	assert_string_equal(ibv_event_type_str(IBV_EVENT_GID_CHANGE),
			    "GID table change");
}

static void rates__both_ways(void **state)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
	assert_int_equal(mult_to_ibv_rate(16), IBV_RATE_40_GBPS);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
	assert_int_equal(mbps_to_ibv_rate(103125), IBV_RATE_100_GBPS);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
}

#define ON_BENCH(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_device_list__nothing_there),
		cmocka_unit_test(get_device_list__bad_spec),
		cmocka_unit_test(get_device_list__same_pointers_again),
		ON_BENCH(query_port__only_port_1),
		ON_BENCH(query_port__old_struct_ends_early),
		ON_BENCH(query_device_ex__longer_and_shorter_structs),
		ON_BENCH(query_gid__index_out_of_table),
		ON_BENCH(query_gid_table__too_small_an_array),
		ON_BENCH(query_pkey__one_entry),
		cmocka_unit_test(close_device__objects_left),
		ON_BENCH(dealloc_pd__in_use),
		ON_BENCH(reg_mr__refused_access),
		ON_BENCH(rereg_mr__changes_what_the_flags_say),
		ON_BENCH(rereg_mr__refusals_change_nothing),
		ON_BENCH(null_mr__has_no_memory_and_no_rkey),
		ON_BENCH(reg_mr__the_whole_address_space),
		ON_BENCH(advise_mr__what_the_page_says),
		ON_BENCH(dmabuf_mr__is_what_the_descriptor_is),
		ON_BENCH(dm__sizes_offsets_and_regions),
		ON_BENCH(import__objects_of_another_context),
		ON_BENCH(pages__completion_queues),
		ON_BENCH(pages__queue_pairs_and_shared_queues),
		ON_BENCH(pages__windows_and_handles),
		ON_BENCH(pages__devices_and_names),
		ON_BENCH(pages__polling_and_posting),
		ON_BENCH(pages__operations_of_types),
		ON_BENCH(pages__builder_mistakes),
		ON_BENCH(pages__flush_is_refused),
		ON_BENCH(pages__queries),
		ON_BENCH(pages__counters_have_limits),
		ON_BENCH(pages__parent_domains_need_both_allocators),
		ON_BENCH(import__owner_ends_first),
		ON_BENCH(parent_domain__stands_for_its_domain),
		ON_BENCH(parent_domain__allocators_make_the_queues),
		ON_BENCH(mw__alloc_and_bind_are_posted),
		ON_BENCH(mw__type_2_is_bound_by_post_send),
		ON_BENCH(create_cq__bad_arguments),
		ON_BENCH(modify_cq__moderation),
		ON_BENCH(destroy__in_use),
		ON_BENCH(destroy_cq__waits_for_acknowledgement),
		ON_BENCH(destroy_cq__forgets_events_not_taken),
		ON_BENCH(destroy_qp__waits_for_acknowledgement),
		ON_BENCH(srq__limit_and_size),
		ON_BENCH(create_qp__what_is_not_supported),
		ON_BENCH(create_qp__plain_has_no_builder),
		ON_BENCH(modify_query_qp__round_trip),
		ON_BENCH(post_send__wrong_state),
		ON_BENCH(post_send__list_with_a_bad_one),
		ON_BENCH(post_send__queue_full),
		ON_BENCH(post_send__inline),
		ON_BENCH(post_send__inline_from_nowhere),
		ON_BENCH(post_send__refused_requests),
		ON_BENCH(post_recv__refusals),
		ON_BENCH(poll_cq__link_only_when_empty),
		ON_BENCH(poll_cq__overrun),
		ON_BENCH(cq_ex__walks_entries),
		ON_BENCH(cq_ex__wallclock_keeps_distances),
		ON_BENCH(wr__nothing_before_complete),
		ON_BENCH(wr__atomic_write_takes_the_word_along),
		ON_BENCH(wr__abort_and_mistakes_post_nothing),
		ON_BENCH(resolve__asks_for_the_gid_s_interface),
		ON_BENCH(verbs__refused_as_the_table_says),
		ON_BENCH(xrcd__the_inode_has_one),
		ON_BENCH(xrcd__is_there_while_another_process_has_it),
		ON_BENCH(tags__what_makes_no_queue),
		ON_BENCH(tags__operations),
		ON_BENCH(tags__queue_pair_without_sends),
		ON_BENCH(xrc__objects_and_who_stands_on_whom),
		ON_BENCH(xrc__work_requests_name_a_shared_queue),
		ON_BENCH(flow__specs_become_a_rule),
		ON_BENCH(flow__refusals),
		ON_BENCH(raw_qp__sends_and_nothing_else),
		ON_BENCH(wq__fails_with_an_event),
		ON_BENCH(wq__states_and_receives),
		ON_BENCH(wq__refusals),
		ON_BENCH(rss__holds_what_it_stands_on),
		cmocka_unit_test(names__in_and_out_of_range),
		cmocka_unit_test(rates__both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
