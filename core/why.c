/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of causes, and telling them (core/why.h). */
#include "core/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

// clang-format off
#define ROW(name, meaning, remedy) { WHY_##name, #name, meaning, remedy }
/* scripts/errors.py reads these rows. */
static const struct vb_why_row rows[] = {
ROW(RKEY_UNKNOWN, "A peer's request names a key that no region or window of this end has (any more).",
    "send the peer the rkey of a registered region, and deregister it only when the peer has finished"),
ROW(RKEY_DOMAIN, "A peer's request names a region of another protection domain than its queue pair's.",
    "register the region in the protection domain of the queue pair"),
ROW(RKEY_WINDOW, "A peer's request names a memory window that another queue pair has bound.",
    "bind the window on the queue pair by which the peer uses it"),
ROW(RKEY_BOUNDS, "A peer's request goes beyond the region that its key names.",
    "keep address and length inside the region, or register a larger one"),
ROW(RKEY_RIGHTS, "The region that a peer's request names does not permit the operation.",
    "register the region with the missing IBV_ACCESS_REMOTE_ flag"),
ROW(QP_ACCESS, "The queue pair's qp_access_flags do not permit the peer's operation.",
    "set the missing flag in qp_access_flags with ibv_modify_qp"),
ROW(REMOTE_PAGE, "A key permits a peer's access, but no memory is mapped there.",
    "keep the memory mapped while a key names it"),
ROW(RECV_SHORT, "A message is longer than the receive that was posted for it.",
    "post receives as long as the longest message"),
ROW(TOO_MANY_READS, "The peer sent more READs and atomics at a time than this end allows.",
    "set max_dest_rd_atomic here to at least the peer's max_rd_atomic"),
ROW(ALIGNMENT, "An atomic operation or ATOMIC WRITE has an address that is not a multiple of 8.",
    "give atomic operations addresses that are multiples of 8"),
ROW(PEER_PROTOCOL, "A request of the peer breaks the transport's rules.",
    "give both ends the same path_mtu, and look for another program that sends to this queue pair"),
ROW(MTU, "The two ends use packets of different lengths, mostly because their interfaces have different MTUs.",
    "docs/MTU.md says how the path MTU is chosen"),
ROW(RECV_KEY, "A posted receive names memory that it may not write.",
    "post receives with the lkey of a region that contains them and has IBV_ACCESS_LOCAL_WRITE"),
ROW(INVALIDATE, "A SEND with Invalidate, or a LOCAL_INV request, names a key that must not be invalidated.",
    "invalidate only a type 2 window that this queue pair has bound"),
ROW(XRC_SRQ, "An XRC message names a shared receive queue that is not there, or of another XRC domain.",
    "send the peer the number that ibv_get_srq_num returns, and keep the queue while the peer sends"),
ROW(QKEY, "A datagram has another Q_Key than its queue pair, and is dropped.",
    "send with the Q_Key that the receiver set with ibv_modify_qp"),
ROW(CQ_FULL, "A completion queue overran: the program polled too late, or the queue is too small.",
    "poll more often, or create the completion queue with more entries than work requests can be outstanding"),
ROW(RECV_NONE, "An iWARP peer sent a message for which no receive was posted; iWARP has no retry.",
    "post receives before the peer sends"),
ROW(XRC_FORWARD, "Another process of this host, which has the shared receive queue of an XRC request, refused the request.",
    "read what that process prints"),
ROW(REM_ACCESS, "The peer refused a request: its key, address, length or rights.",
    "compare rkey, address and length with what the peer registered; the peer prints which of them is wrong"),
ROW(REM_INVALID, "The peer refused a request as invalid: a message longer than the receive, an operation that its qp_access_flags do not permit, or too many READs.",
    "compare the length with the peer's receive, and the operation with its qp_access_flags and max_dest_rd_atomic; the peer prints which is wrong"),
ROW(REM_OPERATION, "The peer could not carry out a request, because of a mistake at its side.",
    "read what the peer prints: mostly one of its receives has a wrong lkey"),
ROW(RNR, "The peer had no receive posted, as often as rnr_retry allows.",
    "let the peer post receives before it is sent to, or set rnr_retry to 7 to wait without limit"),
ROW(SILENCE, "Nothing came back from the peer, as long as timeout and retry_cnt allow.",
    "is a program there that has connected this queue pair (its number, in RTR), and does a firewall drop UDP port 4791?"),
ROW(PSN, "The peer answers, but expects packets with other sequence numbers.",
    "set this end's sq_psn to the peer's rq_psn, and this end's rq_psn to the peer's sq_psn"),
ROW(LKEY_UNKNOWN, "A work request names an lkey that no region has (any more).",
    "use the lkey of a registered region, and deregister it only when the request has completed"),
ROW(LKEY_DOMAIN, "A work request names a region of another protection domain than its queue pair's.",
    "register the region in the protection domain of the queue pair"),
ROW(LKEY_BOUNDS, "A work request's buffer goes beyond the region that its lkey names.",
    "keep address and length of the SGE inside the region"),
ROW(LKEY_RIGHTS, "A work request lets data be written to a region without the right to it.",
    "register the region with IBV_ACCESS_LOCAL_WRITE"),
ROW(LKEY_WINDOW, "A work request names a memory window by its lkey.",
    "use the lkey of a region; windows are for peers only"),
ROW(LOCAL_PAGE, "An lkey permits a work request's buffer, but no memory is mapped there.",
    "keep the memory mapped until the request has completed"),
ROW(NO_READS, "A READ or atomic was posted to a queue pair whose max_rd_atomic is 0.",
    "set max_rd_atomic on the way to RTS, and the peer's max_dest_rd_atomic on its way to RTR"),
ROW(LENGTH, "A work request's message is too long, or has another length than its operation demands.",
    "datagrams hold at most the port's MTU, other messages 1 GiB, atomic operations 8 bytes"),
ROW(BIND, "A memory window could not be bound, or a key not invalidated.",
    "bind inside a region of the same protection domain that was registered with IBV_ACCESS_MW_BIND"),
ROW(BAD_RESPONSE, "The peer's response does not match the request.",
    "give both ends the same path_mtu, and look for another program that sends to this queue pair"),
ROW(TAGS, "An operation of tag matching failed.",
    "see tag matching in docs/TRANSPORTS.md"),
ROW(STREAM, "The TCP connection of an iWARP queue pair ended, or its peer terminated it.",
    "read what the peer prints, and whether its program still runs"),
ROW(OPERATION, "The queue pair's transport has no such operation.",
    "use an operation of the queue pair's type (ibv_post_send(3) has the table)"),
ROW(LOCAL, "A work request failed for a reason of this end that no other code names.",
    "run with VERBENA_LOG=info for more"),
ROW(SILENCE_IB, "Nothing came back from the peer over InfiniBand, as long as timeout and retry_cnt allow.",
    "is a program there that has connected this queue pair (its number, in RTR), is the destination's LID right, and does each port on the way have an active link (verbena fabric show, ibtracert)?"),
ROW(SILENCE_V1, "Nothing came back from the peer over RoCEv1, as long as timeout and retry_cnt allow.",
    "is a program there that has connected this queue pair (its number, in RTR, at a GID of RoCEv1), is the peer in the same Ethernet or VLAN, and does a switch drop Ethertype 0x8915?"),
ROW(TRANSITION, "ibv_modify_qp was asked for a transition between states that is none.",
    "move RESET to INIT to RTR to RTS, one call for each"),
ROW(ATTR_MISSING, "ibv_modify_qp was called without an attribute that the transition needs.",
    "set the attributes and add their IBV_QP_ bits to attr_mask"),
ROW(ATTR_EXTRA, "ibv_modify_qp was called with an attribute that the transition does not take.",
    "remove these IBV_QP_ bits from attr_mask"),
ROW(ATTR_RANGE, "An attribute of ibv_modify_qp has a value that is not allowed.",
    "give the attribute a value in the range that is printed, or one that ibv_query_qp or ibv_query_port returns"),
ROW(GID_INDEX, "An address names a sgid_index at which the port has no GID.",
    "choose an index that \"verbena devices\" or ibv_devinfo -v lists (ibv_*_pingpong: -g, perftest: -x)"),
ROW(ADDRESS, "An address vector is incomplete, or not one of the queue pair's port.",
    "set port_num to the queue pair's port; RoCE needs is_global and grh.dgid (a GID index at both ends: ibv_*_pingpong -g, perftest -x), InfiniBand dlid"),
ROW(ROUTE, "There is no route to an address.",
    "check the destination GID and the sgid_index, and that ping reaches the address"),
ROW(STATE, "A work request was posted in a state that permits no posting.",
    "move the queue pair to RTS before sends, to INIT before receives"),
ROW(SEND_FULL, "A work request was posted to a full send queue.",
    "poll completions first (unsignaled requests free their slots with the next signaled one), or create the queue pair with a larger max_send_wr"),
ROW(RECV_FULL, "A receive was posted to a full receive queue.",
    "poll completions first, or create the queue with a larger max_recv_wr or max_wr"),
ROW(INLINE, "A work request has more inline data than the queue pair takes.",
    "create the queue pair with a larger cap.max_inline_data, or drop IBV_SEND_INLINE"),
ROW(SGES, "A work request has more scatter/gather entries than its queue takes.",
    "create the queue with a larger max_send_sge, max_recv_sge or max_sge"),
ROW(OPCODE, "A work request's opcode is unknown, or not for this type of queue pair.",
    "use an operation of the queue pair's type (ibv_post_send(3) has the table)"),
ROW(FLAGS, "A work request has flags or fields that do not go together.",
    "see ibv_post_send(3) and ibv_bind_mw(3)"),
ROW(AH, "A datagram's address handle is missing, or of another protection domain.",
    "create the address handle in the protection domain of the queue pair"),
ROW(INLINE_ADDRESS, "Inline data lies at an address that is not mapped.",
    "point sg_list at memory that can be read"),
ROW(MESSAGE_LENGTH, "A posted message is too long, or has another length than its operation demands.",
    "messages hold at most 1 GiB, atomic operations 8 bytes"),
ROW(RECV_SRQ, "A receive was posted to a queue pair that takes its receives from a shared queue.",
    "post it to the shared receive queue with ibv_post_srq_recv"),
ROW(CREATE, "An object could not be created.",
    "compare the arguments with ibv_query_device's limits"),
ROW(LIMIT, "A limit is reached.",
    "destroy objects that are no longer used, or ask for less"),
ROW(REGISTER, "Memory could not be registered.",
    "register mapped memory of at least 1 byte, with IBV_ACCESS_LOCAL_WRITE where remote writes or atomics are allowed"),
ROW(HANDLE, "A verb was given something that is no object, or that was destroyed.",
    "check the pointer, and that the object is destroyed once only, after its last use"),
ROW(BUSY, "An object could not be destroyed, since others still use it.",
    "destroy queue pairs first, then completion and shared queues, regions, and the protection domain last"),
ROW(RESIZE, "A queue could not be resized.",
    "ask for at least as many entries as the queue holds, and for no more than ibv_query_device allows"),
ROW(NO_SUPPORT, "A function or flag is not supported by this device.",
    "docs/VERBS.md says what is"),
ROW(IWARP_MOVE, "A program moved a queue pair of an iWARP device, which only a connection of librdmacm moves.",
    "let the program connect by librdmacm (rdma_connect, rdma_accept; perftest: -R), or use a RoCE device"),
ROW(REFUSED, "A call was refused for a reason that no other code names.",
    "compare its arguments with its manual page"),
ROW(GROUP, "A queue pair could not enter or leave a multicast group.",
    "attach queue pairs of type UD only, and to a GID whose first byte is ff; detach them from groups that they are in"),
ROW(EVENTS, "An object is not destroyed yet: the program took events of it, and has not acknowledged them.",
    "acknowledge each event that was taken: ibv_ack_cq_events, ibv_ack_async_event"),
ROW(INDEX, "A port, or an entry of one of its tables, is not there.",
    "take port numbers up to phys_port_cnt of ibv_query_device, and indices below gid_tbl_len and pkey_tbl_len of ibv_query_port"),
ROW(CM_SILENCE, "A connection request was sent, and nothing came back.",
    "is a program there that uses RDMA of the same kind (RoCE, not iWARP), and does a firewall drop UDP port 4791?"),
ROW(CM_NOBODY, "A connection request was refused, because no program listens at the port.",
    "start the server first, and compare its port, its port space and its kind of device (RoCE or iWARP)"),
ROW(CM_ADDRESS, "An address could not be resolved to a device.",
    "give the address of an interface that \"verbena devices\" lists, or of a host behind one"),
ROW(CM_PORT, "A port could not be bound.",
    "choose another port, or end the program that has it"),
ROW(CM_CALL, "A call of librdmacm was refused.",
    "compare the order of calls with rdma_cm(7)"),
ROW(CM_PEER, "The peer rejected a connection request.",
    "read what the peer prints"),
ROW(CM_SILENCE_IB, "A connection request was sent over InfiniBand, and nothing came back.",
    "is a program there that uses RDMA, and does each port on the way have an active link (verbena fabric show, ibtracert)?"),
ROW(NO_SM, "A port of an InfiniBand device waits for a subnet manager.",
    "start a subnet manager on one node of the fabric (\"verbena run --device ib:NODE -- opensm\", or the fabric with \"verbena fabric --sm\"), or wait until it has found the port"),
ROW(PORT_DOWN, "A port of an InfiniBand device is not connected to a fabric that runs.",
    "compare \"verbena fabric show\": is the port's other end in the topology, and its link up?"),
ROW(UMAD, "A call of libibumad was refused.",
    "compare the adapter and port with what \"verbena doctor --device ib:NODE\" says, and class and methods with those of other agents"),
};
#undef ROW
// clang-format on

