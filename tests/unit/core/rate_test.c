/* SPDX-License-Identifier: BSD-2-Clause */
/* core/rate: which static rates make a queue pair send slower, and by how
 * much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/rate.h"

enum { SDR = 1, QDR = 4, EDR = 32, NDR = 128 };
enum { X1 = 1, X4 = 2, X12 = 8, X2 = 16 };

static void ps__a_rate_below_that_of_the_port(void **state)
{
	static const struct {
		uint8_t speed, width, code;
		uint32_t ps;
	} rows[] = {
		/* rates of 2.5 and 5 Gbit/s on a QDR link, where 8 of 10 bits
		 * are data */
		{ QDR, X4, 2, 5000 * 8 / 10 },
		{ QDR, X4, 5, 2500 * 8 / 10 },
		/* on an EDR link 64 of 66 bits are data: a byte takes 3.3 ns */
		{ EDR, X4, 2, 3300 },
		{ EDR, X4, 3, 825 },
		{ EDR, X1, 3, 825 },
		{ NDR, X4, 16, 80 },
		/* code 0 means the port's rate; so does an unknown code, which
		 * no address may have */
		{ QDR, X4, 0, 0 },
		{ QDR, X4, 1, 0 },
		/* rates that are not below the port's rate */
		{ QDR, X4, 7, 0 },
		{ QDR, X4, 16, 0 },
		{ EDR, X4, 16, 0 },
		{ SDR, X1, 2, 0 },
		{ SDR, X12, 4, 0 },
		{ EDR, X2, 20, 0 },
		{ SDR, X12, 3, 1000 },
	};
	struct vb_port p;

	vb_port_init(&p);
	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		p.ib.speed = rows[i].speed;
		p.ib.width = rows[i].width;
		assert_int_equal(vb_rate_ps(&p, rows[i].code), rows[i].ps);
	}
	vb_port_fini(&p);
}

static void is_known__the_values_of_ibv_rate(void **state)
{
	for (unsigned code = 0; code < 256; code++)
		assert_int_equal(vb_rate_is_known((uint8_t)code),
				 code == 0 || (code >= 2 && code <= 24));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ps__a_rate_below_that_of_the_port),
		cmocka_unit_test(is_known__the_values_of_ibv_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
