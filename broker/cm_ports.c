/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of ports does not list ports but counts them. For each port number,
 * one counter counts the ports bound to each kind of address, and another one
 * those bound to each single address; ports with a secret are also counted in a
 * second set of counters, by secret. So each question about a port adds up a
 * few counters, however many ports are bound.
 */
#include "broker/cm_ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rand.h"

#define RANGE	     "/proc/sys/net/ipv4/ip_local_port_range"
#define RESERVED     "/proc/sys/net/ipv4/ip_local_reserved_ports"
#define RANGE_FIRST  32768
#define RANGE_LAST   60999
#define SETTING_SIZE 4096

/* Opens the settings and keeps them open, since they belong to the network
 * namespace in which they were opened. */
void vb_cm_ports_init(struct vb_cm_ports *t)
{
	memset(t, 0, sizeof(*t));
	t->key = (uint64_t)vb_rand32() << 32 | vb_rand32();
	t->range_fd = open(RANGE, O_RDONLY | O_CLOEXEC);
	t->reserved_fd = open(RESERVED, O_RDONLY | O_CLOEXEC);
}

/* Reads a setting. @text is empty if the setting cannot be read. */
static void read_setting(int fd, char text[SETTING_SIZE])
{
	ssize_t n = fd >= 0 ? pread(fd, text, SETTING_SIZE - 1, 0) : 0;

	text[VB_MAX(n, 0)] = '\0';
}

static void read_range(const struct vb_cm_ports *t, unsigned *first,
		       unsigned *last)
{
	char text[SETTING_SIZE];

	read_setting(t->range_fd, text);
	if (sscanf(text, "%u %u", first, last) == 2 && *first > 0 &&
	    *first <= *last && *last <= UINT16_MAX)
		return;
	*first = RANGE_FIRST;
	*last = RANGE_LAST;
}

/* Is port @number reserved? @text is what the kernel writes, such as
 * "8080,9148-9150". */
