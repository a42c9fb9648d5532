/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls about memory that are refused: each must say why. */
#include "mistakes.h"

static void region_too_long(void)
{
	NOTHING(ibv_reg_mr(device.pd, a.memory, SIZE_MAX / 2 + 1, 0));
}

static void region_flags(void)
{
	NOTHING(ibv_reg_mr(device.pd, a.memory, 64, 1 << 15));
}

static void region_iova(void)
{
	NOTHING(ibv_reg_mr_iova(device.pd, a.memory, 8192, UINT64_MAX - 64, 0));
}

static void region_iova2(void)
{
	NOTHING(ibv_reg_mr_iova2(device.pd, a.memory, 64, 0, 1 << 15));
}

static void region_again(void)
{
	REFUSED(ibv_rereg_mr(a.mr, 0, NULL, NULL, 0, 0));
}

static void region_imported(void)
{
	NOTHING(ibv_import_mr(device.pd, 0x12345678));
}

static void domain_imported(void)
{
	NOTHING(ibv_import_pd(device.context, 0x12345678));
}

static void memory_imported(void)
{
	NOTHING(ibv_import_dm(device.context, 0x12345678));
}

static void dmabuf_of_stdin(void)
{
	NOTHING(ibv_reg_dmabuf_mr(device.pd, 8, 64, 0, STDIN_FILENO, 0));
}

static void dmabuf_probe(void)
{
	NOTHING(ibv_reg_dmabuf_mr(device.pd, 0, 4096, 0, -1, 0));
}

static void region_with_window(void)
{
	struct ibv_mr *mr = ibv_reg_mr(device.pd, a.memory, BYTES,
				       RC_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(device.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)a.memory, 64,
			       IBV_ACCESS_REMOTE_READ },
	};
	struct ibv_wc wc;

	must(mr && mw, "ibv_reg_mr and ibv_alloc_mw");
	connected();
	must(!ibv_bind_mw(a.qp, mw, &bind), "ibv_bind_mw");
	must(rc_wait(a.cq, WAIT, &wc) && !wc.status, "the window");
	REFUSED(ibv_dereg_mr(mr));
}

static void window_flags(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(device.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_INLINE };

	must(mw, "ibv_alloc_mw");
	connected();
	REFUSED(ibv_bind_mw(a.qp, mw, &bind));
}

static void window_type(void)
{
	NOTHING(ibv_alloc_mw(device.pd, (enum ibv_mw_type)7));
}

static void advice_flags(void)
{
	struct ibv_sge sge = piece(&a, 0, 8);

	REFUSED(ibv_advise_mr(device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1 << 9,
			      &sge, 1));
}

static struct ibv_dm *some_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(device.context, &attr);

	must(dm, "ibv_alloc_dm");
	return dm;
}

static void dm_too_large(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 1ull << 40 };

	NOTHING(ibv_alloc_dm(device.context, &attr));
}

static void dm_odd(void)
{
	char bytes[8] = "";

	REFUSED(ibv_memcpy_to_dm(some_dm(), 2, bytes, 4));
}

static void dm_past(void)
{
	char bytes[128];

	REFUSED(ibv_memcpy_from_dm(bytes, some_dm(), 0, 128));
}

static void dm_not_zero_based(void)
{
	NOTHING(ibv_reg_dm_mr(device.pd, some_dm(), 0, 64, 0));
}

static void dm_in_use(void)
{
	struct ibv_dm *dm = some_dm();

	must(ibv_reg_dm_mr(device.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED),
	     "ibv_reg_dm_mr");
	REFUSED(ibv_free_dm(dm));
}

#define V "^verbena: "
#define DEVICE V "[a-z0-9_]+"

const struct mistake memory_mistakes[] = {
	{ "a region longer than all memory", region_too_long, ON_CALLS,
	  { V "pd [0-9]+: cannot register 9223.* bytes .*too long.*321" } },
	{ "a region with unknown flags", region_flags, ON_CALLS,
	  { V "pd .*cannot register 64 bytes .*0x8000.*unknown bits.*321" } },
	{ "an iova that wraps", region_iova, ON_CALLS,
	  { V "pd .*cannot register 8192 bytes .*beyond the end.*321" } },
	{ "unknown flags with iova", region_iova2, ON_CALLS,
	  { V "pd .*cannot register 64 bytes .*unknown bits.*321" } },
	{ "a region changed in nothing", region_again, ON_CALLS,
	  { V "mr 0x[0-9a-f]+: cannot re-register .*flags 0x0.*321" } },
	{ "an unknown region imported", region_imported, ON_CALLS,
	  { V "pd [0-9]+: cannot import a region: .*0x12345678;.*322" } },
	{ "an unknown domain imported", domain_imported, ON_CALLS,
	  { DEVICE ": cannot import protection domain 305419896: .*322" } },
	{ "unknown device memory imported", memory_imported, ON_CALLS,
	  { DEVICE ": cannot import device memory 305419896: .*322" } },
	{ "a dmabuf that is none", dmabuf_of_stdin, ON_CALLS,
	  { V "pd [0-9]+: cannot register the dmabuf fd 0, 64.*321" } },
	{ "a question for dmabufs", dmabuf_probe, ON_CALLS, { NULL } },
	{ "a region with a window deregistered", region_with_window, ON_CALLS,
	  { V "mr 0x[0-9a-f]+: not deregistered: memory windows.*323" } },
	{ "a window bound with wrong flags", window_flags, ON_CALLS,
	  { V "qp .*ibv_bind_mw .*with flags other than .*314 FLAGS" } },
	{ "a window of no type", window_type, ON_CALLS,
	  { V "pd [0-9]+: cannot allocate a memory window of type 7: .*319" } },
	{ "advice with wrong flags", advice_flags, ON_CALLS,
	  { V "pd [0-9]+: ibv_advise_mr of 1 ranges .*0x200: .*327" } },
	{ "too much device memory", dm_too_large, ON_CALLS,
	  { DEVICE ": cannot allocate 1099511627776 bytes .*at most.*320" } },
	{ "an odd offset of device memory", dm_odd, ON_CALLS,
	  { V "ibv_memcpy_to_dm of 4 bytes at offset 2: .*multiples of 4" } },
	{ "a copy past device memory", dm_past, ON_CALLS,
	  { V "ibv_memcpy_from_dm of 128 bytes at offset 0: .*beyond" } },
	{ "device memory not zero based", dm_not_zero_based, ON_CALLS,
	  { V "pd .*cannot register 64 bytes from .*ZERO_BASED;.*321" } },
	{ "device memory in use", dm_in_use, ON_CALLS,
	  { V "dm [0-9]+: not freed: .*323 BUSY" } },
};
const unsigned memory_mistake_count =
	sizeof(memory_mistakes) / sizeof(memory_mistakes[0]);