/* How often each cause was met at each object. A thread reserves an entry by a
 * compare-and-exchange, and no entry is freed; objects for which no entry is
 * left share one entry for each cause. No lock: a child of fork, a handler of a
 * signal and a thread that holds any lock may report a cause. */
#define MET 512
static struct {
	_Atomic uint64_t what;
	_Atomic uint32_t count;
} met[MET];
static _Atomic uint32_t crowd[VB_COUNT(rows)];

const struct vb_why_row *vb_why_row(unsigned why)
{
	for (size_t i = 0; i < VB_COUNT(rows); i++)
		if ((unsigned)rows[i].code == why)
			return &rows[i];
	return NULL;
}

bool vb_why_wanted(void)
{
	return vb_log_wants(LOG_WARN);
}

/* The result is never 0, since 0 marks a free entry. */
static uint64_t mix(uint64_t object, unsigned code)
{
	uint64_t x = (object ^ (uint64_t)code << 52) * 0x9e3779b97f4a7c15u;

	return (x ^ x >> 29) | 1;
}

static _Atomic uint32_t *why_count_of(const struct vb_why_row *row,
				    uint64_t object)
{
	uint64_t what = mix(object, row->code);

	for (unsigned probe = 0; probe < 8; probe++) {
		size_t at = (what >> 8) % MET;
		uint64_t free = 0;

		at = (at + probe) % MET;
		if (atomic_load(&met[at].what) == what ||
		    atomic_compare_exchange_strong(&met[at].what, &free, what) ||
		    free == what)
			return &met[at].count;
	}
	return &crowd[row - rows];
}

