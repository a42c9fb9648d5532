/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exported functions that the public header does not declare.
 *
 * The version IBVERBS_PRIVATE_n has the functions that rdma-core's own
 * libraries use: its hardware providers (libmlx5, libefa, which programs link
 * for their direct verbs) and librdmacm. n differs between rdma-core's
 * releases. If the loader misses a version or one of its names, it refuses the
 * library and the program with it. There is no kernel device here: a provider
 * registers itself, is never asked to open a device, and every command of it is
 * refused.
 *
 * The version IBVERBS_1.0 is for programs from before 2007. Most of its names
 * used structs of another layout and are absent (tests/abi/absent.txt). The
 * names below only pass pointers to devices.
 */
#include "front/verbs/front.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "front/verbs/private.h"

/*
 * Bodies of the functions. One body serves many names with different arguments,
 * which it ignores; the calling conventions of all supported processors allow
 * that.
 */

VB_EXPORT int vb_private_refuse(void);
int vb_private_refuse(void)
{
	return EOPNOTSUPP;
}

VB_EXPORT void *vb_private_null(void);
void *vb_private_null(void)
{
	return vb_front_null(-EOPNOTSUPP);
}

VB_EXPORT void vb_private_ignore(void);
void vb_private_ignore(void)
{
}

VB_EXPORT unsigned vb_private_no_attrs(void);
unsigned vb_private_no_attrs(void)
{
	return 0;
}

VB_EXPORT int vb_private_no_file(void);
int vb_private_no_file(void)
{
	return errno = ENOENT, -1;
}

VB_EXPORT int vb_private_gid_type(struct ibv_context *context, uint8_t port_num,
				  unsigned index, int *type);
int vb_private_gid_type(struct ibv_context *context, uint8_t port_num,
			unsigned index, int *type)
{
	return vb_front_gid_type(context, port_num, index, type);
}

VB_EXPORT const char *vb_private_wr_name(unsigned opcode);
const char *vb_private_wr_name(unsigned opcode)
{
	return vb_front_wr_name(opcode);
}

VB_EXPORT extern bool vb_private_allow_destroy;
bool vb_private_allow_destroy = false;

VB_EXPORT struct ibv_device **vb_private_get_device_list(int *num_devices);
struct ibv_device **vb_private_get_device_list(int *num_devices)
{
	return ibv_get_device_list(num_devices);
}

VB_EXPORT void vb_private_free_device_list(struct ibv_device **list);
void vb_private_free_device_list(struct ibv_device **list)
{
	ibv_free_device_list(list);
}

VB_EXPORT const char *vb_private_get_device_name(struct ibv_device *device);
const char *vb_private_get_device_name(struct ibv_device *device)
{
	return ibv_get_device_name(device);
}

VB_EXPORT __be64 vb_private_get_device_guid(struct ibv_device *device);
__be64 vb_private_get_device_guid(struct ibv_device *device)
{
	return ibv_get_device_guid(device);
}

/*
 * Define a name in a version. A version has the names of the rdma-core releases
 * that define it. Of several definitions of a name one is the default (@@), to
 * which the linker binds new programs; the others (@) are for programs linked
 * with other releases.
 */
#define NAME(body, name, node)                                                 \
	__asm__(".symver vb_private_" #body ", " #name node);

VB_PRIVATE_34(NAME, "@@IBVERBS_PRIVATE_34")
VB_PRIVATE_34(NAME, "@IBVERBS_PRIVATE_57")
VB_PRIVATE_34(NAME, "@IBVERBS_PRIVATE_59")
VB_PRIVATE_34(NAME, "@IBVERBS_PRIVATE_64")
VB_PRIVATE_34(NAME, "@IBVERBS_PRIVATE_65")
VB_PRIVATE_59(NAME, "@IBVERBS_PRIVATE_59")
VB_PRIVATE_59(NAME, "@IBVERBS_PRIVATE_64")
VB_PRIVATE_59(NAME, "@@IBVERBS_PRIVATE_65")
VB_PRIVATE_64(NAME, "@IBVERBS_PRIVATE_64")
VB_PRIVATE_64(NAME, "@@IBVERBS_PRIVATE_65")
VB_PRIVATE_65(NAME, "@@IBVERBS_PRIVATE_65")

NAME(refuse, ibv_cmd_query_device, "@@IBVERBS_PRIVATE_34")
NAME(ignore, verbs_register_driver_34, "@@IBVERBS_PRIVATE_34")
NAME(ignore, verbs_register_driver_57, "@@IBVERBS_PRIVATE_57")
NAME(ignore, verbs_register_driver_59, "@@IBVERBS_PRIVATE_59")
NAME(ignore, verbs_register_driver_64, "@@IBVERBS_PRIVATE_64")
NAME(ignore, verbs_register_driver_65, "@@IBVERBS_PRIVATE_65")

NAME(ignore, ibv_register_driver, "@IBVERBS_1.1")

NAME(get_device_list, ibv_get_device_list, "@IBVERBS_1.0")
NAME(free_device_list, ibv_free_device_list, "@IBVERBS_1.0")
NAME(get_device_name, ibv_get_device_name, "@IBVERBS_1.0")
NAME(get_device_guid, ibv_get_device_guid, "@IBVERBS_1.0")

/*
 * Conversions between the kernel's structs and the public ones, for librdmacm.
 */

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst,
				struct ib_uverbs_ah_attr *src);
