/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of rdma-core's private symbol versions, by the first version that
 * has them; each version also has the names of the versions before it.
 * X(body, name, node): the body is vb_private_<body> in private.c, and node is
 * the version.
 */
#ifndef FRONT_VERBS_PRIVATE_H
#define FRONT_VERBS_PRIVATE_H

// clang-format off
#define VB_PRIVATE_34(X, node) \
	X(refuse, execute_ioctl, node) \
	X(refuse, ibv_cmd_advise_mr, node) \
	X(refuse, ibv_cmd_alloc_dm, node) \
	X(refuse, ibv_cmd_alloc_mw, node) \
	X(refuse, ibv_cmd_alloc_pd, node) \
	X(refuse, ibv_cmd_attach_mcast, node) \
	X(refuse, ibv_cmd_close_xrcd, node) \
	X(refuse, ibv_cmd_create_ah, node) \
	X(refuse, ibv_cmd_create_counters, node) \
	X(refuse, ibv_cmd_create_cq, node) \
	X(refuse, ibv_cmd_create_cq_ex, node) \
	X(refuse, ibv_cmd_create_cq_ex2, node) \
	X(refuse, ibv_cmd_create_flow, node) \
	X(refuse, ibv_cmd_create_flow_action_esp, node) \
	X(refuse, ibv_cmd_create_qp, node) \
	X(refuse, ibv_cmd_create_qp_ex, node) \
	X(refuse, ibv_cmd_create_qp_ex2, node) \
	X(refuse, ibv_cmd_create_rwq_ind_table, node) \
	X(refuse, ibv_cmd_create_srq, node) \
	X(refuse, ibv_cmd_create_srq_ex, node) \
	X(refuse, ibv_cmd_create_wq, node) \
	X(refuse, ibv_cmd_dealloc_mw, node) \
	X(refuse, ibv_cmd_dealloc_pd, node) \
	X(refuse, ibv_cmd_dereg_mr, node) \
	X(refuse, ibv_cmd_destroy_ah, node) \
	X(refuse, ibv_cmd_destroy_counters, node) \
	X(refuse, ibv_cmd_destroy_cq, node) \
	X(refuse, ibv_cmd_destroy_flow, node) \
	X(refuse, ibv_cmd_destroy_flow_action, node) \
	X(refuse, ibv_cmd_destroy_qp, node) \
	X(refuse, ibv_cmd_destroy_rwq_ind_table, node) \
	X(refuse, ibv_cmd_destroy_srq, node) \
	X(refuse, ibv_cmd_destroy_wq, node) \
	X(refuse, ibv_cmd_detach_mcast, node) \
	X(refuse, ibv_cmd_free_dm, node) \
	X(refuse, ibv_cmd_get_context, node) \
	X(refuse, ibv_cmd_modify_cq, node) \
	X(refuse, ibv_cmd_modify_flow_action_esp, node) \
	X(refuse, ibv_cmd_modify_qp, node) \
	X(refuse, ibv_cmd_modify_qp_ex, node) \
	X(refuse, ibv_cmd_modify_srq, node) \
	X(refuse, ibv_cmd_modify_wq, node) \
	X(refuse, ibv_cmd_open_qp, node) \
	X(refuse, ibv_cmd_open_xrcd, node) \
	X(refuse, ibv_cmd_poll_cq, node) \
	X(refuse, ibv_cmd_post_recv, node) \
	X(refuse, ibv_cmd_post_send, node) \
	X(refuse, ibv_cmd_post_srq_recv, node) \
	X(refuse, ibv_cmd_query_context, node) \
	X(refuse, ibv_cmd_query_device_any, node) \
	X(refuse, ibv_cmd_query_mr, node) \
	X(refuse, ibv_cmd_query_port, node) \
	X(refuse, ibv_cmd_query_qp, node) \
	X(refuse, ibv_cmd_query_srq, node) \
	X(refuse, ibv_cmd_read_counters, node) \
	X(refuse, ibv_cmd_reg_dm_mr, node) \
	X(refuse, ibv_cmd_reg_dmabuf_mr, node) \
	X(refuse, ibv_cmd_reg_mr, node) \
	X(refuse, ibv_cmd_req_notify_cq, node) \
	X(refuse, ibv_cmd_rereg_mr, node) \
	X(refuse, ibv_cmd_resize_cq, node) \
	X(no_attrs, __ioctl_final_num_attrs, node) \
	X(ignore, __verbs_log, node) \
	X(null, _verbs_init_and_alloc_context, node) \
	X(gid_type, ibv_query_gid_type, node) \
	X(no_file, ibv_read_ibdev_sysfs_file, node) \
	X(wr_name, ibv_wr_opcode_str, node) \
	X(allow_destroy, verbs_allow_disassociate_destroy, node) \
	X(ignore, verbs_init_cq, node) \
	X(null, verbs_open_device, node) \
	X(ignore, verbs_set_ops, node) \
	X(ignore, verbs_uninit_context, node)

#define VB_PRIVATE_59(X, node) \
	X(refuse, ibv_cmd_alloc_dmah, node) \
	X(refuse, ibv_cmd_free_dmah, node) \
	X(refuse, ibv_cmd_reg_mr_ex, node)

#define VB_PRIVATE_64(X, node) \
	X(refuse, ibv_cmd_export_dmabuf_fd, node) \
	X(refuse, ibv_cmd_query_port_speed, node) \
	X(null, ibv_dmabuf_heap_alloc, node) \
	X(null, ibv_dmabuf_heap_cc_shared_init, node) \
	X(ignore, ibv_dmabuf_heap_destroy, node) \
	X(ignore, ibv_dmabuf_heap_free, node)

#define VB_PRIVATE_65(X, node) \
	X(refuse, ibv_cmd_create_comp_cntr, node) \
	X(refuse, ibv_cmd_destroy_comp_cntr, node) \
	X(refuse, ibv_cmd_inc_comp_cntr, node) \
	X(refuse, ibv_cmd_inc_err_comp_cntr, node) \
	X(refuse, ibv_cmd_qp_attach_comp_cntr, node) \
	X(refuse, ibv_cmd_query_comp_cntr_caps, node) \
	X(refuse, ibv_cmd_read_comp_cntr, node) \
	X(refuse, ibv_cmd_read_err_comp_cntr, node) \
	X(refuse, ibv_cmd_set_comp_cntr, node) \
	X(refuse, ibv_cmd_set_err_comp_cntr, node)
// clang-format on

#endif