/* Is a cause reported when it is met for the @count-th time? Yes the first, the
 * 10th, the 100th time and so on. */
static bool is_told(uint32_t count)
{
	while (count >= 10 && count % 10 == 0)
		count /= 10;
	return count == 1;
}

void vb_why_quietly(const char *format, ...)
{
	char text[640];
	va_list args;

	vb_log_note();
	if (!vb_log_wants(LOG_INFO))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	vb_log(LOG_INFO, "%s", text);
}

/* Does @error say that the device lacks a feature? Programs call functions just
 * to find out which features a device has, so this is no mistake of theirs. */
static bool is_lack(int error)
{
	return error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS;
}

static bool is_limit(int error)
{
	return error == ENOMEM || error == ENOSPC || error == EMFILE ||
	       error == ENFILE || error == EAGAIN;
}

/* Write the public name of a function, which may have another name inside the
 * library (vb_front_poll_cq for ibv_poll_cq). */
static void put_call(const char *call, char name[64])
{
	static const char *const inside[] = { "vb_front_", "vb_newer_" };

	snprintf(name, 64, "%s", call);
	for (size_t i = 0; i < VB_COUNT(inside); i++)
		if (strncmp(call, inside[i], strlen(inside[i])) == 0)
			snprintf(name, 64, "ibv_%s", call + strlen(inside[i]));
	if (*name == '_')
		memmove(name, name + 1, strlen(name));
}