VB_EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst,
					  struct ib_uverbs_ah_attr *src)
{
	*dst = (struct ibv_ah_attr){
		.grh = {
			.flow_label = src->grh.flow_label,
			.sgid_index = src->grh.sgid_index,
			.hop_limit = src->grh.hop_limit,
			.traffic_class = src->grh.traffic_class,
		},
		.dlid = src->dlid,
		.sl = src->sl,
		.src_path_bits = src->src_path_bits,
		.static_rate = src->static_rate,
		.is_global = src->is_global,
		.port_num = src->port_num,
	};
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid.raw));
}

/* Copy a queue pair's attributes. The kernel's struct has no rate limit and no
 * new state (its state is the current one), so those members of @dst stay as
 * they are. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
				struct ib_uverbs_qp_attr *src);
VB_EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
					  struct ib_uverbs_qp_attr *src)
{
	struct ibv_qp_attr a = {
		.qp_state = dst->qp_state,
		.cur_qp_state = (enum ibv_qp_state)src->cur_qp_state,
		.path_mtu = (enum ibv_mtu)src->path_mtu,
		.path_mig_state = (enum ibv_mig_state)src->path_mig_state,
		.qkey = src->qkey,
		.rq_psn = src->rq_psn,
		.sq_psn = src->sq_psn,
		.dest_qp_num = src->dest_qp_num,
		.qp_access_flags = src->qp_access_flags,
		.cap = {
			.max_send_wr = src->max_send_wr,
			.max_recv_wr = src->max_recv_wr,
			.max_send_sge = src->max_send_sge,
			.max_recv_sge = src->max_recv_sge,
			.max_inline_data = src->max_inline_data,
		},
		.pkey_index = src->pkey_index,
		.alt_pkey_index = src->alt_pkey_index,
		.en_sqd_async_notify = src->en_sqd_async_notify,
		.sq_draining = src->sq_draining,
		.max_rd_atomic = src->max_rd_atomic,
		.max_dest_rd_atomic = src->max_dest_rd_atomic,
		.min_rnr_timer = src->min_rnr_timer,
		.port_num = src->port_num,
		.timeout = src->timeout,
		.retry_cnt = src->retry_cnt,
		.rnr_retry = src->rnr_retry,
		.alt_port_num = src->alt_port_num,
		.alt_timeout = src->alt_timeout,
		.rate_limit = dst->rate_limit,
	};

	ibv_copy_ah_attr_from_kern(&a.ah_attr, &src->ah_attr);
	ibv_copy_ah_attr_from_kern(&a.alt_ah_attr, &src->alt_ah_attr);
	*dst = a;
}

/* Copy a path record. The two records have members of equal names and byte
 * order, but in another order and some of another width. */
#define COPY_PATH(dst, src)                                                    \
	do {                                                                   \
		(dst)->dlid = (src)->dlid;                                     \
		(dst)->slid = (src)->slid;                                     \
		(dst)->raw_traffic = (src)->raw_traffic;                       \
		(dst)->flow_label = (src)->flow_label;                         \
		(dst)->hop_limit = (src)->hop_limit;                           \
		(dst)->traffic_class = (src)->traffic_class;                   \
		(dst)->reversible = (src)->reversible;                         \
		(dst)->numb_path = (src)->numb_path;                           \
		(dst)->pkey = (src)->pkey;                                     \
		(dst)->sl = (src)->sl;                                         \
		(dst)->mtu_selector = (src)->mtu_selector;                     \
		(dst)->mtu = (src)->mtu;                                       \
		(dst)->rate_selector = (src)->rate_selector;                   \
		(dst)->rate = (src)->rate;                                     \
		(dst)->packet_life_time_selector =                             \
			(src)->packet_life_time_selector;                      \
		(dst)->packet_life_time = (src)->packet_life_time;             \
		(dst)->preference = (src)->preference;                         \
	} while (0)

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
				 struct ib_user_path_rec *src);
VB_EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
					   struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(src->dgid));
	memcpy(dst->sgid.raw, src->sgid, sizeof(src->sgid));
	COPY_PATH(dst, src);
}

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst,
			       struct ibv_sa_path_rec *src);
VB_EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst,
					 struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(dst->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(dst->sgid));
	COPY_PATH(dst, src);
}
