/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What subnet managers report to programs (IBA 13.4.9, 15.4.2):
 *
 *   umad_reports listen                   subscribe to all traps, and print the
 *                                         number and issuer of each report
 *   umad_reports group                    create a multicast group, and leave
 *   umad_reports join                     create or join that group, and stay
 *   umad_reports send LID Q_KEY P_KEY_INDEX  send a request with these keys
 *   umad_reports service ID NAME LEASE    register a service of this port, for
 *                                         LEASE seconds
 *   umad_reports no-service ID NAME       end the registration
 *
 * The program runs as the adapter ib0. Its last line says whether it succeeded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/umad.h>

#define MAD	 256
#define DATA_AT	 56 /* offset of the data in a MAD of subnet administration */
#define MASK_AT	 48 /* offset of the ComponentMask in such a MAD */
#define SA	 0x03
#define PERF	 0x04
#define GSI_QKEY 0x80010000u

#define GET	     0x01
#define SET	     0x02
#define REPORT	     0x06
#define DELETE	     0x15
#define REPORT_RESP  0x86
#define CLASS_INFO   0x01
#define INFORM_INFO  0x03
#define SERVICE	     0x31
#define MEMBER	     0x38
#define ANSWER_MS    2000
#define SEND_RETRIES 5

/* ComponentMask of MCMemberRecord: MGID, PortGID, Q_Key, TClass, P_Key, SL,
 * FlowLabel, JoinState. */
#define GROUP_MASK                                                             \
	(1u << 0 | 1u << 1 | 1u << 2 | 1u << 6 | 1u << 7 | 1u << 12 |          \
	 1u << 13 | 1u << 16)

/* ComponentMask of ServiceRecord: ServiceID, ServiceGID, ServiceP_Key,
 * ServiceLease, ServiceKey, ServiceName. */
#define SERVICE_MASK (1u << 0 | 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6)

static uint8_t umad[sizeof(struct ib_user_mad) + MAD];
static umad_port_t own;
static int port, agent;