/* Returns which limit of the process an errno stands for, if it is one that the
 * user can raise; else "". */
static const char *raise_what(int error)
{
	if (error == EMFILE)
		return ": this program has as many descriptors as it may have; "
		       "raise RLIMIT_NOFILE (ulimit -n)";
	if (error == EAGAIN)
		return ": this user has as many threads as it may have; raise "
		       "RLIMIT_NPROC (ulimit -u)";
	return "";
}

/* Is @error normal for the function @name, so that it is not reported? EAGAIN
 * most often means that no event has come. Only ibv_open_device(), which starts
 * threads, returns EAGAIN for a limit on threads. */
static bool is_no_mistake(const char *name, int error)
{
	return error == EINTR ||
	       (error == EAGAIN && strcmp(name, "ibv_open_device") != 0);
}

void vb_why_refused(const char *call, int error)
{
	int saved = errno;
	char name[64];

	put_call(call, name);
	if (vb_log_take_note() || is_no_mistake(name, error))
		return;
	if (is_lack(error))
		vb_why_quietly("%s is refused: %s", name, strerror(error));
	else
		vb_why(is_limit(error) ? WHY_LIMIT : WHY_REFUSED,
		       (uintptr_t)call + (unsigned)error,
		       "%s is refused: %s%s", name, strerror(error),
		       raise_what(error));
	(void)vb_log_take_note();
	errno = saved;
}

void vb_why(enum vb_why why, uint64_t object, const char *format, ...)
{
	const struct vb_why_row *row = vb_why_row(why);
	char text[640], times[32] = "";
	int saved = errno;
	uint32_t count;
	va_list args;

	vb_log_note();
	if (!row || !vb_why_wanted())
		return;
	count = atomic_fetch_add(why_count_of(row, object), 1) + 1;
	if (!is_told(count))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (count > 1)
		snprintf(times, sizeof(times), " (%u times so far)", count);
	vb_log(LOG_WARN, "%s%s; %s [%d %s]", text, times, row->remedy,
	       (int)row->code, row->name);
	errno = saved;
}