static bool is_reserved(const char *text, unsigned number)
{
	while (*text >= '0' && *text <= '9') {
		char *at;
		unsigned long first = strtoul(text, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		if (number >= first && number <= last)
			return true;
		text = at + (*at == ',');
	}
	return false;
}

/* The kind of address to which a port is bound: a single IPv4 or IPv6 address,
 * any address of one family, or any address at all. */
enum kind { ONE4, ONE6, ANY4, ANY6, ANY, KINDS };

// clang-format off
/* Do ports of two kinds at one number conflict? Two ports of ONE4, or of ONE6,
 * do so only if their addresses are equal. */
static const bool meets[KINDS][KINDS] = {
	[ONE4] = { [ONE4] = true, [ANY4] = true, [ANY] = true },
	[ONE6] = { [ONE6] = true, [ANY6] = true, [ANY] = true },
	[ANY4] = { [ONE4] = true, [ANY4] = true, [ANY] = true },
	[ANY6] = { [ONE6] = true, [ANY6] = true, [ANY] = true },
	[ANY]  = { true, true, true, true, true },
};
// clang-format on

struct key {
	uint16_t space, number;
	enum kind kind;
	/* the key is for all addresses of its kind; otherwise only for
	 * @address */
	bool whole;
	struct vb_gid address; /* the address; zero if @whole */
	/* the secret of the ports; 0: ports with any secret or none */
	uint64_t secret;
};

struct sums {
	unsigned bound;
	/* How many of the @bound ports exclude a further port of the same
	 * number and address: because they listen, or because their program has
	 * not set RDMA_OPTION_ID_REUSEADDR. */
	unsigned firm;
	unsigned listening; /* number of the @bound ports that listen */
	/* number of the @listening ports that have joined another port */
	unsigned joined;
};

/* The listeners at one number and address, in the order in which they get
 * requests. */
struct turns {
	struct vb_cm_port *first, **end;
};

struct vb_port_counters {
	struct key key;
	struct sums sums;
	/* listeners of IP and of AF_IB; only if key.secret is 0 */
	struct turns turns[2];
	struct vb_port_counters *next;
};

static enum kind kind_of(const struct vb_gid *a, uint8_t flags)
{
	if (vb_gid_is_zero(a))
		return flags & IPC_CM_V6ONLY ? ANY6 : ANY;
	if (!vb_gid_is_ipv4(a))
		return ONE6;
	return vb_load_be(a->raw + 12, 4) == 0 ? ANY4 : ONE4;
}

static struct key key_of(uint16_t space, uint16_t number, enum kind kind)
{
	return (struct key){
		.space = space, .number = number, .kind = kind, .whole = true
	};
}

/* Returns the key @k restricted to one address instead of its whole kind. */
static struct key narrowed(struct key k, const struct vb_gid *address)
{
	k.whole = false;
	k.address = *address;
	return k;
}

static bool is_single(enum kind kind)
{
	return kind == ONE4 || kind == ONE6;
}

static bool cm_ports_is_same(const struct key *a, const struct key *b)
{
	return a->space == b->space && a->number == b->number &&
	       a->kind == b->kind && a->whole == b->whole &&
	       a->secret == b->secret && vb_gid_equal(&a->address, &b->address);
}

static struct vb_port_counters **bucket(struct vb_cm_ports *t,
					const struct key *k)
{
	uint64_t h = vb_hash(t->key, (uint64_t)k->number << 32 |
					     (uint64_t)k->space << 16 |
					     (uint64_t)k->kind << 1 | k->whole);

	h = vb_hash(h, vb_load_be(k->address.raw, 8));
	h = vb_hash(h, vb_load_be(k->address.raw + 8, 8));
	return &t->buckets[vb_hash(h, k->secret) % VB_PORT_BUCKETS];
}

static struct vb_port_counters *cm_ports_find(struct vb_cm_ports *t,
					      const struct key *k)
{
	struct vb_port_counters *y = *bucket(t, k);

	while (y && !cm_ports_is_same(&y->key, k))
		y = y->next;
	return y;
}

static struct vb_port_counters *make(struct vb_cm_ports *t, const struct key *k)
{
	struct vb_port_counters **at = bucket(t, k), *y = calloc(1, sizeof(*y));

	if (!y)
		return NULL;
	y->key = *k;
	for (unsigned i = 0; i < VB_COUNT(y->turns); i++)
		y->turns[i].end = &y->turns[i].first;
	y->next = *at;
	*at = y;
	return y;
}

static void drop(struct vb_cm_ports *t, struct vb_port_counters *y)
{
	struct vb_port_counters **at = bucket(t, &y->key);

	while (*at != y)
		at = &(*at)->next;
	*at = y->next;
	free(y);
}

static void drop_all(struct vb_port_counters **at)
{
	while (*at) {
		struct vb_port_counters *y = *at;

		*at = y->next;
		free(y);
	}
}

void vb_cm_ports_close(struct vb_cm_ports *t)
{
	if (t->range_fd >= 0)
		close(t->range_fd);
	if (t->reserved_fd >= 0)
		close(t->reserved_fd);
	for (unsigned i = 0; i < VB_PORT_BUCKETS; i++)
		drop_all(&t->buckets[i]);
}

#define MOST_KEYS 4

/* Writes to @keys all keys under which @p is counted: its port number with the
 * kind of its address; if it has a single address, the same with that address;
 * and if it has a secret (rdma_cm's REUSEADDR group), each of these with the
 * secret. Returns their number. */
static unsigned keys_of(const struct vb_cm_port *p, struct key keys[MOST_KEYS])
{
	enum kind kind = kind_of(&p->address, p->flags);
	unsigned count = 0, plain;

	keys[count++] = key_of(p->space, p->number, kind);
	if (is_single(kind)) {
		keys[count] = narrowed(keys[0], &p->address);
		count++;
	}
	plain = count;
	for (unsigned i = 0; p->secret && i < plain; i++) {
		keys[count] = keys[i];
		keys[count++].secret = p->secret;
	}
	return count;
}

static struct vb_port_counters *counters_of(struct vb_cm_ports *t,
					    const struct vb_cm_port *p)
{
	enum kind kind = kind_of(&p->address, p->flags);
	struct key k = key_of(p->space, p->number, kind);

	if (is_single(kind))
		k = narrowed(k, &p->address);
	return cm_ports_find(t, &k);
}

/* Returns the counts that @p adds to each of its counters. */
static struct sums part_of(const struct vb_cm_port *p)
{
	return (struct sums){
		.bound = 1,
		.firm = p->listening || !(p->flags & IPC_CM_REUSE),
		.listening = p->listening,
		.joined = p->listening && p->flags & IPC_CM_JOIN,
	};
}

static void add(struct sums *to, const struct sums *s)
{
	to->bound += s->bound;
	to->firm += s->firm;
	to->listening += s->listening;
	to->joined += s->joined;
}

static void subtract(struct sums *from, const struct sums *s)
{
	from->bound -= s->bound;
	from->firm -= s->firm;
	from->listening -= s->listening;
	from->joined -= s->joined;
}

static void count_out(struct vb_cm_ports *t, const struct vb_cm_port *p,
		      const struct key *keys, unsigned count)
{
	const struct sums part = part_of(p);

	for (unsigned i = 0; i < count; i++) {
		struct vb_port_counters *y = cm_ports_find(t, &keys[i]);

		subtract(&y->sums, &part);
		if (y->sums.bound == 0)
			drop(t, y);
	}
}

/* Add the port @p to the counters of each key that it counts for (keys_of()).
 * Returns 0; or -ENOMEM, and no counter has changed. */
static int count_in(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	const struct sums part = part_of(p);
	struct key keys[MOST_KEYS];
	unsigned count = keys_of(p, keys);

	for (unsigned i = 0; i < count; i++) {
		struct vb_port_counters *y = cm_ports_find(t, &keys[i]);

		if (!y)
			y = make(t, &keys[i]);
		if (!y) {
			count_out(t, p, keys, i);
			return -ENOMEM;
		}
		add(&y->sums, &part);
	}
	return 0;
}

/* Sums up the ports that conflict with @p, including @p itself if it is bound;
 * with @secret not 0, only ports that have this secret. */
static struct sums sum_met(struct vb_cm_ports *t, const struct vb_cm_port *p,
			   uint64_t secret)
{
	enum kind kind = kind_of(&p->address, p->flags);
	struct sums all = { 0 };

	for (enum kind k = 0; k < KINDS; k++) {
		struct key key = key_of(p->space, p->number, k);
		struct vb_port_counters *y;

		if (!meets[kind][k])
			continue;
		if (is_single(kind) && k == kind)
			key = narrowed(key, &p->address);
		key.secret = secret;
		y = cm_ports_find(t, &key);
		if (y)
			add(&all, &y->sums);
	}
	return all;
}

static bool may_join(const struct vb_cm_port *p)
{
	return p->flags & IPC_CM_JOIN && p->secret;
}

/* Returns whether a bound port has the secret that @p shows. Only the process
 * that bound that port and its children know the secret, which the library
 * passes on by fork. */
static bool has_host(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	return may_join(p) && sum_met(t, p, p->secret).bound > 0;
}

/* Returns whether other ports prevent @p, which is not bound, from binding. */
static bool cm_ports_is_taken(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	struct sums others = sum_met(t, p, 0);

	if (may_join(p)) {
		const struct sums own = sum_met(t, p, p->secret);

		subtract(&others, &own);
	}
	return (p->flags & IPC_CM_REUSE ? others.firm : others.bound) > 0;
}

static int pick(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	char reserved[SETTING_SIZE];
	unsigned first, last, count, start;

	read_range(t, &first, &last);
	read_setting(t->reserved_fd, reserved);
	count = last - first + 1;
	start = vb_rand32() % count;
	for (unsigned i = 0; i < count; i++) {
		p->number = (uint16_t)(first + (start + i) % count);
		if (!cm_ports_is_taken(t, p) &&
		    !is_reserved(reserved, p->number))
			return 0;
	}
	p->number = 0;
	return -EADDRINUSE;
}

int vb_cm_ports_bind(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	p->listening = false;
	if (p->flags & IPC_CM_JOIN && !has_host(t, p))
		return -EACCES;
	if (p->number && cm_ports_is_taken(t, p))
		return -EADDRINUSE;
	if (!p->number && pick(t, p))
		return -EADDRINUSE;
	return count_in(t, p);
}

static void append(struct turns *turns, struct vb_cm_port *p)
{
	p->next = NULL;
	p->at = turns->end;
	*turns->end = p;
	turns->end = &p->next;
}

static void take_out(struct turns *turns, struct vb_cm_port *p)
{
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	else
		turns->end = p->at;
}

static struct turns *turns_of(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	return &counters_of(t, p)->turns[!!(p->flags & IPC_CM_PLAIN)];
}

void vb_cm_ports_free(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	struct key keys[MOST_KEYS];

	if (p->listening)
		take_out(turns_of(t, p), p);
	count_out(t, p, keys, keys_of(p, keys));
}

/*
 * Returns whether a listener prevents @p from listening. Every other listener
 * does, with two exceptions: if @p has joined the port (IPC_CM_JOIN), listeners
 * with its secret do not; if it has not joined, those with its secret that have
 * joined do not.
 */
static bool is_listened_at(struct vb_cm_ports *t, const struct vb_cm_port *p)
{
	unsigned all = sum_met(t, p, 0).listening;
	struct sums own = { 0 };

	if (p->secret)
		own = sum_met(t, p, p->secret);
	return all > (p->flags & IPC_CM_JOIN ? own.listening : own.joined);
}

int vb_cm_ports_listen(struct vb_cm_ports *t, struct vb_cm_port *p)
{
	struct key keys[MOST_KEYS];
	unsigned count = keys_of(p, keys);
	const struct sums before = part_of(p);
	struct sums now;

	if (p->listening)
		return 0;
	if (is_listened_at(t, p))
		return -EADDRINUSE;
	p->listening = true;
	now = part_of(p);
	for (unsigned i = 0; i < count; i++) {
		struct vb_port_counters *y = cm_ports_find(t, &keys[i]);

		subtract(&y->sums, &before);
		add(&y->sums, &now);
	}
	append(turns_of(t, p), p);
	return 0;
}

/* Finds the listener that gets the next request at a place. Listeners that have
 * joined come first; at most one has not joined, so the first two suffice. */
static struct vb_cm_port *find_turn(struct vb_cm_ports *t, const struct key *k,
				    bool plain)
{
	struct vb_port_counters *y = cm_ports_find(t, k);
	struct vb_cm_port *p = y ? y->turns[plain].first : NULL;

	if (p && !(p->flags & IPC_CM_JOIN) && p->next)
		return p->next;
	return p;
}

/* Returns @p, and moves it behind the other listeners of its place, so that one
 * of them gets the next request. */
static struct vb_cm_port *rotate_listener(struct vb_cm_ports *t,
					  struct vb_cm_port *p)
{
	struct turns *turns = turns_of(t, p);

	take_out(turns, p);
	append(turns, p);
	return p;
}

struct vb_cm_port *vb_cm_ports_find(struct vb_cm_ports *t, uint16_t space,
				    uint16_t number,
				    const struct vb_gid *address, bool plain)
{
	enum kind own = kind_of(address, 0);
	const enum kind any[] = { own == ONE4 || own == ANY4 ? ANY4 : ANY6,
				  ANY };
	struct key k = key_of(space, number, own);
	struct vb_cm_port *best = NULL;

	if (is_single(own)) {
		k = narrowed(k, address);
		best = find_turn(t, &k, plain);
	}
	if (best)
		return rotate_listener(t, best);
	for (unsigned i = 0; i < VB_COUNT(any); i++) {
		struct vb_cm_port *p;

		k = key_of(space, number, any[i]);
		p = find_turn(t, &k, plain);
		if (p && (!best || p->flags & IPC_CM_JOIN))
			best = p;
	}
	return best ? rotate_listener(t, best) : NULL;
}