static void store(uint8_t *at, uint64_t value, unsigned bytes)
{
	while (bytes-- > 0) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static unsigned load(const uint8_t *at, unsigned bytes)
{
	unsigned value = 0;

	while (bytes-- > 0)
		value = value << 8 | *at++;
	return value;
}

static int fail(const char *what)
{
	printf("failed: %s\n", what);
	return 1;
}

/* Begin a request in @umad. Returns its MAD. */
static uint8_t *begin(unsigned lid, uint8_t class, uint8_t method,
		      unsigned attr)
{
	uint8_t *mad = umad_get_mad(umad);

	memset(umad, 0, sizeof(umad));
	umad_set_addr(umad, (int)lid, 1, 0, (int)GSI_QKEY);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = class == SA ? 2 : 1;
	mad[3] = method;
	store(mad + 8, 7, 8);
	store(mad + 16, attr, 2);
	return mad;
}

/* Send the request and wait for its answer. Returns the MAD's status, or -1. */
static int ask(void)
{
	uint8_t *mad = umad_get_mad(umad);
	int len = MAD;

	if (umad_send(port, agent, umad, MAD, ANSWER_MS, SEND_RETRIES) < 0 ||
	    umad_recv(port, umad, &len, -1) < 0 || umad_status(umad))
		return -1;
	return (int)load(mad + 4, 2);
}

/* Answer the report in @umad, so that the subnet manager does not repeat it. */
static void print_report(void)
{
	uint8_t *mad = umad_get_mad(umad);

	printf("report %u of LID %u\n", load(mad + DATA_AT + 4, 2),
	       load(mad + DATA_AT + 6, 2));
	mad[3] = REPORT_RESP;
	(void)!umad_send(port, agent, umad, MAD, 0, 0);
}

static int listen_to_all(void)
{
	uint8_t *mad = begin(own.sm_lid, SA, SET, INFORM_INFO);
	uint8_t *info = mad + DATA_AT;
	int len;

	store(info + 16, 0xffff, 2);   /* traps of all LIDs */
	info[22] = 1;		       /* IsGeneric */
	info[23] = 1;		       /* Subscribe: 1 */
	store(info + 24, 0xffff, 2);   /* of all trap types */
	store(info + 26, 0xffff, 2);   /* of all trap numbers */
	store(info + 33, 0xffffff, 3); /* of all producer types */
	if (ask() != 0)
		return fail("the subscription");
	puts("subscribed");
	for (;;) {
		len = MAD;
		if (umad_recv(port, umad, &len, -1) < 0)
			return fail("the connection");
		if (umad_status(umad) == 0 && mad[3] == REPORT)
			print_report();
	}
}

static int ask_for_group(uint8_t method)
{
	static const uint8_t mgid[16] = { 0xff, 0x12, [15] = 0x77 };
	uint8_t *mad = begin(own.sm_lid, SA, method, MEMBER);
	uint8_t *member = mad + DATA_AT;

	store(mad + MASK_AT, GROUP_MASK, 8);
	memcpy(member, mgid, sizeof(mgid));
	memcpy(member + 16, &own.gid_prefix, 8);
	memcpy(member + 24, &own.port_guid, 8);
	store(member + 32, 0x1234, 4); /* Q_Key */
	store(member + 40, 0xffff, 2); /* P_Key */
	member[48] = 1;		       /* JoinState: a full member */
	return ask();
}

static int make_group(bool leaves)
{
	if (ask_for_group(SET) != 0)
		return fail("to create the group");
	if (leaves && ask_for_group(DELETE) != 0)
		return fail("to leave the group");
	puts("done");
	return 0;
}

static int tell_service(uint8_t method, const char *id, const char *name,
			const char *lease)
{
	uint8_t *mad = begin(own.sm_lid, SA, method, SERVICE);
	uint8_t *record = mad + DATA_AT;

	store(mad + MASK_AT, SERVICE_MASK, 8);
	store(record, strtoull(id, NULL, 0), 8);
	memcpy(record + 8, &own.gid_prefix, 8);
	memcpy(record + 16, &own.port_guid, 8);
	store(record + 24, 0xffff, 2);
	store(record + 28, strtoul(lease, NULL, 0), 4);
	strncpy((char *)record + 48, name, 63);
	if (ask() != 0)
		return fail("the subnet administrator refuses");
	puts("done");
	return 0;
}

/* The receiver drops the request if it does not have its keys. */
static int send_with_keys(unsigned lid, unsigned qkey, int pkey_index)
{
	begin(lid, PERF, GET, CLASS_INFO);
	umad_set_addr(umad, (int)lid, 1, 0, (int)qkey);
	umad_set_pkey(umad, pkey_index);
	if (umad_send(port, agent, umad, MAD, 0, 0) < 0)
		return fail("to send");
	puts("done");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long methods[16 / sizeof(long)] = { 1L << REPORT };
	bool sends = strcmp(what, "send") == 0 && argc == 5;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (umad_init() < 0 || umad_get_port("ib0", 1, &own) < 0)
		return fail("there is no port");
	port = umad_open_port("ib0", 1);
	if (port < 0)
		return fail("to open the port");
	agent = umad_register(port, sends ? PERF : SA, sends ? 1 : 2, 0,
			      strcmp(what, "listen") == 0 ? methods : NULL);
	if (agent < 0)
		return fail("to register");
	if (strcmp(what, "listen") == 0)
		return listen_to_all();
	if (strcmp(what, "group") == 0)
		return make_group(true);
	if (strcmp(what, "join") == 0)
		return make_group(false);
	if (strcmp(what, "service") == 0 && argc == 5)
		return tell_service(SET, argv[2], argv[3], argv[4]);
	if (strcmp(what, "no-service") == 0 && argc == 4)
		return tell_service(DELETE, argv[2], argv[3], "0");
	if (sends)
		return send_with_keys((unsigned)strtoul(argv[2], NULL, 0),
				      (unsigned)strtoul(argv[3], NULL, 0),
				      atoi(argv[4]));
	return fail("usage: listen, group, join, send LID Q_KEY P_KEY_INDEX, "
		    "service ID NAME LEASE, or no-service ID NAME");
}
