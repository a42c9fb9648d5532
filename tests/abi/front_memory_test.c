/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, memory regions, device memory, memory windows, and
 * importing them. */
#include <time.h>

#include "tests/abi/front_bench.h"

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

#define MANY_PDS 30000u
#define SOME_PDS 500u

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the processor time, in s, that this thread uses to free the
 * domains. */
static double dealloc_time(struct ibv_pd **pds, unsigned count)
{
	double then = cpu_seconds();

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	return cpu_seconds() - then;
}

/* If ibv_dealloc_pd() searched through all domains, freeing the first ones
 * would take hundreds of times longer than freeing the last ones. */
static void dealloc_pd__costs_the_same_beside_many(void **state)
{
	struct ibv_pd **pds = calloc(MANY_PDS, sizeof(struct ibv_pd *));
	struct bench *b = *state;
	double first, last;

	for (unsigned i = 0; i < MANY_PDS; i++) {
		pds[i] = ibv_alloc_pd(b->context);
		assert_non_null(pds[i]);
	}
	first = dealloc_time(pds, SOME_PDS);
	dealloc_time(pds + SOME_PDS, MANY_PDS - 2 * SOME_PDS);
	last = dealloc_time(pds + MANY_PDS - SOME_PDS, SOME_PDS);
	if (first > 20 * last)
		fail_msg("%.2f us beside %u, %.2f us alone",
			 1e6 * first / SOME_PDS, MANY_PDS,
			 1e6 * last / SOME_PDS);
	free(pds);
}

static void reg_mr__refused_access(void **state)
{
	struct bench *b = *state;
	char bytes[8];
	struct ibv_mr *mr;

	assert_null(ibv_reg_mr(b->pd, bytes, 8, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	/* Registration ignores unknown optional access flags
	 * (ibv_reg_mr(3)). */
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
			 /* prefetch for writing needs a region with
			  * LOCAL_WRITE */
			 EPERM);
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
	/* Prefetch fails for a page that is mapped, but not readable. */
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
	/* Offset and iova of a dma-buf region: equal modulo the page size. */
	const uint64_t iova = 0x7000000ffa;
	struct ibv_mr *mr;
	char out[4] = "";

	assert_int_equal(ftruncate(fd, 8192), 0);
	/* The dma-buf region begins inside a page and crosses its end. */
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
	/* The exporter of the dma-buf truncates the file under the region. */
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
	/* Refused: a number without a region, and a region of another domain.
	 */
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

/* The owner destroys the objects first. Their imports can then only be
 * unimported. */
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
	/* refused: @pd is an ordinary domain, not a parent domain */
	cq_attr.parent_domain = pd;
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

/* Make a parent domain whose queues get memory from take() and give(). */
static struct ibv_pd *alloc_parent(struct bench *b)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = b->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = take,
		.free = give,
		.pd_context = &allocator,
	};

	memset(&allocator, 0, sizeof(allocator));
	return ibv_alloc_parent_domain(b->context, &attr);
}

static void parent_domain__allocators_make_the_queues(void **state)
{
	struct bench *b = *state;
	struct ibv_pd *pd = alloc_parent(b);
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
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	srq_attr.comp_mask |= IBV_SRQ_INIT_ATTR_RESERVED;
	assert_null(ibv_create_srq_ex(b->context, &srq_attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void parent_domain__allocators_decline_or_fail(void **state)
{
	struct bench *b = *state;
	struct ibv_pd *pd = alloc_parent(b);
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 1,
					       .comp_mask =
						       IBV_CQ_INIT_ATTR_MASK_PD,
					       .parent_domain = pd };
	struct ibv_cq *cq;

	allocator.how = DEFAULT;
	cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(b->context, &cq_attr));
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(allocator.given, 0);
	allocator.how = NONE;
	assert_null(ibv_create_cq_ex(b->context, &cq_attr));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
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

	/* Binding a window is refused, as the queue pair is in RESET. */
	assert_int_equal(ibv_bind_mw(b->qp, mw, &bind), EINVAL);
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
	/* The program's bits 31:8 of the key are ignored (IBA 10.6.7.2). */
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

int front_memory_tests(void)
{
	const struct CMUnitTest tests[] = {
		ON_BENCH(dealloc_pd__in_use),
		ON_BENCH(dealloc_pd__costs_the_same_beside_many),
		ON_BENCH(reg_mr__refused_access),
		ON_BENCH(rereg_mr__changes_what_the_flags_say),
		ON_BENCH(rereg_mr__refusals_change_nothing),
		ON_BENCH(null_mr__has_no_memory_and_no_rkey),
		ON_BENCH(reg_mr__the_whole_address_space),
		ON_BENCH(advise_mr__what_the_page_says),
		ON_BENCH(dmabuf_mr__is_what_the_descriptor_is),
		ON_BENCH(dm__sizes_offsets_and_regions),
		ON_BENCH(import__objects_of_another_context),
		ON_BENCH(import__owner_ends_first),
		ON_BENCH(parent_domain__stands_for_its_domain),
		ON_BENCH(parent_domain__allocators_make_the_queues),
		ON_BENCH(parent_domain__allocators_decline_or_fail),
		ON_BENCH(mw__alloc_and_bind_are_posted),
		ON_BENCH(mw__type_2_is_bound_by_post_send),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
