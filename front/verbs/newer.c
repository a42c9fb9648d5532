/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Public functions that are newer than the headers this library is compiled
 * with (versions IBVERBS_1.15 to 1.18), so that programs built on newer
 * distributions load and run. They are defined under other names and exported
 * by symbol version only, so their definitions cannot conflict with the
 * declarations of a newer header.
 */
#include "front/verbs/front.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/defs.h"

#define NAME(body, name, node)                                                 \
	__asm__(".symver vb_newer_" #body ", " #name "@@IBVERBS_" #node);

/* Refuses functions for what this adapter lacks: DMA handles (steering tags),
 * export of device memory as a dmabuf, and completion counters. */
VB_EXPORT int vb_newer_refuse(void);
int vb_newer_refuse(void)
{
	return vb_front_errno_of(-EOPNOTSUPP, "a call of a newer rdma-core");
}

VB_EXPORT void *vb_newer_null(void);
void *vb_newer_null(void)
{
	return vb_front_null_of(-EOPNOTSUPP, "a call of a newer rdma-core");
}

VB_EXPORT int vb_newer_no_fd(void);
int vb_newer_no_fd(void)
{
	return vb_front_minus(-EOPNOTSUPP);
}

VB_EXPORT int vb_newer_port_speed(struct ibv_context *context,
				  uint32_t port_num, uint64_t *speed);
int vb_newer_port_speed(struct ibv_context *context, uint32_t port_num,
			uint64_t *speed)
{
	if (!vb_adapter_port(vb_front_context(context)->adapter, port_num))
		return vb_front_errno(-EINVAL);
	*speed = vb_front_port_mbits(context, port_num) / 100;
	return 0;
}

/* Programs see struct ibv_buf as an incomplete type. */
struct vb_newer_buf {
	struct ibv_pd *pd;
	uint8_t *addr;
	size_t size;
};

VB_EXPORT void *vb_newer_alloc_buf(struct ibv_pd *pd, size_t size,
				   struct vb_newer_buf **buf);
void *vb_newer_alloc_buf(struct ibv_pd *pd, size_t size,
			 struct vb_newer_buf **buf)
{
	struct vb_newer_buf *b;
	void *addr;
	int err;

	if (size == 0)
		return vb_front_null(-EINVAL);
	b = malloc(sizeof(*b));
	if (!b)
		return vb_front_null(-ENOMEM);
	err = posix_memalign(&addr, (size_t)sysconf(_SC_PAGESIZE), size);
	if (err) {
		free(b);
		return vb_front_null(-err);
	}
	*b = (struct vb_newer_buf){ pd, addr, size };
	*buf = b;
	return addr;
}

VB_EXPORT void vb_newer_free_buf(struct vb_newer_buf *buf);
void vb_newer_free_buf(struct vb_newer_buf *buf)
{
	free(buf->addr);
	free(buf);
}

static bool is_inside(const struct vb_newer_buf *buf, const uint8_t *addr,
		      size_t length)
{
	return addr >= buf->addr && (size_t)(addr - buf->addr) <= buf->size &&
	       length <= buf->size - (size_t)(addr - buf->addr);
}

VB_EXPORT struct ibv_mr *vb_newer_reg_buf(struct ibv_pd *pd,
					  struct vb_newer_buf *buf, void *addr,
					  size_t length, int access);
struct ibv_mr *vb_newer_reg_buf(struct ibv_pd *pd, struct vb_newer_buf *buf,
				void *addr, size_t length, int access)
{
	if (pd->context != buf->pd->context || !is_inside(buf, addr, length))
		return vb_front_null(-EINVAL);
	return vb_front_register(pd, addr, length, (uintptr_t)addr,
				 (unsigned)access);
}

/* The layout of struct ibv_mr_init_attr in newer headers. */
struct vb_newer_mr_init {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct vb_newer_buf *buf;
};

enum { MR_IOVA = 1 << 0, MR_ADDR = 1 << 1, MR_BUF = 1 << 5 };

VB_EXPORT struct ibv_mr *vb_newer_reg_mr(struct ibv_pd *pd,
					 const struct vb_newer_mr_init *init);
struct ibv_mr *vb_newer_reg_mr(struct ibv_pd *pd,
			       const struct vb_newer_mr_init *init)
{
	uint64_t mask = init->comp_mask;
	uint64_t iova = mask & MR_IOVA ? init->iova : (uintptr_t)init->addr;

	if (mask & ~(uint64_t)(MR_IOVA | MR_ADDR | MR_BUF))
		return vb_front_null(-EOPNOTSUPP);
	if (!(mask & MR_ADDR))
		return vb_front_null(-EINVAL);
	if (mask & MR_BUF && !is_inside(init->buf, init->addr, init->length))
		return vb_front_null(-EINVAL);
	return vb_front_register(pd, init->addr, init->length, iova,
				 (unsigned)init->access);
}

// clang-format off
NAME(null,       ibv_alloc_dmah,            1.15)
NAME(refuse,     ibv_dealloc_dmah,          1.15)
NAME(reg_mr,     ibv_reg_mr_ex,             1.15)
NAME(no_fd,      ibv_dm_export_dmabuf_fd,   1.16)
NAME(port_speed, ibv_query_port_speed,      1.16)
NAME(alloc_buf,  ibv_alloc_buf,             1.17)
NAME(free_buf,   ibv_free_buf,              1.17)
NAME(reg_buf,    ibv_reg_buf_mr,            1.17)
NAME(refuse,     _ibv_query_comp_cntr_caps, 1.18)
NAME(null,       ibv_create_comp_cntr,      1.18)
NAME(refuse,     ibv_destroy_comp_cntr,     1.18)
NAME(no_fd,      ibv_export_buf_dmabuf_fd,  1.18)
NAME(refuse,     ibv_inc_comp_cntr,         1.18)
NAME(refuse,     ibv_inc_err_comp_cntr,     1.18)
NAME(refuse,     ibv_qp_attach_comp_cntr,   1.18)
NAME(refuse,     ibv_read_comp_cntr,        1.18)
NAME(refuse,     ibv_read_err_comp_cntr,    1.18)
NAME(refuse,     ibv_set_comp_cntr,         1.18)
NAME(refuse,     ibv_set_err_comp_cntr,     1.18)
// clang-format on
