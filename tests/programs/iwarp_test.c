/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP connections: what ends a stream and what each side then sees, what
 * connecting transports (private data, depths), and which features an RNIC
 * lacks. One program that is connected to itself by librdmacm; one case in each
 * function.
 *
 *	iwarp_test ADDRESS [CASE]
 */
#include "iwarp_test.h"

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name)                                                             \
	{                                                                      \
#name, name                                                    \
	}
	CASE(write_with_a_wrong_key),	 CASE(read_with_a_wrong_key),
	CASE(write_from_a_wrong_key),	 CASE(read_where_none_is_taken),
	CASE(send_without_a_receive),	 CASE(send_too_long),
	CASE(disconnect_after_sends),	 CASE(destroyed_without_a_word),
	CASE(private_data_and_depths),	 CASE(rejected),
	CASE(connects_that_cross),	 CASE(memory_that_changes),
	CASE(callers_that_are_no_mpa),	 CASE(stranger_of_this_host),
	CASE(stranger_that_pretends),	 CASE(what_an_rnic_has_not),
	CASE(what_ids_have_not),	 CASE(datagrams_by_librdmacm),
	CASE(addresses_of_infiniband),	 CASE(roce_device_opened_later),
	CASE(ids_inherited_by_fork),	 CASE(ports_inherited_by_fork),
	CASE(more_callers_than_backlog), CASE(silent_callers),
	CASE(callers_that_close_half),	 CASE(called_without_an_answer),
	CASE(peer_that_reads_nothing),	 CASE(listener_that_comes_back),
	CASE(others_beside_a_late_page),
#undef CASE
};

static void set_up(const char *host)
{
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons(PORT) };
	must(inet_pton(AF_INET, host, &address.sin_addr) == 1, "address");
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	must(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) &&
		     !rdma_bind_addr(listener, (struct sockaddr *)&address) &&
		     !rdma_listen(listener, 16),
	     "rdma_listen");
}

int main(int argc, char **argv)
{
	unsigned failed = 0, passed = 0;

	if (argc < 2)
		die("usage: iwarp_test ADDRESS [CASE]");
	set_up(argv[1]);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 2 && strcmp(argv[2], cases[i].name))
			continue;
		problem[0] = '\0';
		cases[i].run();
		drop(&a);
		drop(&b);
		/* read the events of the end of the connection */
		while (next_event(0.05))
			;
		if (problem[0]) {
			printf("not ok %s: %s\n", cases[i].name, problem);
			failed++;
		} else {
			printf("ok %s\n", cases[i].name);
			passed++;
		}
		fflush(stdout);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
