/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a NETLINK_RDMA request, finds the command's handler, and writes the
 * answer's datagrams in order. */
#include "front/netlink/answer.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>

#include "front/netlink/entries.h"

/* Numbers that are also in the files of sysfs (engine/sysfs_text.c). */
#define VERBS_DRIVER_ABI 1
#define MAD_ABI		 5

struct asked {
	struct nlmsghdr head;
	unsigned client, command;
	bool dump;
	const uint8_t *attrs;
	uint32_t length; /* length of @attrs in bytes */
};

/* The state of making one datagram of an answer. */
struct answer {
	const struct vb_nl_request *request;
	const struct vb_nl_facts *facts;
	struct asked asked;
	struct vb_nl_cursor *cursor;
	struct vb_nl_out out;
};

/* Functions that read a request. */

size_t vb_nl_split(const uint8_t *bytes, size_t length,
		   struct vb_nl_request *request)
{
	struct nlmsghdr head;

	if (length < sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > length)
		return 0;
	request->bytes = bytes;
	request->length = head.nlmsg_len;
	return VB_MIN(length, ((size_t)head.nlmsg_len + 3) & ~(size_t)3);
}

static struct asked read_asked(const struct vb_nl_request *r)
{
	struct asked a = { 0 };

	memcpy(&a.head, r->bytes, sizeof(a.head));
	a.client = RDMA_NL_GET_CLIENT(a.head.nlmsg_type);
	a.command = RDMA_NL_GET_OP(a.head.nlmsg_type);
	a.dump = (a.head.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	a.attrs = r->bytes + NLMSG_HDRLEN;
	a.length = r->length - NLMSG_HDRLEN;
	return a;
}

/* Find the attribute @type; if there are several, the last one counts. Returns
 * its value, which has @length bytes, or NULL. */
static const uint8_t *find(const struct asked *a, uint16_t type,
			   uint32_t *length)
{
	const uint8_t *found = NULL;
	struct nlattr attr;

	for (uint32_t at = 0; a->length - at >= sizeof(attr);) {
		memcpy(&attr, a->attrs + at, sizeof(attr));
		if (attr.nla_len < sizeof(attr) ||
		    attr.nla_len > a->length - at)
			break;
		if ((attr.nla_type & NLA_TYPE_MASK) == type) {
			found = a->attrs + at + NLA_HDRLEN;
			*length = attr.nla_len - NLA_HDRLEN;
		}
		at += VB_MIN(vb_nl_align(attr.nla_len), a->length - at);
	}
	return found;
}

static bool get32(const struct asked *a, uint16_t type, uint32_t *value)
{
	uint32_t length = 0;
	const uint8_t *at = find(a, type, &length);

	if (!at || length < sizeof(*value))
		return false;
	memcpy(value, at, sizeof(*value));
	return true;
}

static bool has_text(const struct asked *a, uint16_t type, const char *text)
{
	uint32_t length = 0;
	const uint8_t *at = find(a, type, &length);

	return at && length >= strlen(text) &&
	       memcmp(at, text, strlen(text)) == 0 &&
	       (length == strlen(text) || at[strlen(text)] == '\0');
}

static const struct vb_nl_device *answer_device_of(const struct answer *a)
{
	const struct vb_nl_facts *f = a->facts;
	uint32_t index;

	if (!get32(&a->asked, RDMA_NLDEV_ATTR_DEV_INDEX, &index))
		return NULL;
	for (unsigned i = 0; i < f->count; i++)
		if (f->devices[i].index == index)
			return &f->devices[i];
	return NULL;
}

/* Read the request's port; *@port is 0 when the request names none. False: the
 * device has no such port. */
static bool port_of(const struct answer *a, uint32_t *port)
{
	const struct vb_nl_device *d = answer_device_of(a);

	*port = 0;
	return !get32(&a->asked, RDMA_NLDEV_ATTR_PORT_INDEX, port) ||
	       (*port >= 1 && d && *port <= d->ports);
}

/* Functions that write the messages of an answer. */

/* Begin a message. Returns its offset in the datagram, for answer_end(). */
static uint32_t answer_begin(struct answer *a, uint16_t type, uint16_t flags)
{
	const struct nlmsghdr head = {
		.nlmsg_type = type,
		.nlmsg_flags = flags,
		.nlmsg_seq = a->asked.head.nlmsg_seq,
		.nlmsg_pid = a->request->portid,
	};
	uint32_t at = a->out.used;
	void *to = vb_nl_room(&a->out, sizeof(head));

	if (to)
		memcpy(to, &head, sizeof(head));
	return at;
}

static uint32_t begin_reply(struct answer *a)
{
	return answer_begin(a, a->asked.head.nlmsg_type,
			    a->asked.dump ? NLM_F_MULTI : 0);
}

/* End the message that began at @at: write its length. False: the datagram had
 * no room for the whole message, which this function has removed. */
static bool answer_end(struct answer *a, uint32_t at)
{
	const uint32_t length = a->out.used - at;

	if (a->out.full) {
		vb_nl_back(&a->out, at);
		return false;
	}
	memcpy(a->out.bytes + at, &length, sizeof(length));
	return true;
}

/* Returns a sentence for the user about EOPNOTSUPP, which iproute2 prints after
 * "Error: "; NULL for other errors. */
static const char *reason(const struct answer *a, int error)
{
	if (error != -EOPNOTSUPP)
		return NULL;
	switch (a->asked.command) {
	case RDMA_NLDEV_CMD_NEWLINK:
	case RDMA_NLDEV_CMD_DELLINK:
		return "Verbena makes a device for each network interface; "
		       "set VERBENA_DEVICES to choose among them.";
	case RDMA_NLDEV_CMD_RES_CM_ID_GET:
		return "Verbena does not list connections of librdmacm "
		       "(cm_id).";
	default:
		return "The names and settings of Verbena's devices cannot "
		       "be changed.";
	}
}

/* Write NLMSG_ERROR, with @error a negative errno, or 0 for an acknowledgement.
 */
static void put_error(struct answer *a, int error)
{
	const struct vb_nl_request *r = a->request;
	const char *why = r->ext_ack ? reason(a, error) : NULL;
	/* The error message repeats the request, if that is short enough. */
	bool capped = r->cap_ack || error == 0 || r->length > VB_NL_REQUEST;
	uint32_t echo = capped ? NLMSG_HDRLEN : r->length, at;
	uint8_t *to;

	at = answer_begin(a, NLMSG_ERROR,
			  (uint16_t)((capped ? NLM_F_CAPPED : 0) |
				     (why ? NLM_F_ACK_TLVS : 0)));
	to = vb_nl_room(&a->out, (uint32_t)sizeof(error) + echo);
	if (to) {
		memcpy(to, &error, sizeof(error));
		memcpy(to + sizeof(error), r->bytes, echo);
	}
	if (why)
		vb_nl_puts(&a->out, NLMSGERR_ATTR_MSG, why);
	(void)answer_end(a, at);
	a->cursor->done = true;
}

/* End a list. If there is no room for NLMSG_DONE, the list stays unfinished,
 * and the next datagram has only NLMSG_DONE. */
static void put_done(struct answer *a)
{
	const int32_t status = 0;
	uint32_t at = answer_begin(a, NLMSG_DONE, NLM_F_MULTI);
	void *to = vb_nl_room(&a->out, sizeof(status));

	if (to)
		memcpy(to, &status, sizeof(status));
	a->cursor->done = answer_end(a, at);
}

/*
 * Handlers of commands. A handler writes its one message, or, of a list, as
 * many messages as there is room for, beginning at cursor->next. Returns 0 or
 * -errno.
 */

typedef void (*put_device)(struct vb_nl_out *o, const struct vb_nl_facts *f,
			   const struct vb_nl_device *d);

static void whole_device(struct vb_nl_out *o, const struct vb_nl_facts *f,
			 const struct vb_nl_device *d)
{
	vb_nl_put_device(o, d);
}

static int put_one(struct answer *a, const struct vb_nl_device *d,
		   put_device put)
{
	uint32_t at;

	if (!d)
		return -EINVAL;
	at = begin_reply(a);
	put(&a->out, a->facts, d);
	return answer_end(a, at) ? 0 : -EMSGSIZE;
}

/* Write a message for each device. cursor->next is an index of facts->devices,
 * which have the same order in every call. */
static int put_all(struct answer *a, put_device put)
{
	const struct vb_nl_facts *f = a->facts;
	struct vb_nl_cursor *c = a->cursor;

	for (; c->next < f->count; c->next++)
		if (put_one(a, &f->devices[c->next], put))
			return 0;
	put_done(a);
	return 0;
}

static int get_device(struct answer *a)
{
	return a->asked.dump ? put_all(a, whole_device)
			     : put_one(a, answer_device_of(a), whole_device);
}

static int get_summary(struct answer *a)
{
	return a->asked.dump
		       ? put_all(a, vb_nl_put_summary)
		       : put_one(a, answer_device_of(a), vb_nl_put_summary);
}

typedef void (*put_of_port)(struct vb_nl_out *o, const struct vb_nl_facts *f,
			    const struct vb_nl_device *d, uint32_t port);

static void whole_port(struct vb_nl_out *o, const struct vb_nl_facts *f,
		       const struct vb_nl_device *d, uint32_t port)
{
	vb_nl_put_port(o, d, port);
}

static int put_port(struct answer *a, uint32_t port, put_of_port put)
{
	uint32_t at = begin_reply(a);

	put(&a->out, a->facts, answer_device_of(a), port);
	return answer_end(a, at) ? 0 : -EMSGSIZE;
}

/* Write the port of the device that the request names; or, of a list, all its
 * ports. */
static int get_port(struct answer *a)
{
	const struct vb_nl_device *d = answer_device_of(a);
	struct vb_nl_cursor *c = a->cursor;
	uint32_t port;

	if (!d || !port_of(a, &port) || (port == 0 && !a->asked.dump))
		return -EINVAL;
	if (!a->asked.dump)
		return put_port(a, port, whole_port);
	for (; c->next < d->ports; c->next++)
		if (put_port(a, (uint32_t)c->next + 1, whole_port))
			return 0;
	put_done(a);
	return 0;
}

static int get_system(struct answer *a)
{
	uint32_t at = begin_reply(a);

	vb_nl_put_system(&a->out);
	(void)answer_end(a, at);
	if (a->asked.dump)
		put_done(a);
	return 0;
}

/* Write the counters of a port. There are no counters of single queue pairs or
 * regions: their lists are empty, and their mode is 0, not bound. */
static int get_statistics(struct answer *a)
{
	uint32_t port, of, at;

	if (!port_of(a, &port) || !answer_device_of(a))
		return -EINVAL;
	if (!get32(&a->asked, RDMA_NLDEV_ATTR_STAT_RES, &of))
		return port && !a->asked.dump
			       ? put_port(a, port, vb_nl_put_counters)
			       : -EINVAL;
	if (a->asked.dump) {
		put_done(a);
		return 0;
	}
	if (of != RDMA_NLDEV_ATTR_RES_QP || !port)
		return -EINVAL;
	at = begin_reply(a);
	vb_nl_put_handle(&a->out, answer_device_of(a));
	vb_nl_put32(&a->out, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	vb_nl_put32(&a->out, RDMA_NLDEV_ATTR_STAT_MODE, 0);
	(void)answer_end(a, at);
	return 0;
}

static const struct vb_nl_kind *kind_of(unsigned command)
{
	for (unsigned i = 0; i < vb_nl_kind_count; i++)
		if (vb_nl_kinds[i].command == command)
			return &vb_nl_kinds[i];
	return NULL;
}

static bool is_wanted(const struct vb_nl_kind *k,
		      const struct vb_census_row *row,
		      const struct vb_nl_device *d, uint32_t port)
{
	return row->kind == k->kind && strcmp(row->device, d->name) == 0 &&
	       (port == 0 || row->port == port);
}

static int get_object(struct answer *a, const struct vb_nl_kind *k,
		      const struct vb_nl_device *d)
{
	const struct vb_census *c = &a->facts->census;
	uint32_t id, at;

	if (!get32(&a->asked, k->id, &id))
		return -EINVAL;
	for (unsigned i = 0; i < c->count; i++) {
		const struct vb_census_row *row = &c->rows[i];

		if (!is_wanted(k, row, d, 0) || vb_nl_id(row) != id)
			continue;
		at = begin_reply(a);
		vb_nl_put_handle(&a->out, d);
		k->put(&a->out, a->facts, row);
		return answer_end(a, at) ? 0 : -EMSGSIZE;
	}
	return -ENOENT;
}

/* Write as many objects of the kind @k as the message has room for. Returns
 * true if the list of objects is complete. */
static bool put_entries(struct answer *a, const struct vb_nl_kind *k,
			const struct vb_nl_device *d, uint32_t port)
{
	const struct vb_census *c = &a->facts->census;
	struct vb_nl_out *o = &a->out;

	for (unsigned i = 0; i < c->count; i++) {
		const struct vb_census_row *row = &c->rows[i];
		uint32_t at = o->used, entry;

		if (!is_wanted(k, row, d, port) ||
		    vb_nl_id(row) < a->cursor->next)
			continue;
		entry = vb_nl_open(o, k->entry);
		k->put(o, a->facts, row);
		vb_nl_close(o, entry);
		if (o->full) {
			vb_nl_back(o, at);
			return false;
		}
		a->cursor->next = (uint64_t)vb_nl_id(row) + 1;
	}
	return true;
}

static void list_objects(struct answer *a, const struct vb_nl_kind *k,
			 const struct vb_nl_device *d, uint32_t port)
{
	const uint64_t from = a->cursor->next;
	uint32_t at = begin_reply(a), table;
	bool all;

	vb_nl_put_handle(&a->out, d);
	table = vb_nl_open(&a->out, k->table);
	all = put_entries(a, k, d, port);
	vb_nl_close(&a->out, table);
	/* Remove a message that has no entries. */
	if (a->cursor->next == from)
		vb_nl_back(&a->out, at);
	else
		(void)answer_end(a, at);
	if (all)
		put_done(a);
}

static int get_objects(struct answer *a)
{
	const struct vb_nl_kind *k = kind_of(a->asked.command);
	const struct vb_nl_device *d = answer_device_of(a);
	uint32_t port;

	if (!d || !port_of(a, &port))
		return -EINVAL;
	if (!a->asked.dump)
		return !!port == k->by_port ? get_object(a, k, d) : -EINVAL;
	list_objects(a, k, d, port);
	return 0;
}

/* Write which counters can be switched on and off: there are none. */
static int get_switches(struct answer *a)
{
	uint32_t port;

	if (!port_of(a, &port) || !port || a->asked.dump)
		return -EINVAL;
	return put_port(a, port, vb_nl_put_switches);
}

/* Write the character device for the client (uverbs, umad) that the request
 * names. The connection manager's device belongs to no RDMA device and is not
 * reported. */
static int get_chardev(struct answer *a)
{
	const struct vb_nl_device *d = answer_device_of(a);
	bool verbs =
		has_text(&a->asked, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
	const struct vb_nl_node *node;
	uint32_t at, port;

	if (!d || !port_of(a, &port))
		return -EINVAL;
	node = verbs ? &d->verbs : &d->port[port ? port - 1 : 0].mad;
	if (!node->name[0] ||
	    (!verbs &&
	     !has_text(&a->asked, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "umad")))
		return -ENOENT;
	at = begin_reply(a);
	vb_nl_put64(&a->out, RDMA_NLDEV_ATTR_CHARDEV, node->number);
	vb_nl_put64(&a->out, RDMA_NLDEV_ATTR_CHARDEV_ABI,
		    verbs ? VERBS_DRIVER_ABI : MAD_ABI);
	vb_nl_puts(&a->out, RDMA_NLDEV_ATTR_CHARDEV_NAME, node->name);
	return answer_end(a, at) ? 0 : -EMSGSIZE;
}

static int answer_refuse(struct answer *a)
{
	return -EOPNOTSUPP;
}

static const struct command {
	int (*answer)(struct answer *a);
	unsigned need;
} commands[] = {
	[RDMA_NLDEV_CMD_GET] = { get_device, NEED_DEVICES },
	[RDMA_NLDEV_CMD_SET] = { answer_refuse },
	[RDMA_NLDEV_CMD_NEWLINK] = { answer_refuse },
	[RDMA_NLDEV_CMD_DELLINK] = { answer_refuse },
	[RDMA_NLDEV_CMD_PORT_GET] = { get_port, NEED_DEVICES },
	[RDMA_NLDEV_CMD_SYS_GET] = { get_system },
	[RDMA_NLDEV_CMD_SYS_SET] = { answer_refuse },
	[RDMA_NLDEV_CMD_RES_GET] = { get_summary, NEED_DEVICES | NEED_SUMS },
	[RDMA_NLDEV_CMD_RES_QP_GET] = { get_objects, NEED_DEVICES | NEED_ROWS },
	[RDMA_NLDEV_CMD_RES_CM_ID_GET] = { answer_refuse },
	[RDMA_NLDEV_CMD_RES_CQ_GET] = { get_objects, NEED_DEVICES | NEED_ROWS },
	[RDMA_NLDEV_CMD_RES_MR_GET] = { get_objects, NEED_DEVICES | NEED_ROWS },
	[RDMA_NLDEV_CMD_RES_PD_GET] = { get_objects, NEED_DEVICES | NEED_ROWS },
	[RDMA_NLDEV_CMD_GET_CHARDEV] = { get_chardev, NEED_DEVICES },
	[RDMA_NLDEV_CMD_STAT_SET] = { answer_refuse },
	[RDMA_NLDEV_CMD_STAT_GET] = { get_statistics,
				      NEED_DEVICES | NEED_COUNTERS },
	[RDMA_NLDEV_CMD_STAT_DEL] = { answer_refuse },
	[RDMA_NLDEV_CMD_STAT_GET_STATUS] = { get_switches, NEED_DEVICES },
	[RDMA_NLDEV_CMD_RES_CTX_GET] = { get_objects,
					 NEED_DEVICES | NEED_ROWS },
	[RDMA_NLDEV_CMD_RES_SRQ_GET] = { get_objects,
					 NEED_DEVICES | NEED_ROWS },
};

static const struct command *command_of(const struct asked *a)
{
	if (a->client != RDMA_NL_NLDEV || a->command >= VB_COUNT(commands) ||
	    !commands[a->command].answer)
		return NULL;
	return &commands[a->command];
}

unsigned vb_nl_needs(const struct vb_nl_request *request)
{
	struct asked asked = read_asked(request);
	const struct command *c = command_of(&asked);

	return c ? c->need : 0;
}

/* Is the message a request to the RDMA subsystem? Other messages, and netlink's
 * own types, are only acknowledged. */
static bool is_for_us(const struct asked *a)
{
	return a->head.nlmsg_flags & NLM_F_REQUEST &&
	       a->head.nlmsg_type >= NLMSG_MIN_TYPE;
}

static struct answer begin_answer(const struct vb_nl_request *request,
				  const struct vb_nl_facts *facts,
				  struct vb_nl_cursor *cursor, uint8_t *to)
{
	return (struct answer){
		.request = request,
		.facts = facts,
		.asked = read_asked(request),
		.cursor = cursor,
		.out = { .bytes = to, .room = VB_NL_ANSWER },
	};
}

size_t vb_nl_refuse(const struct vb_nl_request *request, int error,
		    struct vb_nl_cursor *cursor, uint8_t *to)
{
	struct answer a = begin_answer(request, NULL, cursor, to);

	put_error(&a, error);
	return a.out.used;
}

static int carry_out(struct answer *a)
{
	const struct command *c = command_of(&a->asked);

	if (a->request->length > VB_NL_REQUEST)
		return -EMSGSIZE;
	return c ? c->answer(a) : -EINVAL;
}

/* Write an answer. The answer to a single request is one datagram, and its
 * acknowledgement a second one. A list is acknowledged by its NLMSG_DONE. */
size_t vb_nl_answer(const struct vb_nl_request *request,
		    const struct vb_nl_facts *facts,
		    struct vb_nl_cursor *cursor, uint8_t *to)
{
	struct answer a = begin_answer(request, facts, cursor, to);
	bool wants_ack = a.asked.head.nlmsg_flags & NLM_F_ACK;
	int rc = 0;

	if (cursor->done)
		return 0;
	if (is_for_us(&a.asked) && cursor->step == 0)
		rc = carry_out(&a);
	if (rc) {
		a.out.used = 0;
		put_error(&a, rc);
	} else if (a.asked.dump && is_for_us(&a.asked)) {
		return a.out.used;
	} else if (cursor->step++ == 0 && a.out.used) {
		cursor->done = !wants_ack;
	} else if (wants_ack) {
		put_error(&a, 0);
	} else {
		cursor->done = true;
	}
	return a.out.used;
}
