/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides how many of its seeds a long test plays: all, or only a part in `make
 * check`. */
#ifndef TESTS_SUPPORT_SEEDS_H
#define TESTS_SUPPORT_SEEDS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS_ARE_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEEDS_ARE_SLOW 1
#endif
#endif
#ifndef SEEDS_ARE_SLOW
#define SEEDS_ARE_SLOW 0
#endif

/* Returns 1, or in `make check`, which sets VERBENA_QUICK (scripts/check.sh),
 * 4; with AddressSanitizer or ThreadSanitizer, whose builds are not optimized
 * there, 32. A test divides its number of seeds by this. */
static inline unsigned seeds_divisor(void)
{
	const char *quick = getenv("VERBENA_QUICK");

	if (!quick || strcmp(quick, "no") == 0)
		return 1;
	return SEEDS_ARE_SLOW ? 32 : 4;
}

/* The distance between two steps, or two places, that a test plays: odd, so
 * that the test meets all places of a structure whose size is a power of
 * two. */
static inline unsigned seeds_stride(void)
{
	return seeds_divisor() | 1;
}

/* Returns how many of @count seeds a test plays, not fewer than @least. */
static inline unsigned seeds_of(unsigned count, unsigned least)
{
	unsigned part = count / seeds_divisor();

	return part > least ? part : least;
}

/* The main() of a test that plays one run for each seed. Without arguments the
 * test plays @count seeds, divided by seeds_divisor(). The argument SEED plays
 * that seed, and "-n COUNT [FIRST]" plays COUNT seeds. Returns the exit status.
 */
static inline int seeds_main(int argc, char **argv, uint64_t count,
			     void (*play)(uint64_t seed))
{
	uint64_t first = 1;

	count /= seeds_divisor();
	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		count = strtoull(argv[2], NULL, 0);
		first = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	} else if (argc > 1) {
		first = strtoull(argv[1], NULL, 0);
		count = 1;
	}
	for (uint64_t seed = first; seed < first + count; seed++) {
		fprintf(stderr, "\rseed %llu", (unsigned long long)seed);
		play(seed);
	}
	fprintf(stderr, "\r%llu seeds played\n", (unsigned long long)count);
	return 0;
}

#endif
